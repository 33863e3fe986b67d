#pragma once

/// Header that kernels of gpu/kernels include: CUDA as nvcc has it, or the same words on the host.
///
/// A kernel is written once, in a .cuh without inline PTX: async_copy.cuh and tensor_core.cuh have
/// a function for each instruction. nvcc takes it as it is, g++ and clang compile it through a thin
/// .cpp. ATTEST_SIMT_WORLD names the inline namespace of each, so that one program can hold both.
/// ATTEST_SHARED(float, tile, [32][33]); declares a shared variable, at a multiple of 16 bytes,
/// ATTEST_DYNAMIC_SHARED(float, words); the dynamic ones.
#ifdef __CUDACC__
#include "gpu/simt/device.cuh"
#else
#include "gpu/simt/emulation.hpp"
#endif
