#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/rng.hpp"
#include "core/sparse_operands/sparse_operands.hpp"

/// Values of sparse operands, by families that each strain another part of the identity.
namespace attest::proptest {

enum class SparseFamily : std::uint8_t {
  normal,           // bell-shaped
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
  many_keys,        // normal, of hundreds of keys and one entry in 50
  small_values,     // V of 2^-100
  subnormal_keys    // K below the smallest normal number
};

const std::vector<std::pair<SparseFamily, std::string>>& sparse_families();

/// The family of a name. Throws InvalidProblem with the nearest name, and for many_keys, which is
/// a matter of sizes.  [certify/sparse_inputs/sparse_inputs_check_test "families by name"]
SparseFamily parse_sparse_family(std::string_view name);

/// How entries are drawn: `q`, `k` and `v` times a normal value; a sign that is not 0 is that of
/// every entry.
struct SparseFactors {
  double q = 1, k = 1, v = 1;
  double sign_q = 0, sign_k = 0;
};
SparseFactors sparse_factors(SparseFamily family, Rng& rng);
float draw_entry(Rng& rng, double factor, double sign);

/// Makes what was drawn a member of its family: lines taken out, rows repeated, entries replaced.
void make_member(SparseFamily family, SparseOperands& operands, Rng& rng);

/// Values on a structure, from a seed. Families that are of another structure change it: all
/// entries present (negative_full, nearly_full, V of constant_values), rows and columns without any
/// (empty_lines), rows repeated (cancelling, duplicate_keys).
/// Requires: valid operands.  [certify/sparse_inputs/sparse_inputs_check_test "kernels of sparse
/// inputs pass"]
SparseOperands with_values(SparseFamily family, const SparseOperands& structure,
                           std::uint64_t seed);

/// Normal values, a tenth of them 0.
std::vector<float> draw_cotangent(Rng& rng, std::int64_t count);

}  // namespace attest::proptest
