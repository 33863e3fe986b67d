#include "gpu/testing/broken_tensor_core.hpp"

#include "core/error.hpp"
#include "gpu/kernels/flash2/flash2_tensor_core.cuh"
#include "gpu/kernels/key_stationary/key_stationary_tensor_core.cuh"
#include "gpu/kernels/square_tiled/square_tensor_tile.cuh"
#include "gpu/kernels/square_tiled/square_tiled.cuh"
#include "gpu/kernels/two_pass/two_pass_tensor_core.cuh"

namespace attest::gpu::testing {
namespace {

// Types of their own, for `none` too: what is made of them is not mistaken for the kernels.
struct Right : TensorTile<32, 1> {};
struct WaitsForTooFew : Right {
  static void await_tile() {
    simt::cp_async_wait<1>();
    __syncthreads();
  }
};
struct NoBarrier : Right {
  static void await_tile() { simt::cp_async_wait<0>(); }
};
struct CopiesOverReaders : Right {
  static int next_stage(int stage) { return stage; }
};
struct SwapsFragment : Right {
  static void load_passing(unsigned (&b)[4], const unsigned* rows, int stride, int column) {
    load_right(b, rows, stride, column);
  }
};
struct SeesPastTheEnd : Right {
  static bool sees(int begin, int, int row) { return begin <= row; }
};
struct CastsTwice : Right {
  template <class T>
  static unsigned weights(float low, float high) {
    return TensorCore<T>::pair(to_float(rounded<Bf16>(low)), to_float(rounded<Bf16>(high)));
  }
};
struct ForgetsTranspose : Right {
  static void load_columns(unsigned (&a)[4], const unsigned* rows, int stride, int column) {
    load_left(a, rows, stride, column);
  }
};

struct ReadsPairsEarly : Right {
  static void await_pair_gradients() {}
};

struct UnorderedSquare : SquareTensorTile<32, F16> {
  using Products = FragmentProducts<UnorderedSquare>;
  static void await_sums() {}
};
struct SwappedSquare : SquareTensorTile<32, F16> {
  using Products = FragmentProducts<SwappedSquare>;
  static void load_factors(unsigned (&b)[4], const unsigned* rows, int column) {
    load_transpose(b, rows, kPairStride, column);
  }
};

template <class Use>
simt::LaunchReport with_bug(TensorCoreBug bug, const Use& use) {
  switch (bug) {
    case TensorCoreBug::none:
      return use(Right{});
    case TensorCoreBug::waits_for_too_few:
      return use(WaitsForTooFew{});
    case TensorCoreBug::no_barrier:
      return use(NoBarrier{});
    case TensorCoreBug::copies_over_readers:
      return use(CopiesOverReaders{});
    case TensorCoreBug::swaps_fragment:
      return use(SwapsFragment{});
    case TensorCoreBug::sees_past_the_end:
      return use(SeesPastTheEnd{});
    case TensorCoreBug::casts_twice:
      return use(CastsTwice{});
    case TensorCoreBug::forgets_transpose:
      return use(ForgetsTranspose{});
    case TensorCoreBug::reads_dS_early:
      return use(ReadsPairsEarly{});
  }
  throw InternalError("no such bug");
}

}  // namespace

simt::LaunchReport flash2_tensor_core_with(TensorCoreBug bug, EmulatedForward& call,
                                           const simt::Emulation& emulation) {
  const auto arguments = call.typed<F16>();
  return with_bug(bug, [&](auto tile) {
    return launch_line(Flash2TensorCore::line(tile, arguments.shape), emulation, call.memory,
                       flash2_tensor_core_forward<decltype(tile), F16, simt::Counted>, arguments);
  });
}

simt::LaunchReport two_pass_tensor_core_with(TensorCoreBug bug, EmulatedBackward& call,
                                             const simt::Emulation& emulation) {
  const auto arguments = call.typed<F16>();
  return with_bug(bug, [&](auto tile) {
    EmulatedLaunches launches(emulation, call.memory);
    two_pass_tensor_core_launches(tile, arguments, launches);
    return launches.report();
  });
}

simt::LaunchReport key_stationary_tensor_core_with(TensorCoreBug bug, EmulatedBackward& call,
                                                   const simt::Emulation& emulation) {
  const std::int64_t words = call.delta_rows() * call.arguments.shape.head_dim_qk;
  KeyStationarySums<simt::Counted, F16> sums;
  sums.dQ = call.take("sums of dQ", words);
  sums.call = call.typed<F16>();
  return with_bug(bug, [&](auto tile) {
    EmulatedLaunches launches(emulation, call.memory);
    key_stationary_tensor_core_launches(tile, sums, launches);
    return launches.report();
  });
}

namespace {

template <class Tile>
simt::LaunchReport square_tiled_with(EmulatedForward& call, const simt::Emulation& emulation) {
  const auto S = call.take("S", pairs_of(call.arguments.shape));
  EmulatedLaunches launches(emulation, call.memory);
  square_tiled_launches<Tile>(SquareTiledArguments<simt::Counted, F16>{call.typed<F16>(), S},
                              launches);
  return launches.report();
}

}  // namespace

simt::LaunchReport square_tiled_with_swapped_fragment(EmulatedForward& call) {
  return square_tiled_with<SwappedSquare>(call, {});
}

simt::LaunchReport square_tiled_without_barrier(EmulatedForward& call,
                                                const simt::Emulation& emulation) {
  return square_tiled_with<UnorderedSquare>(call, emulation);
}

}  // namespace attest::gpu::testing
