#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"

/// The set of problems that a kernel's description.limits leave, and the way into it.
namespace attest::proptest {

/// The multiples of `multiple` from `least` to `most`.
struct Range {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t multiple = 1;

  /// Tells whether the range holds nothing but 0.
  bool empty() const;

  bool contains(std::int64_t value) const;

  /// The element next to `value`, above it where there is one. Requires: not empty.
  std::int64_t nearest(std::int64_t value) const;
};

/// Returns the values in both ranges.
Range common(const Range& a, const Range& b);

/// The lengths that the kernel serves: where it claims no ATTEST_CROSS_LENGTHS, those that queries
/// and keys have in common.
Range claimed_queries(const attest_description& description);
Range claimed_keys(const attest_description& description);

/// Tells whether the kernel serves the head dimension, by max_head_dim, head_dim_multiple and its
/// limits.
bool claims_head_dim(const attest_description& description, std::int64_t head_dim);

/// The head dimensions of limits.head_dims that the other fields leave; empty where it names none.
std::vector<std::int64_t> listed_head_dims(const attest_description& description);

/// The smallest claimed head dimension that is not below `wanted`; else the largest.
std::int64_t nearest_head_dim(const attest_description& description, std::int64_t wanted);

/// A claimed head dimension near `head_dim` and not the same; nothing when there is none.
std::optional<std::int64_t> other_head_dim(const attest_description& description,
                                           std::int64_t head_dim);

/// Why the limits leave the problem out; "" when they do not. For the loss gradient, the extents
/// alone are asked.
std::string beyond_limits(const attest_description& description, const Problem& problem,
                          bool loss_gradient);

/// Moves batch, heads, lengths, head dimensions and scale to the nearest that the limits allow.
/// Equal lengths stay equal without ATTEST_CROSS_LENGTHS, and the longer of two stays the longer
/// where the limits allow it. Without limits nothing changes but head dimensions that the kernel
/// does not take. Masks of pairs and lists of lengths are made for the result.
/// [certify/campaign/claims_test "nothing outside"]
void fit_sizes(const attest_description& description, Problem& problem);

/// Moves lengths of packed sequences so that the longest is claimed.
void fit_longest(const Range& range, std::vector<std::int64_t>& lengths);

/// Moves the window into the limits: a causal one, of the alignment that the kernel takes.
void fit_window(const attest_description& description, Problem& problem);

/// Both of the above.
Problem within_limits(const attest_description& description, Problem problem);

}  // namespace attest::proptest
