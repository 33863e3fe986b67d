#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// The instruction set of the kernels' arithmetic, a target of Highway: the best that the processor
/// has, or the one that the environment variable ATTEST_CPU_TARGET names, which is read once.
namespace attest::cpu {

inline constexpr const char* kTargetVariable = "ATTEST_CPU_TARGET";

/// The name of AVX3 with the instruction that multiplies pairs of bf16 (AVX-512 BF16), which is no
/// target of Highway.
inline constexpr const char* kPairTarget = "AVX3_BF16";

/// Returns the names of the targets that are compiled in and that this processor runs, the best
/// first.
const std::vector<std::string>& runnable_targets();

/// Returns the target that `wanted` names, the best one where it is null or empty. Throws
/// InvalidProblem for any other name.  [cpu/kernels/vectors/target_test]
std::string choose_target(const char* wanted);

/// Returns the name of the target that runs, like AVX3. Throws as choose_target.
const std::string& target_name();

/// Tells whether it is kPairTarget.
bool multiplies_pairs_at_once();

/// Returns its place in a table of HWY_EXPORT.
std::size_t target_index();

}  // namespace attest::cpu

/// Calls what HWY_EXPORT(FUNCTION) lists, in the target that runs.
#define ATTEST_ON_TARGET(FUNCTION)                                                      \
  (*(HWY_DISPATCH_TABLE(FUNCTION)[sizeof(HWY_DISPATCH_TABLE(FUNCTION)) == sizeof(void*) \
                                      ? 0                                               \
                                      : attest::cpu::target_index()]))
