#include "certify/reproduce/sparse_meeting.hpp"

#include <cmath>

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

// Words of schedules that move nnz^2 / M^nested and nnz sqrt(Z) / M^outer beyond what they must.
struct Powers {
  double nested = 1, outer = 0.5;
};

SparseSubject subject(std::int64_t entries, Powers powers) {
  constexpr std::int64_t kSeqlen = 512, kHeadDim = 128;
  SparseSubject made{kSeqlen, kHeadDim, entries, {}};
  made.words.nonzeros = 2 * kSeqlen * entries;
  made.words.pairs = kSeqlen * kSeqlen;
  const auto nnz = static_cast<double>(kSeqlen * entries);
  const auto pairs = static_cast<double>(made.words.pairs);
  for (int step = 0; step <= 120; ++step) {  // the last in one tile
    const double size = std::exp2(step / 4.0);
    const auto words = [&](double order, double power) {
      return made.words.nonzeros + std::llround(order / std::pow(size, power));
    };
    made.words.nested.push_back({words(nnz * nnz, powers.nested), std::llround(size)});
    made.words.outer.push_back({words(nnz * std::sqrt(pairs), powers.outer), std::llround(size)});
  }
  return made;
}

std::vector<Outcome> outcomes(Powers powers) {
  std::vector<SparseSubject> subjects;
  for (const std::int64_t entries : {8, 16, 32, 64, 128})
    subjects.push_back(subject(entries, powers));
  std::vector<Outcome> found;
  for (const Claim& claim : sparse_findings(subjects, 4).claims) found.push_back(claim.outcome);
  return found;
}

TEST_CASE("the theorem's own words confirm it and altered words do not", "[reproduce]") {
  CHECK(outcomes({}) == std::vector{Outcome::reproduced, Outcome::reproduced, Outcome::corrected});
  CHECK(outcomes({.nested = 0.5})[0] == Outcome::not_reproduced);
  CHECK(outcomes({.outer = 1})[1] == Outcome::not_reproduced);
  // The large-cache case always below the other.
  CHECK(outcomes({.nested = 1.5})[2] == Outcome::not_reproduced);
}

}  // namespace
}  // namespace attest::certify
