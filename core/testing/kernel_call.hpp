#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/stored_tensor.hpp"
#include "core/workspace.hpp"

/// The calls of a kernel that tests of every room make.
namespace attest::testing {

/// Where the tensors of a call lie: as the problem's strides= says, or each scattered.
enum class Memory : std::uint8_t { spelled, scattered };

/// Gradient of LSE that backward gets, or its absence.
enum class Dlse : std::uint8_t { given, absent };

/// Keeps the bytes that a kernel asks for between guards.
class CallWorkspace {
 public:
  /// Sets the arguments' workspace; the one given before is gone.
  template <class Args>
  void give(Args& args, const attest_kernel& kernel, std::uint32_t direction) {
    const std::size_t bytes = workspace_bytes_of(kernel, *args.problem, direction);
    bytes_ = GuardedBytes(bytes);
    args.workspace = bytes > 0 ? bytes_.data() : nullptr;
    args.workspace_bytes = bytes;
  }
  bool guards_intact() const { return bytes_.guards_intact(); }

 private:
  GuardedBytes bytes_{0};
};

/// Everything one call of an attention kernel needs, filled with normal values that depend on the
/// seed only: not on memory or threads.
class Call {
 public:
  struct Options {
    Memory memory = Memory::spelled;
    std::int32_t threads = 1;
    double size = 1;  // of the inputs' values
    Dlse dlse = Dlse::given;
    std::optional<std::uint32_t> features = {};  // of the kernel; without, what schedules are given
  };

  Call(const Problem& problem, std::uint64_t seed, const Options& options);

  /// Arguments without a workspace.
  attest_forward_args forward_arguments() const;
  attest_backward_args backward_arguments() const;

  /// Arguments with the workspace that the kernel asks for, and with LSE if it claims that.
  attest_forward_args forward_arguments(const attest_kernel& kernel);
  attest_backward_args backward_arguments(const attest_kernel& kernel);

  attest_status forward(const attest_kernel& kernel);
  attest_status backward(const attest_kernel& kernel);

  /// Tells whether nothing was written beside the elements of the tensors and around the last
  /// workspace.  [core/testing/kernel_call_test]
  bool gaps_intact() const;

  /// Bits of O, LSE, dQ, dK, dV, dSinks and dBias.
  std::vector<std::uint64_t> output_bits() const;

  const Problem problem;
  const Options options;
  AbiProblem form;

  /// K and V as a call is given them: where the problem's shared_kv says so one lies in the other.
  const attest_tensor* k() const;
  const attest_tensor* v() const;

 private:
  bool has_bias() const { return problem.bias.kind != Bias::Kind::none; }
  void share_columns();

  Rng layout_;
  CallWorkspace workspace_;
  std::unique_ptr<AbiTensor> shared_;  // the narrower of K and V, in the wider

 public:
  StoredTensor Q, K, V, dO, dLSE, O, LSE, dQ, dK, dV, dSinks, bias, dBias;
};

/// Returns the problem of a loss gradient: b = heads = 1, n queries and keys, head dimension d.
Problem loss_problem(std::int64_t n, std::int64_t d);

/// Everything one call of a loss gradient needs, as Call does for attention. Its tensors have the
/// problem's seqlen_q rows and head_dim_qk columns.
class LossCall {
 public:
  explicit LossCall(const Problem& problem, std::uint64_t seed = 1, Memory memory = Memory::spelled,
                    double size = 1, std::int32_t threads = 1);

  /// Arguments without a workspace.
  attest_loss_args arguments() const;

  /// Arguments with the workspace that the kernel asks for, and with dY if it claims that.
  attest_loss_args arguments(const attest_kernel& kernel);

  attest_status run(const attest_kernel& kernel);

  /// Tells whether nothing was written beside the elements of the tensors and around the last
  /// workspace.  [core/testing/kernel_call_test]
  bool gaps_intact() const;

  const Problem problem;
  AbiProblem form;

 private:
  std::vector<Axis> rows() const;    // A1, A2, A3, E
  std::vector<Axis> square() const;  // X, Y, dX, dY

  Rng layout_;
  CallWorkspace workspace_;

 public:
  StoredTensor A1, A2, A3, E, X, Y, dX, dY;
};

}  // namespace attest::testing
