#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

/// N_kernel() of each row of kernels.def; its documentation stands where it is defined.
namespace attest::gpu {

#define ATTEST_CUDA_KERNEL(name, ...) const EmulatedKernel& name##_kernel();
#include "gpu/kernels/kernels.def"
#undef ATTEST_CUDA_KERNEL

}  // namespace attest::gpu
