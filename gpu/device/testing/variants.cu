// Kernels with tiles of other sizes (gpu/kernels/families.hpp), compiled for their registers alone.
#include "gpu/kernels/flash2.cuh"
#include "gpu/kernels/loss_large.cuh"
#include "gpu/kernels/loss_small.cuh"
#include "gpu/kernels/square_tiled.cuh"
#include "gpu/kernels/square_tiled_bwd.cuh"
#include "gpu/kernels/two_pass.cuh"

namespace attest::gpu::cuda {
namespace {

using Mem = simt::Uncounted;

struct Calls {
  ForwardArguments<Mem> forward;
  BackwardArguments<Mem> backward;
  SquareTiledArguments<Mem> square;
  SquareTiledBwdArguments<Mem> square_bwd;
  LossArguments<Mem> loss;
};

struct Launch {
  template <class Kernel, class... Arguments>
  void operator()(const std::string&, const BlockLine&, Kernel* kernel,
                  const Arguments&... arguments) const {
    kernel<<<1, 1>>>(arguments...);
  }
};

template <int kRows>
void launch_rows(const Calls& calls) {
  flash2_launches<Held<Flash2Tile<kRows, (kRows < 32 ? kRows : 32)>>>(calls.forward, Launch{});
  two_pass_launches<kRows, Registers::held>(calls.backward, Launch{});
  if constexpr (8 <= kRows && kRows <= 32) {
    loss_large_launches<kRows, Registers::held>(calls.loss, Launch{});
  }
}

template <int kSide>
void launch_sides(const Calls& calls) {
  square_tiled_launches<SquareTile<kSide>>(calls.square, Launch{});
  square_tiled_bwd_launches<SquareTile<kSide>>(calls.square_bwd, Launch{});
  loss_small_launches<SquareTile<kSide>>(calls.loss, Launch{});
}

}  // namespace

void launch_variants(const Calls& calls) {
  launch_rows<4>(calls);
  launch_rows<8>(calls);
  launch_rows<16>(calls);
  launch_rows<32>(calls);
  launch_rows<64>(calls);
  launch_sides<16>(calls);
  launch_sides<64>(calls);
  launch_sides<128>(calls);
}

}  // namespace attest::gpu::cuda
