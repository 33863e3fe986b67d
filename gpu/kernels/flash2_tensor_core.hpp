#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/flash2_tensor_core: forward as flash2, backward in two passes, on tensor cores; tensors in
/// bf16.
///
/// Numerics: products are exact and summed in float32 eight at a time, as coarsely as a device of
/// compute capability 8.0 does it (Fasi, Higham, Mikaitis and Pranesh 2021, Numerical behavior of
/// NVIDIA tensor cores), P and dS are rounded to the tensors' type before their products.
/// [gpu/kernels/flash2_tensor_core_test "two keys"]
const EmulatedKernel& flash2_tensor_core_kernel();

/// gpu/flash2_tensor_core_f16, the same in f16: a kernel of its own, for P is rounded differently.
const EmulatedKernel& flash2_tensor_core_f16_kernel();

}  // namespace attest::gpu
