#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace attest::gpu::cuda {

/// The least device time of several runs of the work that `enqueue` puts on the stream, after one
/// that is not counted. Throws DeviceError.
double least_seconds(int repetitions, cudaStream_t stream, const std::function<void()>& enqueue);

}  // namespace attest::gpu::cuda
