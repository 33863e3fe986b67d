#include "certify/campaign/tier.hpp"

#include <vector>

#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest::certify {

proptest::Tier parse_tier(const std::string& text) {
  std::vector<std::string> names;
  for (const auto tier : {proptest::Tier::smoke, proptest::Tier::fast, proptest::Tier::full}) {
    if (text == proptest::name(tier)) return tier;
    names.emplace_back(proptest::name(tier));
  }
  throw InvalidProblem("unknown tier '" + text + "'" + did_you_mean(text, names) +
                       " (smoke, fast, full)");
}

}  // namespace attest::certify
