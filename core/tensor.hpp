#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/dtype/dtype.hpp"

/// Strided tensors whose dtype is known at run time.
namespace attest {

/// One axis of a tensor: its name in messages, its extent, and its stride in elements (0 repeats
/// one element, negative strides are not used).
struct Axis {
  std::string_view name;
  std::int64_t extent = 0;
  std::int64_t stride = 0;
};

/// A view of at most four axes; does not own its memory. Elements are read and written as double:
/// reading is exact for every dtype, writing rounds once, to nearest even. Names are not copied:
/// pass literals.
class TensorView {
 public:
  static constexpr std::size_t kMaxRank = 4;

  TensorView() = default;

  /// Requires: at most four axes, extents >= 0, strides >= 0, data != nullptr unless empty.
  /// Else throws InvalidProblem naming the tensor and the axis.  [core/tensor_test "bad axes"]
  TensorView(std::string_view name, void* data, DType dtype, const std::vector<Axis>& axes);

  std::string_view name() const { return name_; }
  DType dtype() const { return dtype_; }
  std::size_t rank() const { return rank_; }
  const Axis& axis(std::size_t index) const { return axes_[index]; }
  std::int64_t extent(std::size_t index) const { return axes_[index].extent; }
  std::int64_t stride(std::size_t index) const { return axes_[index].stride; }
  void* data() const { return data_; }

  /// Number of elements; 1 for rank 0.
  std::int64_t size() const {
    std::int64_t count = 1;
    for (std::size_t index = 0; index < rank_; ++index) count *= axes_[index].extent;
    return count;
  }

  /// The element at the given indices (missing trailing ones are 0). No range check: hot.
  double operator()(std::int64_t i0, std::int64_t i1 = 0, std::int64_t i2 = 0,
                    std::int64_t i3 = 0) const {
    return load(offset(i0, i1, i2, i3));
  }

  /// As operator(), but throws InternalError naming tensor, axis, index and extent when an index is
  /// out of range.  [core/tensor_test "checked access names the axis"]
  double at(std::int64_t i0, std::int64_t i1 = 0, std::int64_t i2 = 0, std::int64_t i3 = 0) const;

  /// Stores the value rounded to the dtype (to nearest even; 16-bit types are rounded once from
  /// the double).  [core/tensor_test "16-bit stores"]
  void set(double value, std::int64_t i0, std::int64_t i1 = 0, std::int64_t i2 = 0,
           std::int64_t i3 = 0) const {
    store(offset(i0, i1, i2, i3), value);
  }

  /// The raw bits of an element, for bit-for-bit comparison.
  std::uint64_t bits(std::int64_t i0, std::int64_t i1 = 0, std::int64_t i2 = 0,
                     std::int64_t i3 = 0) const;

  /// Elements between the first and one past the last element addressed.
  std::int64_t span_elements() const;

  /// The same memory with another axis order; `order[k]` is the old index of the new axis k.
  TensorView permuted(const std::vector<std::size_t>& order) const;

 private:
  std::int64_t offset(std::int64_t i0, std::int64_t i1, std::int64_t i2, std::int64_t i3) const {
    return i0 * axes_[0].stride + i1 * axes_[1].stride + i2 * axes_[2].stride +
           i3 * axes_[3].stride;
  }
  double load(std::int64_t offset) const {
    if (dtype_ == DType::f32) return static_cast<double>(static_cast<const float*>(data_)[offset]);
    if (dtype_ == DType::f64) return static_cast<const double*>(data_)[offset];
    return load_16_bits(offset);
  }
  void store(std::int64_t offset, double value) const {
    if (dtype_ == DType::f32) {
      static_cast<float*>(data_)[offset] = static_cast<float>(value);
    } else if (dtype_ == DType::f64) {
      static_cast<double*>(data_)[offset] = value;
    } else {
      store_16_bits(offset, value);
    }
  }
  double load_16_bits(std::int64_t offset) const;
  void store_16_bits(std::int64_t offset, double value) const;

  std::string_view name_;
  void* data_ = nullptr;
  DType dtype_ = DType::f64;
  std::size_t rank_ = 0;
  std::array<Axis, kMaxRank> axes_{};
};

/// Rounds a double to the dtype (one rounding, to nearest even) and returns its value.
double round_to(DType dtype, double value);

/// A packed tensor that owns zero-initialised memory; the last axis has stride 1. Pages of a large
/// one cost nothing until something else than zero is stored in them.
class Tensor {
 public:
  Tensor() = default;
  /// `shape` lists name and extent; strides are filled in.
  Tensor(std::string_view name, DType dtype, std::vector<Axis> shape);

  const TensorView& view() const { return view_; }
  double operator()(std::int64_t i0, std::int64_t i1 = 0, std::int64_t i2 = 0,
                    std::int64_t i3 = 0) const {
    return view_(i0, i1, i2, i3);
  }
  void set(double value, std::int64_t i0, std::int64_t i1 = 0, std::int64_t i2 = 0,
           std::int64_t i3 = 0) {
    view_.set(value, i0, i1, i2, i3);
  }

  /// The elements of an f64 tensor, row-major. Requires dtype f64.
  double* doubles();
  const double* doubles() const;

  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  Tensor(Tensor&& other) noexcept = default;
  Tensor& operator=(Tensor&& other) noexcept = default;
  ~Tensor() = default;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<void, Free>;

  // Throws std::bad_alloc.
  static Memory zeros(std::size_t bytes);

  Memory memory_;
  TensorView view_;
};

/// The ABI's form of a view. Holds the shape and stride arrays the C struct points to.
class AbiTensor {
 public:
  explicit AbiTensor(const TensorView& view);
  AbiTensor(const AbiTensor&) = delete;
  AbiTensor& operator=(const AbiTensor&) = delete;
  const attest_tensor* get() const { return &tensor_; }

 private:
  std::array<std::int64_t, TensorView::kMaxRank> shape_{};
  std::array<std::int64_t, TensorView::kMaxRank> strides_{};
  attest_tensor tensor_{};
};

/// A view of an ABI tensor, axes named by `axes`.
/// Requires: lanes 1, a dtype known here, rank equal to the number of names. Else throws
/// InvalidProblem.
TensorView view_of(const attest_tensor& tensor, std::string_view name,
                   const std::vector<std::string_view>& axes);

}  // namespace attest
