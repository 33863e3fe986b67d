#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

namespace attest::gpu::cuda {

/// Device times of several runs of the work that `enqueue` puts on the stream, after one that is
/// not timed; the least first. Throws DeviceError.
std::vector<double> seconds_of_runs(int repetitions, cudaStream_t stream,
                                    const std::function<void()>& enqueue);

}  // namespace attest::gpu::cuda
