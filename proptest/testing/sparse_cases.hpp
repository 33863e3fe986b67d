#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "core/sparse_operands.hpp"

/// Random sparse operands, by families of values that each strain another part of the identity.
namespace attest::proptest {

enum class SparseFamily : std::uint8_t {
  normal,           // a tenth to a half of the entries
  tiny_scores,      // expm1(s) is about s
  huge_scores,      // thousands: exp(s) overflows
  negative,         // every score of the support far below 0
  negative_full,    // and the support is every key
  nearly_full,      // and the support is every key but one
  empty_lines,      // rows and columns of Q, K, V without an entry
  cancelling,       // sums of V and K over the keys vanish
  constant_values,  // V = 1: O = 1, dS = 0
  one_hot,          // one large score in a row
  stored_zeros,     // entries that hold 0
  half_values,      // what bf16 holds
  duplicate_keys,   // equal rows of K
  many_keys,        // hundreds of keys, one entry in 50
  small_values,     // V of 2^-100
  subnormal_keys    // K below the smallest normal number
};

inline const std::vector<std::pair<SparseFamily, std::string>>& sparse_families() {
  using enum SparseFamily;
  static const std::vector<std::pair<SparseFamily, std::string>> families{
      {normal, "normal"},
      {tiny_scores, "tiny_scores"},
      {huge_scores, "huge_scores"},
      {negative, "negative"},
      {negative_full, "negative_full"},
      {nearly_full, "nearly_full"},
      {empty_lines, "empty_lines"},
      {cancelling, "cancelling"},
      {constant_values, "constant_values"},
      {one_hot, "one_hot"},
      {stored_zeros, "stored_zeros"},
      {half_values, "half_values"},
      {duplicate_keys, "duplicate_keys"},
      {many_keys, "many_keys"},
      {small_values, "small_values"},
      {subnormal_keys, "subnormal_keys"}};
  return families;
}

struct SparseCase {
  SparseOperands operands;
  std::vector<float> dO;  // row-major (seqlen_q, head_dim_v)
};

SparseCase sparse_case(SparseFamily family, Rng& rng);

}  // namespace attest::proptest
