#pragma once

#include "core/abi/attest_kernel.h"

/// The kernels of gpu/kernels on a CUDA device. Tensors, the mask's arrays, slopes and workspace
/// lie there; shapes, strides and the problem on the host; work is put on args.stream.
namespace attest::gpu::cuda {

/// Bytes moved, where the device adds them: [0] read, [1] written. Null: the kernel without
/// counters.
using TrafficSink = unsigned long long*;

/// ATTEST_UNSUPPORTED, before anything is written, for what no launch takes. Throws DeviceError.
/// [gpu/device/device_test "device counts equal emulated counts"]
attest_status flash2_forward(const attest_forward_args& args, TrafficSink sink);

/// The same for backward, both passes.
attest_status two_pass_backward(const attest_backward_args& args, TrafficSink sink);

}  // namespace attest::gpu::cuda
