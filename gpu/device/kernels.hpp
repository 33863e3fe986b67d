#pragma once

#include "core/abi/attest_kernel.h"

/// The kernels of gpu/kernels on a CUDA device. Tensors, the mask's arrays, slopes and workspace
/// lie there; shapes, strides and the problem on the host; work is put on args.stream.
///
/// Requires: what the kernel of the same name takes when it is emulated.
/// ATTEST_UNSUPPORTED, before anything is written, for launches that the device does not take.
/// Throws DeviceError.  [gpu/device/device_test "device counts equal emulated counts"]
namespace attest::gpu::cuda {

/// Bytes moved, where the device adds them: [0] read, [1] written. Null: the kernel without
/// counters.
using TrafficSink = unsigned long long*;

using ForwardOnDevice = attest_status(const attest_forward_args& args, TrafficSink sink);
ForwardOnDevice block_flash2_forward, flash1_forward, flash2_16bit_forward, flash2_forward,
    flash2_nonfinite_forward, flash2_tensor_core_forward, hybrid_forward,
    hybrid_tensor_core_forward, split_kv_forward, split_kv_tensor_core_forward,
    square_tiled_forward, square_tiled_tensor_core_forward, standard_forward,
    standard_tensor_core_forward;

using BackwardOnDevice = attest_status(const attest_backward_args& args, TrafficSink sink);
BackwardOnDevice block_two_pass_backward, key_stationary_backward,
    key_stationary_tensor_core_backward, square_tiled_bwd_backward,
    square_tiled_bwd_tensor_core_backward, two_pass_backward, two_pass_tensor_core_backward;

using LossOnDevice = attest_status(const attest_loss_args& args, TrafficSink sink);
LossOnDevice loss_large_gradient, loss_small_gradient;

/// Kernels of gpu/kernels/emulated/families.hpp that have no name above, without counters. Sizes:
/// 4, 8, 16, 32 and 64 rows; 8, 16 and 32 rows; tiles of 16, 64 and 128.
template <int kRows>
struct RowsOnDevice {
  static ForwardOnDevice flash2_forward;
  static BackwardOnDevice two_pass_backward;
};
template <int kRows>
struct LossRowsOnDevice {
  static LossOnDevice large_gradient, rows_gradient;
};
template <int kSide>
struct SidesOnDevice {
  static ForwardOnDevice forward;
  static BackwardOnDevice backward;
  static LossOnDevice loss_gradient;
};

}  // namespace attest::gpu::cuda
