#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/contract/conventions.hpp"
#include "core/rng.hpp"
#include "core/tensor.hpp"

/// Tensors in memory of their own, for the tests that call kernels.
namespace attest::testing {

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

/// Where the elements of a tensor lie: axes with their strides, from a byte offset on.
struct Placement {
  std::vector<Axis> axes;
  std::uint64_t byte_offset = 0;
};

/// Lays axes out by a problem's strides=. Strides other than padded, transposed and interleaved
/// ones are taken as packed.
Placement spelled(std::vector<Axis> axes, Strides strides = Strides::packed);

/// Lays axes out in a random order with random gaps, an innermost stride of 1 to 3 and a byte
/// offset.
Placement scattered(std::vector<Axis> axes, Rng& rng);

/// Bytes between two guards, all of them 0xff (NaN) until they are written. They begin at a
/// multiple of 16.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t bytes);

  std::byte* data() { return all_.data() + kGuard; }
  std::size_t size() const { return all_.size() - 2 * kGuard; }

  /// The bytes and their guards.
  const std::vector<std::byte>& all() const { return all_; }

  /// Tells whether nothing was written into the guards.
  bool guards_intact() const;

 private:
  friend class StoredTensor;
  static constexpr std::size_t kGuard = 256;
  std::vector<std::byte> all_;
};

/// A tensor between guards; every byte is 0xff (NaN) until it is written.
class StoredTensor {
 public:
  StoredTensor(const char* name, DType dtype, const Placement& placement);
  StoredTensor(const StoredTensor&) = delete;  // the view points into the storage
  StoredTensor& operator=(const StoredTensor&) = delete;

  const TensorView& view() const { return view_; }
  const attest_tensor* abi() const { return &tensor_; }

  template <class... Index>
  double operator()(Index... index) const {
    return view_(index...);
  }

  /// Stores what draw() returns, element by element in logical order.
  template <class Draw>
  void fill(const Draw& draw) {
    for_each_element(view_, [&](auto... index) { view_.set(draw(), index...); });
  }

  /// Bits of every element in logical order, those above its width all ones: kUnwritten where
  /// nothing was written.
  std::vector<std::uint64_t> bits() const;

  /// Every byte, guards and gaps too.
  const std::vector<std::byte>& bytes() const { return storage_.all(); }

  /// Tells whether nothing was written at all.
  bool untouched() const;

  /// Tells whether nothing was written before, between and after the elements.
  /// [core/testing/kernel_call_test]
  bool gaps_intact() const;

 private:
  GuardedBytes storage_;
  TensorView view_;
  AbiTensor form_;
  attest_tensor tensor_;
};

inline constexpr std::uint64_t kUnwritten = ~std::uint64_t{0};

/// Bits of the tensors one after the other.
std::vector<std::uint64_t> bits_of(const std::vector<const StoredTensor*>& tensors);

/// How many elements nothing was written to.
std::int64_t unwritten(const std::vector<std::uint64_t>& bits);

}  // namespace attest::testing
