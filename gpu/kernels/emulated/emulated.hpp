#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/abi/attest_kernel.h"
#include "gpu/kernels/tiles/arguments.cuh"
#include "gpu/kernels/tiles/grid.hpp"
#include "gpu/kernels/tiles/sixteen_bit.cuh"
#include "gpu/simt/launch.hpp"

/// From the ABI's arguments to those of an emulated kernel.
namespace attest::gpu {

/// Rows of Q for which the tensors have room: packed, those of all sequences follow one another.
std::int64_t tensor_rows(const attest_problem& problem);

/// A word for each row of dO.
std::int64_t delta_words(const attest_problem& problem);

/// The workspace of a call, handed out piece by piece.
class Workspace {
 public:
  Workspace(void* data, std::size_t bytes)
      : next_(static_cast<float*>(data)), left_(bytes / sizeof(float)) {}

  /// The next `words` floats, under a name of their own. Throws InternalError when there are fewer.
  /// [gpu/kernels/forward_test "workspace"]
  simt::GlobalPointer<float> take(simt::GlobalMemory& memory, const char* name, std::int64_t words);

 private:
  float* next_;
  std::size_t left_;
};

/// Arguments with the tensors they may touch, by name: Q K V O LSE, masks, slopes, sinks
/// and bias. Launches refer to the memory, so it outlives them. Arguments for tensors of 16 bits
/// come from typed().
struct EmulatedForward : PackedRows {
  explicit EmulatedForward(const attest_forward_args& args);
  EmulatedForward(const EmulatedForward&) = delete;
  EmulatedForward& operator=(const EmulatedForward&) = delete;

  simt::GlobalPointer<float> take(const char* name, std::int64_t words) {
    return workspace.take(memory, name, words);
  }
  attest_dtype dtype() const { return args_.problem->dtype; }
  /// The arguments for Q, K, V and O of `T`, once for a call.
  ///
  /// Requires: a problem of that dtype.
  template <class T>
  ForwardArguments<simt::Counted, T> typed();

  /// LSE in the workspace where the caller has none: lse_words() of it.
  void require_LSE();

  simt::GlobalMemory memory;
  ForwardArguments<simt::Counted> arguments;
  Workspace workspace;

 private:
  attest_forward_args args_;
};
template <>
ForwardArguments<simt::Counted> EmulatedForward::typed();

/// The same for backward: Q K V O LSE dO dLSE dQ dK dV dSinks dBias D. D begins the workspace,
/// delta_words() of it.
struct EmulatedBackward {
  explicit EmulatedBackward(const attest_backward_args& args);
  EmulatedBackward(const EmulatedBackward&) = delete;
  EmulatedBackward& operator=(const EmulatedBackward&) = delete;

  simt::GlobalPointer<float> take(const char* name, std::int64_t words) {
    return workspace.take(memory, name, words);
  }

  /// Rows of all heads of dO.
  std::int64_t delta_rows() const { return delta_words(*args_.problem); }
  attest_dtype dtype() const { return args_.problem->dtype; }
  /// The arguments for tensors of `T`, once for a call.
  ///
  /// Requires: a problem of that dtype.
  template <class T>
  BackwardArguments<simt::Counted, T> typed();

  simt::GlobalMemory memory;
  BackwardArguments<simt::Counted> arguments;
  Workspace workspace;

 private:
  attest_backward_args args_;
};
template <>
BackwardArguments<simt::Counted> EmulatedBackward::typed();

/// Arguments of such a shape, without tensors.
template <class T = float>
ForwardArguments<simt::Counted, T> planned_forward(const AttentionShape& shape) {
  ForwardArguments<simt::Counted, T> a;
  a.shape = shape;
  return a;
}
template <class T = float>
BackwardArguments<simt::Counted, T> planned_backward(const AttentionShape& shape) {
  BackwardArguments<simt::Counted, T> a;
  a.shape = shape;
  return a;
}

/// The kernel on all blocks; nothing of no block.
template <class Kernel, class... Arguments>
simt::LaunchReport launch_line(const BlockLine& line, const simt::Emulation& emulation,
                               const simt::GlobalMemory& memory, const Kernel& kernel,
                               const Arguments&... arguments) {
  if (line.blocks == 0) return {};
  return simt::launch({{static_cast<unsigned>(line.blocks), 1, 1},
                       {static_cast<unsigned>(line.lanes), 1, 1},
                       line.dynamic_shared_bytes},
                      emulation, memory, kernel, arguments...);
}

/// One emulated launch after another, and what all found and moved.
class EmulatedLaunches {
 public:
  EmulatedLaunches(const simt::Emulation& emulation, const simt::GlobalMemory& memory)
      : emulation_(emulation), memory_(memory) {}

  template <class Kernel, class... Arguments>
  void operator()(const std::string&, const BlockLine& line, const Kernel& kernel,
                  const Arguments&... arguments) {
    report_ += launch_line(line, emulation_, memory_, kernel, arguments...);
  }
  const simt::LaunchReport& report() const { return report_; }

 private:
  const simt::Emulation& emulation_;
  const simt::GlobalMemory& memory_;
  simt::LaunchReport report_;
};

/// Returns what a launch moved of the tensors of that name; zeros when there is none.
simt::GlobalTraffic traffic_of(const simt::GlobalMemory& memory, const simt::LaunchReport& report,
                               const char* name);

}  // namespace attest::gpu
