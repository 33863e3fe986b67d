#include "core/testing/stored_tensor.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace attest::testing {
namespace {

constexpr std::byte kPoison{0xff};

bool poisoned(const std::byte* first, const std::byte* last) {
  return std::all_of(first, last, [](std::byte b) { return b == kPoison; });
}

std::vector<std::size_t> inner_first(const std::vector<Axis>& axes) {
  std::vector<std::size_t> order(axes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  return order;
}

// gap(stride) elements lie between two steps of the next axis.
template <class Gap>
std::vector<Axis> lay_out(std::vector<Axis> axes, const std::vector<std::size_t>& order,
                          std::int64_t stride, const Gap& gap) {
  for (const std::size_t axis : order) {
    axes[axis].stride = stride;
    stride = stride * std::max<std::int64_t>(axes[axis].extent, 1) + gap(stride);
  }
  return axes;
}

std::size_t bytes_spanned(const std::vector<Axis>& axes, DType dtype) {
  std::int64_t last = 1;
  for (const Axis& axis : axes) last += std::max<std::int64_t>(axis.extent - 1, 0) * axis.stride;
  return static_cast<std::size_t>(last) * size_bytes(dtype);
}

}  // namespace

Placement spelled(std::vector<Axis> axes, Strides strides) {
  std::vector<std::size_t> order = inner_first(axes);
  if (strides == Strides::transposed) std::rotate(order.begin(), order.begin() + 1, order.end());
  const std::int64_t innermost = strides == Strides::interleaved ? 2 : 1;
  return {lay_out(std::move(axes), order, innermost, [&](std::int64_t stride) {
    return strides == Strides::padded ? 3 * stride : 0;
  })};
}

Placement scattered(std::vector<Axis> axes, Rng& rng) {
  constexpr std::uint64_t kByteOffset = 128;
  std::vector<std::size_t> order = inner_first(axes);
  for (std::size_t last = order.size(); last > 1; --last) {
    const auto other = rng.between(0, static_cast<std::int64_t>(last) - 1);
    std::swap(order[last - 1], order[static_cast<std::size_t>(other)]);
  }
  const std::int64_t innermost = rng.between(1, 3);
  return {
      lay_out(std::move(axes), order, innermost, [&](std::int64_t) { return rng.between(0, 3); }),
      kByteOffset};
}

GuardedBytes::GuardedBytes(std::size_t bytes) : all_(bytes + 2 * kGuard, kPoison) {}

bool GuardedBytes::guards_intact() const {
  const std::byte* const first = all_.data();
  const std::byte* const last = first + all_.size();
  return poisoned(first, first + kGuard) && poisoned(last - kGuard, last);
}

StoredTensor::StoredTensor(const char* name, DType dtype, const Placement& placement)
    : storage_(bytes_spanned(placement.axes, dtype)),
      view_(name, storage_.data(), dtype, placement.axes),
      form_(view_),
      tensor_(*form_.get()) {
  tensor_.byte_offset = placement.byte_offset;
  tensor_.data = storage_.data() - placement.byte_offset;  // within the guard
}

std::vector<std::uint64_t> StoredTensor::bits() const {
  const std::size_t width = 8 * size_bytes(view_.dtype());
  const std::uint64_t above = width < 64 ? ~std::uint64_t{0} << width : 0;
  std::vector<std::uint64_t> bits;
  bits.reserve(static_cast<std::size_t>(view_.size()));
  for_each_element(view_, [&](auto... index) { bits.push_back(above | view_.bits(index...)); });
  return bits;
}

bool StoredTensor::untouched() const {
  return poisoned(bytes().data(), bytes().data() + bytes().size());
}

bool StoredTensor::gaps_intact() const {
  std::vector<std::byte> gaps = bytes();
  const std::size_t width = size_bytes(view_.dtype());
  for_each_element(view_, [&](auto... index) {
    std::int64_t element = 0;
    std::size_t axis = 0;
    for (const std::int64_t i : {index...}) {
      if (axis < view_.rank()) element += i * view_.stride(axis++);
    }
    std::fill_n(gaps.data() + GuardedBytes::kGuard + static_cast<std::size_t>(element) * width,
                width, kPoison);
  });
  return poisoned(gaps.data(), gaps.data() + gaps.size());
}

std::vector<std::uint64_t> bits_of(const std::vector<const StoredTensor*>& tensors) {
  std::vector<std::uint64_t> all;
  for (const StoredTensor* tensor : tensors) {
    const std::vector<std::uint64_t> bits = tensor->bits();
    all.insert(all.end(), bits.begin(), bits.end());
  }
  return all;
}

std::int64_t unwritten(const std::vector<std::uint64_t>& bits) {
  return std::count(bits.begin(), bits.end(), kUnwritten);
}

}  // namespace attest::testing
