#pragma once

#include <functional>
#include <string>

#include "gpu/kernels/emulated/emulated_kernel.hpp"

/// Cases in which every step of a kernel on tensor cores is exact or one rounding that can be
/// repeated: results are compared bit by bit. Each is of tensors in "bf16" or "f16", with the
/// workspace of a kernel, and gives the number of elements that are not as they should be.
namespace attest::gpu::testing {

using RunForward = std::function<simt::LaunchReport(EmulatedForward&)>;
using RunBackward = std::function<simt::LaunchReport(EmulatedBackward&)>;

/// Each query has one key whose score is 128 above all others: the others' weights are zero.
int wrong_where_one_key_counts(const EmulatedKernel& of, const std::string& dtype,
                               const RunForward& run);

/// All keys count the same, and so many are one; what does not exist would count as zero. For
/// kernels that divide by the sum of weights after their cast, or cast weights of at most 1.
int wrong_where_all_keys_count(const EmulatedKernel& of, const std::string& dtype,
                               const RunForward& run);

/// Scores x and -x, values 0 and 1: O is the second weight, cast, by the sum of both, not cast. For
/// kernels that cast P before it is divided.
int wrong_where_two_keys_count(const EmulatedKernel& of, const std::string& dtype,
                               const RunForward& run);

/// Each query has one key whose score is 128 above all others, so that P is 0 or 1, and dS is its
/// dLSE: gradients are sums without rounding.
int wrong_gradients(const EmulatedKernel& of, const std::string& dtype, std::int64_t queries,
                    const RunBackward& run);

}  // namespace attest::gpu::testing
