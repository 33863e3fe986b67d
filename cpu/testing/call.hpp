#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/tensor.hpp"
#include "cpu/testing/naive.hpp"

namespace attest::cpu::testing {

/// visit(i, j, k, l) for the elements in logical order; axes that a tensor lacks have index 0.
template <class Visit>
void for_each_element(const TensorView& view, const Visit& visit) {
  const auto extent = [&](std::size_t axis) { return axis < view.rank() ? view.extent(axis) : 1; };
  for (std::int64_t i = 0; i < extent(0); ++i) {
    for (std::int64_t j = 0; j < extent(1); ++j) {
      for (std::int64_t k = 0; k < extent(2); ++k) {
        for (std::int64_t l = 0; l < extent(3); ++l) visit(i, j, k, l);
      }
    }
  }
}

/// Where the elements of a tensor lie: packed, or axes in a random order with random gaps, an
/// innermost stride of 1 to 3 and a byte offset.
enum class Memory : std::uint8_t { packed, scattered };

/// Gradient of LSE that backward gets, or its absence.
enum class Dlse : std::uint8_t { given, absent };

/// Memory of one tensor, every byte 0xff (NaN) until it is written.
class Strided {
 public:
  Strided(const char* name, DType dtype, std::vector<Axis> axes, Memory memory, Rng& rng);
  Strided(const Strided&) = delete;
  Strided& operator=(const Strided&) = delete;

  const TensorView& view() const { return view_; }
  const attest_tensor* abi() const { return &tensor_; }

  /// Normal values times `size`.
  void fill(Rng& rng, double size);

  /// The bytes, to see whether anything was written.
  const std::vector<std::byte>& bytes() const { return storage_; }

 private:
  std::vector<std::byte> storage_;
  TensorView view_;
  AbiTensor form_;
  attest_tensor tensor_;
};

/// Everything one call of a kernel needs, filled with values that depend on the seed only: not on
/// memory or threads.
class Call {
 public:
  struct Options {
    Memory memory = Memory::packed;
    std::int32_t threads = 1;
    double size = 1;  // of the inputs' values
    Dlse dlse = Dlse::given;
    std::optional<std::uint32_t> features = {};  // of the kernel; without, what schedules are given
  };

  Call(const Problem& problem, std::uint64_t seed, const Options& options);

  /// Arguments without a workspace.
  attest_forward_args forward_arguments() const;
  attest_backward_args backward_arguments() const;

  attest_status forward(const attest_kernel& kernel);
  attest_status backward(const attest_kernel& kernel);

  /// Tells whether the guards around the last workspace still stand.
  bool workspace_intact() const;

  NaiveInputs inputs() const;

  /// Bits of O, LSE, dQ, dK and dV in logical order.
  std::vector<std::uint64_t> output_bits() const;

  const Problem problem;
  AbiProblem form;

 private:
  Rng layout_;
  const Dlse dlse_;

 public:
  Strided Q, K, V, dO, dLSE, O, LSE, dQ, dK, dV;

 private:
  std::byte* reserve(std::size_t bytes);
  std::vector<std::byte> workspace_;
  std::size_t workspace_bytes_ = 0;
};

/// Bits of every element, in logical order.
std::vector<std::uint64_t> bits_of(const std::vector<const Strided*>& tensors);

/// The largest error / bound over the elements; infinity where a class differs (NaN, infinities) or
/// an error is above a bound of 0.
double worst_ratio(const TensorView& got, const Bounded& expected);

}  // namespace attest::cpu::testing
