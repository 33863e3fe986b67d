#pragma once

#include <string>

#include "core/problem.hpp"
#include "core/tensor.hpp"
#include "proptest/judge/run.hpp"

/// Rows past the query lengths, of a kernel that does not write them
/// (attest_description.past_length).
namespace attest::proptest {

/// "" when such rows of O, dQ or LSE, a packed copy of what a call left, hold what every output
/// holds on entry, to the bit; else which row does not.
/// [proptest/judge/past_lengths_test "what is written past a length"]
std::string written_past_lengths(const Problem& problem, const Tensor& output);

/// Tells whether a kernel may leave such rows of the problem.
bool may_leave_rows(const attest_description& description, const Problem& problem);

/// Puts in such rows of what it wrote what the kernel's convention has in rows without a visible
/// key, and 0 in those of dQ, whatever they hold. No effect where it may not leave them.
void take_unwritten_as_empty(const attest_description& description, const Problem& problem,
                             KernelRun& run);

}  // namespace attest::proptest
