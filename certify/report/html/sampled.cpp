#include "certify/report/html/sampled.hpp"

#include <algorithm>

#include "proptest/judge/truth/sample.hpp"

namespace attest::certify {

std::int64_t sampled_positions(const SizesByKind& sizes) {
  const bool any = std::any_of(sizes.begin(), sizes.end(),
                               [](const auto& entry) { return entry.second.sampled.batch > 0; });
  return any ? proptest::kRandomPositions : 0;
}

std::string sampled_words(std::int64_t positions) {
  if (positions == 0) return "";
  const std::string count = std::to_string(positions);
  return "by sample: " + count + " rows and " + count +
         " keys of each long sequence at random, with its ends and edges of tiles";
}

}  // namespace attest::certify
