#pragma once

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"

/// Masks of heads and biases for kernels that do not claim rows without a visible key.
namespace attest::proptest {

/// Gives the problem another mask of heads, and another bias with holes, where one hides every key
/// of a row: of other seeds, then with more visible entries, then of fewer axes. Takes the mask of
/// heads away, and the holes, where none of the few tries leaves each row a key. No effect where
/// each row sees one. The seeds of both alone decide.
/// [proptest/values/kept_keys_test "each row keeps a key"]
void keep_a_key_in_each_row(Problem& problem);

/// Does so where the kernel does not claim rows without a visible key.
void keep_a_key_in_each_row(const attest_description& description, Problem& problem);

}  // namespace attest::proptest
