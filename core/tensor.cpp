#include "core/tensor.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "core/dtype/element.hpp"
#include "core/error.hpp"

namespace attest {
namespace {

// The float whose later rounding to 16 bits equals one rounding of `value`: round to odd keeps a
// sticky bit, and float has more than two bits to spare over both 16-bit formats.
float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(value) || static_cast<double>(nearest) == value) {
    return nearest;
  }
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;  // toward zero
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace

double round_to(DType dtype, double value) {
  if (dtype == DType::f64) return value;
  if (dtype == DType::f32) return static_cast<double>(static_cast<float>(value));
  const float nearby = round_to_odd(value);
  return visit_element(dtype, [nearby](auto element) {
    return static_cast<double>(element.load(element.store(nearby)));
  });
}

TensorView::TensorView(std::string_view name, void* data, DType dtype,
                       const std::vector<Axis>& axes)
    : name_(name), data_(data), dtype_(dtype), rank_(axes.size()) {
  if (axes.size() > kMaxRank) {
    throw InvalidProblem(std::string(name) + ": " + std::to_string(axes.size()) +
                         " axes, but at most 4 are supported; merge or drop axes");
  }
  for (std::size_t index = 0; index < axes.size(); ++index) {
    const Axis& axis = axes[index];
    if (axis.extent < 0 || axis.stride < 0) {
      throw InvalidProblem(std::string(name) + ": axis " + std::string(axis.name) + " has extent " +
                           std::to_string(axis.extent) + " and stride " +
                           std::to_string(axis.stride) + "; both must be >= 0");
    }
    axes_[index] = axis;
  }
  if (data == nullptr && size() > 0) {
    throw InvalidProblem(std::string(name) + ": no memory for " + std::to_string(size()) +
                         " elements; pass a data pointer");
  }
}

std::int64_t TensorView::span_elements() const {
  std::int64_t last = 0;
  for (std::size_t index = 0; index < rank_; ++index) {
    if (axes_[index].extent == 0) return 0;
    last += (axes_[index].extent - 1) * axes_[index].stride;
  }
  return last + 1;
}

double TensorView::at(std::int64_t i0, std::int64_t i1, std::int64_t i2, std::int64_t i3) const {
  const std::array<std::int64_t, kMaxRank> indices{i0, i1, i2, i3};
  for (std::size_t index = 0; index < kMaxRank; ++index) {
    const std::int64_t extent = index < rank_ ? axes_[index].extent : 1;
    if (indices[index] < 0 || indices[index] >= extent) {
      const std::string axis =
          index < rank_ ? std::string(axes_[index].name) : "beyond the last axis";
      throw InternalError(std::string(name_) + ": index " + std::to_string(indices[index]) +
                          " on axis " + axis + " is outside 0 .. " + std::to_string(extent - 1));
    }
  }
  return (*this)(i0, i1, i2, i3);
}

double TensorView::load_16_bits(std::int64_t offset) const {
  return visit_element(dtype_, [&](auto element) {
    using Stored = typename decltype(element)::Stored;
    return static_cast<double>(element.load(static_cast<const Stored*>(data_)[offset]));
  });
}

void TensorView::store_16_bits(std::int64_t offset, double value) const {
  const float nearby = round_to_odd(value);
  visit_element(dtype_, [&](auto element) {
    static_cast<typename decltype(element)::Stored*>(data_)[offset] = element.store(nearby);
  });
}

std::uint64_t TensorView::bits(std::int64_t i0, std::int64_t i1, std::int64_t i2,
                               std::int64_t i3) const {
  const std::size_t width = size_bytes(dtype_);
  const auto* element = static_cast<const std::byte*>(data_) +
                        static_cast<std::size_t>(offset(i0, i1, i2, i3)) * width;
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, width);
  return bits;
}

TensorView TensorView::permuted(const std::vector<std::size_t>& order) const {
  if (order.size() != rank_) {
    throw InternalError(std::string(name_) + ": permutation of " + std::to_string(order.size()) +
                        " axes, but rank is " + std::to_string(rank_));
  }
  TensorView view = *this;
  for (std::size_t index = 0; index < rank_; ++index) view.axes_[index] = axes_[order[index]];
  return view;
}

Tensor::Tensor(std::string_view name, DType dtype, std::vector<Axis> shape) {
  std::int64_t stride = 1;
  for (std::size_t index = shape.size(); index-- > 0;) {
    shape[index].stride = stride;
    stride *= shape[index].extent;
  }
  memory_ = zeros(static_cast<std::size_t>(stride) * size_bytes(dtype));
  view_ = TensorView(name, memory_.get(), dtype, shape);
}

Tensor::Memory Tensor::zeros(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  Memory memory(std::calloc(bytes, 1));
  if (!memory) throw std::bad_alloc();
  return memory;
}

Tensor::Tensor(const Tensor& other) { *this = other; }

Tensor& Tensor::operator=(const Tensor& other) {
  if (this == &other) return *this;
  const std::size_t bytes =
      static_cast<std::size_t>(other.view_.size()) * size_bytes(other.view_.dtype());
  memory_.reset();
  view_ = {};
  if (other.view_.rank() == 0) return *this;
  memory_ = zeros(bytes);
  if (bytes > 0) std::memcpy(memory_.get(), other.view_.data(), bytes);
  std::vector<Axis> axes;
  for (std::size_t index = 0; index < other.view_.rank(); ++index) {
    axes.push_back(other.view_.axis(index));
  }
  view_ = TensorView(other.view_.name(), memory_.get(), other.view_.dtype(), axes);
  return *this;
}

double* Tensor::doubles() {
  if (view_.dtype() != DType::f64) throw InternalError("Tensor::doubles: dtype is not f64");
  return static_cast<double*>(view_.data());
}

const double* Tensor::doubles() const { return const_cast<Tensor*>(this)->doubles(); }

AbiTensor::AbiTensor(const TensorView& view) {
  for (std::size_t index = 0; index < view.rank(); ++index) {
    shape_[index] = view.extent(index);
    strides_[index] = view.stride(index);
  }
  const DTypeFacts& dtype = facts(view.dtype());
  tensor_.data = view.data();
  tensor_.device = {ATTEST_CPU, 0};
  tensor_.ndim = static_cast<std::int32_t>(view.rank());
  tensor_.dtype = {dtype.dlpack_code, dtype.bits, 1};
  tensor_.shape = shape_.data();
  tensor_.strides = strides_.data();
  tensor_.byte_offset = 0;
}

TensorView view_of(const attest_tensor& tensor, std::string_view name,
                   const std::vector<std::string_view>& axes) {
  if (tensor.ndim != static_cast<std::int32_t>(axes.size())) {
    throw InvalidProblem(std::string(name) + ": " + std::to_string(tensor.ndim) + " axes, but " +
                         std::to_string(axes.size()) + " are needed");
  }
  for (const DTypeFacts& known : kDTypes) {
    if (tensor.dtype.code != known.dlpack_code || tensor.dtype.bits != known.bits ||
        tensor.dtype.lanes != 1) {
      continue;
    }
    std::vector<Axis> named;
    for (std::size_t index = 0; index < axes.size(); ++index) {
      named.push_back({axes[index], tensor.shape[index], tensor.strides[index]});
    }
    return {name, static_cast<std::byte*>(tensor.data) + tensor.byte_offset, known.dtype, named};
  }
  throw InvalidProblem(std::string(name) + ": dtype code " + std::to_string(tensor.dtype.code) +
                       " with " + std::to_string(tensor.dtype.bits) +
                       " bits is unknown; use f64, f32, bf16 or f16");
}

}  // namespace attest
