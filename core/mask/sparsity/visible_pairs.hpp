#pragma once

#include "core/mask/pattern.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"

namespace attest {

/// The pairs that a mask leaves to one sequence, as a sparsity pattern: the mask's own in the form
/// it was given in where nothing else leaves pairs out, else ranges of keys, however many keys a
/// band holds. Its spelling is the mask's.
///
/// Requires: the sequence of a valid problem with this mask.
/// Ensures:  contains(i, j) = mask.visible(sequence, i, j)
///           [core/mask/sparsity/visible_pairs_test "what the mask leaves"]
/// Else throws InvalidProblem where that takes more than 2^27 ranges.
/// Cost:     time and memory of the ranges, and of the entries of a mask without a compressed form.
SparsityPattern visible_pairs(const Pattern& mask, const Sequence& sequence);

}  // namespace attest
