#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"

namespace attest::proptest {

/// Work on a case: a kernel is called, its accesses to global memory are looked at for races, too,
/// or its results are judged by the bounds: all of them, or of what is too long a sample
/// (proptest/judge/truth/sample.hpp).
enum class Work : std::uint8_t { calls, calls_with_races, judgement, sampled_judgement };

/// Throws InvalidProblem, naming the axis to make smaller, for a problem that needs more memory
/// than this machine has. An estimate from the sizes alone, of float64 inputs, the kernel's tensors
/// and for judgement the matrices of the bounds; a kernel's workspace is not in it.
/// [proptest/judge/truth/affordable_test]
void require_affordable(const attest_description& description, const Problem& problem, Work work);

}  // namespace attest::proptest
