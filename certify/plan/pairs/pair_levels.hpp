#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "core/direction.hpp"
#include "core/problem.hpp"

/// Factors of pairwise coverage and their levels: a new property of problems is a level here.
namespace attest::certify {

enum Factor : std::size_t {
  kMask,
  kDtype,
  kHeads,
  kLayout,
  kSizes,
  kValueDim,
  kScores,
  kBatch,
  kDirection
};
constexpr std::size_t kFactors = 9;

/// One level of every factor, by its place among the words of the factor.
using Levels = std::array<std::size_t, kFactors>;

struct FactorWords {
  const char* name;
  std::vector<const char*> levels;
};

enum Mask : std::size_t {
  kNone,
  kTopLeft,
  kBottomRight,
  kWindow,
  kLengths,
  kPacked,
  kBoolean,
  kWindowLengths,
  kWindowBoolean,
  kPackedWindow,
  kPackedBoolean,
  kOffsetWindow
};
enum Memory : std::size_t { kBshd, kBhsd, kThd, kStrided };
enum Sizes : std::size_t { kEven, kRagged, kFewerQueries, kMoreQueries, kOneQuery, kOneKey };

/// Returns the words of each factor, in the order of `Factor`.
const std::array<FactorWords, kFactors>& factors();

/// Tells whether a level of masks has packed sequences.
bool is_packed(std::size_t mask);

/// Returns the levels that a problem meets in a direction.
/// [certify/plan/pairs/pairwise_test "pairs of a problem"]
Levels levels_of(const Problem& problem, Direction direction);

/// Calls `visit(a, level of a, b, level of b)` for each two factors.
template <class Visit>
void for_each_pair(const Levels& levels, const Visit& visit) {
  for (std::size_t a = 0; a < kFactors; ++a) {
    for (std::size_t b = a + 1; b < kFactors; ++b) visit(a, levels[a], b, levels[b]);
  }
}

}  // namespace attest::certify
