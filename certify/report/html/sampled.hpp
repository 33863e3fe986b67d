#pragma once

#include <cstdint>
#include <string>

#include "certify/plan/sizes.hpp"

/// Tells how many positions a sample drew, beside the sizes that were judged by one.
namespace attest::certify {

/// The rows, and as many keys, that the sample of a long sequence drew at random: s in the chance
/// (1 - p)^s that it misses a share p. 0 where every problem was judged whole.
/// [certify/report/html/html_test "the sizes covered"]
std::int64_t sampled_positions(const SizesByKind& sizes);

/// One line; empty for 0.
std::string sampled_words(std::int64_t positions);

}  // namespace attest::certify
