#pragma once

#include "gpu/device/kernels/launch.cuh"
#include "gpu/device/kernels/pointers.cuh"
#include "gpu/kernels/tiles/sixteen_bit.cuh"

/// Arguments and workspace that every kernel's launches on the device begin with, with the traffic
/// policy or without.
namespace attest::gpu::cuda {

/// The workspace of a call, handed out piece by piece.
class DeviceWorkspace {
 public:
  explicit DeviceWorkspace(void* data) : next_(static_cast<float*>(data)) {}
  float* take(std::int64_t words) {
    float* const piece = next_;
    next_ += words;
    return piece;
  }

 private:
  float* next_;
};

template <class Policy, class T = float>
struct DeviceForward : PackedRows, DeviceWorkspace {
  using Mem = Policy;
  using Element = T;

  DeviceForward(const attest_forward_args& args, TrafficSink sink)
      : PackedRows(*args.O),
        DeviceWorkspace(args.workspace),
        arguments(arguments_of<Mem, T>(args, sink)) {}

  /// LSE in the workspace where the caller has none.
  void require_LSE() {
    if (arguments.LSE != nullptr) return;
    arguments.LSE = take(lse_words());
    arguments.lse = lse_strides();
  }

  ForwardArguments<Mem, T> arguments;
};

/// D begins the workspace.
template <class Policy, class T = float>
struct DeviceBackward : DeviceWorkspace {
  using Mem = Policy;
  using Element = T;

  DeviceBackward(const attest_backward_args& args, TrafficSink sink)
      : DeviceWorkspace(args.workspace), arguments(arguments_of<Mem, T>(args, sink)) {
    arguments.D = take(args.dO->shape[0] * args.dO->shape[1] * args.dO->shape[2]);
  }

  BackwardArguments<Mem, T> arguments;
};

/// QX, h, c, W, Z, LSE and D begin the workspace.
template <class Policy>
struct DeviceLoss : DeviceWorkspace {
  using Mem = Policy;

  DeviceLoss(const attest_loss_args& args, TrafficSink sink)
      : DeviceWorkspace(args.workspace), arguments(arguments_of<Mem>(args, sink)) {
    LossArguments<Mem>& a = arguments;
    a.QX = matrix(a.n, a.d);
    a.h = matrix(a.n, a.d);
    a.c = matrix(a.n, a.d);
    a.W = matrix(a.n, a.d);
    a.Z = matrix(a.n, a.d);
    a.LSE = take(a.n);
    a.D = take(a.n);
  }
  typename LossArguments<Mem>::Made matrix(std::int64_t rows, std::int64_t columns) {
    return {take(rows * columns), 0, columns, 1};
  }

  LossArguments<Mem> arguments;
};

/// launches(call, launch) with a call of the type given, once to ask whether all fit and once to
/// make them.
template <class Call, class Args, class Launches>
attest_status launch_call(const Args& args, TrafficSink sink, const Launches& launches) {
  return launch_all(args.stream, [&](const auto& launch) {
    Call call(args, sink);
    launches(call, launch);
  });
}

/// The same of Call<Counted> where there is a sink, else of Call<Uncounted>.
template <template <class> class Call, class Args, class Launches>
attest_status launch_counted(const Args& args, TrafficSink sink, const Launches& launches) {
  return sink == nullptr ? launch_call<Call<simt::Uncounted>>(args, sink, launches)
                         : launch_call<Call<simt::Counted>>(args, sink, launches);
}

template <class Mem>
using FloatForward = DeviceForward<Mem, float>;
template <class Mem>
using Bf16Forward = DeviceForward<Mem, Bf16>;
template <class Mem>
using F16Forward = DeviceForward<Mem, F16>;
template <class Mem>
using FloatBackward = DeviceBackward<Mem, float>;
template <class Mem>
using Bf16Backward = DeviceBackward<Mem, Bf16>;
template <class Mem>
using F16Backward = DeviceBackward<Mem, F16>;

/// launch_counted() of tensors in bf16 or f16.
template <class Launches>
attest_status launch_sixteen_bit(const attest_forward_args& args, TrafficSink sink,
                                 const Launches& launches) {
  return args.problem->dtype == ATTEST_BF16 ? launch_counted<Bf16Forward>(args, sink, launches)
                                            : launch_counted<F16Forward>(args, sink, launches);
}
template <class Launches>
attest_status launch_sixteen_bit(const attest_backward_args& args, TrafficSink sink,
                                 const Launches& launches) {
  return args.problem->dtype == ATTEST_BF16 ? launch_counted<Bf16Backward>(args, sink, launches)
                                            : launch_counted<F16Backward>(args, sink, launches);
}

}  // namespace attest::gpu::cuda
