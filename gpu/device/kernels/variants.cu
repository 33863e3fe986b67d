#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/flash2/flash2.cuh"
#include "gpu/kernels/loss/loss_rows.cuh"
#include "gpu/kernels/square_tiled/square_tiled.cuh"
#include "gpu/kernels/square_tiled/square_tiled_bwd.cuh"
#include "gpu/kernels/two_pass/two_pass.cuh"

namespace attest::gpu::cuda {
namespace {

// Without counters: that these kernels' words do not depend on where they run, those of the sizes
// that have a name of their own show.
template <template <class> class Call, class Args, class Launches>
attest_status launch(const Args& args, const Launches& launches) {
  return launch_call<Call<simt::Uncounted>>(args, nullptr, launches);
}

}  // namespace

template <int kRows>
attest_status RowsOnDevice<kRows>::flash2_forward(const attest_forward_args& args, TrafficSink) {
  constexpr int kKeys = kRows < 32 ? kRows : 32;
  return launch<FloatForward>(args, [](auto& call, const auto& launch) {
    flash2_launches<Held<Flash2Tile<kRows, kKeys>>>(call.arguments, launch);
  });
}

template <int kRows>
attest_status RowsOnDevice<kRows>::two_pass_backward(const attest_backward_args& args,
                                                     TrafficSink) {
  return launch<FloatBackward>(args, [](auto& call, const auto& launch) {
    two_pass_launches<kRows, Registers::held>(call.arguments, launch);
  });
}

template <int kRows>
attest_status LossRowsOnDevice<kRows>::large_gradient(const attest_loss_args& args, TrafficSink) {
  return launch<DeviceLoss>(args, [](auto& call, const auto& launch) {
    loss_large_launches<kRows, Registers::held>(call.arguments, launch);
  });
}

template <int kRows>
attest_status LossRowsOnDevice<kRows>::rows_gradient(const attest_loss_args& args, TrafficSink) {
  constexpr int kSide = kRows < 16 ? 16 : kRows;
  return launch<DeviceLoss>(args, [](auto& call, const auto& launch) {
    loss_rows_launches<kRows, SquareTile<kSide>, Registers::held>(call.arguments, launch);
  });
}

template <int kSide>
attest_status SidesOnDevice<kSide>::forward(const attest_forward_args& args, TrafficSink) {
  return launch<FloatForward>(args, [](auto& call, const auto& launch) {
    float* const S = call.take(pairs_of(call.arguments.shape));
    call.require_LSE();
    square_tiled_launches<SquareTile<kSide>>(
        SquareTiledArguments<simt::Uncounted>{call.arguments, S}, launch);
  });
}

template <int kSide>
attest_status SidesOnDevice<kSide>::backward(const attest_backward_args& args, TrafficSink) {
  return launch<FloatBackward>(args, [](auto& call, const auto& launch) {
    float* const S = call.take(pairs_of(call.arguments.shape));
    square_tiled_bwd_launches<SquareTile<kSide>>(
        SquareTiledBwdArguments<simt::Uncounted>{call.arguments, S}, launch);
  });
}

template <int kSide>
attest_status SidesOnDevice<kSide>::loss_gradient(const attest_loss_args& args, TrafficSink) {
  return launch<DeviceLoss>(args, [](auto& call, const auto& launch) {
    auto& a = call.arguments;
    a.S = call.matrix(a.n, a.n);
    loss_small_launches<SquareTile<kSide>>(a, launch);
  });
}

template struct RowsOnDevice<4>;
template struct RowsOnDevice<8>;
template struct RowsOnDevice<16>;
template struct RowsOnDevice<32>;
template struct RowsOnDevice<64>;
template struct LossRowsOnDevice<8>;
template struct LossRowsOnDevice<16>;
template struct LossRowsOnDevice<32>;
template struct SidesOnDevice<16>;
template struct SidesOnDevice<64>;
template struct SidesOnDevice<128>;

}  // namespace attest::gpu::cuda
