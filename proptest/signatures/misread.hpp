#pragma once

#include "core/problem.hpp"
#include "core/tensor.hpp"
#include "proptest/values/values.hpp"
#include "reference/bounds/bounds.hpp"

/// Inputs as kernels read them, and LSE as they store it, that take one axis or one list for
/// another.
namespace attest::proptest {

/// Q where a batch entry begins a row after the one before. Requires: several batch entries, not
/// packed.
InputValues queries_a_row_apart(const Problem& problem, const InputValues& values);

/// Q where one query of grouped heads is read as the rows of a group with the strides of the tensor
/// as it is, so that row r of a group is that of batch entry b + r. Requires: one query, not
/// packed.
InputValues groups_as_rows(const Problem& problem, const InputValues& values);

/// K and V where the keys of a packed sequence begin where its queries do, as far as there are
/// keys. Requires: packed sequences.
InputValues keys_at_queries(const Problem& problem, const InputValues& values);

/// LSE with its bound.
struct StoredLse {
  Tensor value;
  reference::ErrorBound bound;
};

/// NaN in all heads but the first of each group, where nothing was written.
StoredLse first_heads_of(const Problem& problem, const StoredLse& truth);

/// LSE of packed sequences stored by tokens and heads, read by heads and tokens.
StoredLse by_token(const StoredLse& truth);

}  // namespace attest::proptest
