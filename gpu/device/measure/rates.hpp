#pragma once

/// Rates of the device, measured: kernels' times are compared with these rates. Each throws
/// DeviceError.
namespace attest::gpu::cuda {

/// Bytes read and written per second by a copy of 1 GiB within the device's memory; the best of
/// several.
double copy_bytes_per_second();

/// Multiplications and additions per second in float32, on the CUDA cores.
double float_operations_per_second();

/// The same of bfloat16 products on the tensor cores, by warp instructions (wmma): on Hopper about
/// two thirds of what its own instructions reach.
double matrix_operations_per_second();

}  // namespace attest::gpu::cuda
