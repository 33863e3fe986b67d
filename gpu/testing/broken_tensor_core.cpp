#include "gpu/testing/broken_tensor_core.hpp"

#include "core/error.hpp"
#include "gpu/kernels/flash2_tensor_core.cuh"
#include "gpu/kernels/two_pass_tensor_core.cuh"

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
  }
  throw InternalError("no such bug");
}

}  // namespace

simt::LaunchReport flash2_tensor_core_with(TensorCoreBug bug, EmulatedForward& call,
                                           const simt::Emulation& emulation) {
  const auto arguments = call.sixteen_bit<F16>();
  return with_bug(bug, [&](auto tile) {
    return launch_line(Flash2TensorCore::line(tile, arguments.shape), emulation, call.memory,
                       flash2_tensor_core_forward<decltype(tile), F16, simt::Counted>, arguments);
  });
}

simt::LaunchReport two_pass_tensor_core_with(TensorCoreBug bug, EmulatedBackward& call,
                                             const simt::Emulation& emulation) {
  const auto arguments = call.sixteen_bit<F16>();
  return with_bug(bug, [&](auto tile) {
    EmulatedLaunches launches(emulation, call.memory);
    two_pass_tensor_core_launches(tile, arguments, launches);
    return launches.report();
  });
}

}  // namespace attest::gpu::testing
