#pragma once

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "core/rng.hpp"
#include "gpu/ptx/memory/tensor_map.hpp"
#include "gpu/ptx/testing/launches.hpp"

/// gpu/simt/testing's pipelined_product as nvcc compiled it for sm_90a: tensor copies, mbarriers
/// and products of a warpgroup together.
namespace attest::ptx::testing {

struct Pipeline {
  static constexpr std::size_t kRows = 64, kColumns = 32, kInner = 64, kTiles = 3;  // of a block
  static constexpr unsigned kThreads = 160;
  static constexpr std::int64_t kSharedBytes =
      2 * (kRows + kColumns) * kInner * 2 + kRows * kColumns * 4;

  static std::vector<std::uint16_t> random_rows(std::uint64_t seed, std::size_t rows) {
    std::vector<std::uint16_t> values(rows * kInner * kTiles);
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = bf16_from_float(static_cast<float>(mix(seed, k) % 17) - 8.0F);
    }
    return values;
  }

  // A map is the first half of the kernel's parameter; the other describes the tensor to it.
  using Parameter = std::array<std::byte, 2 * kTensorMapBytes>;
  template <class T>
  static Parameter map_of(const std::vector<T>& data, std::size_t rows, std::size_t columns,
                          std::size_t box_rows, std::size_t box_columns, simt::Swizzle swizzle) {
    simt::TensorShape shape;
    shape.element = sizeof(T) == 2 ? simt::Element::bf16 : simt::Element::f32;
    shape.extents[0] = static_cast<std::int64_t>(columns);
    shape.extents[1] = static_cast<std::int64_t>(rows);
    shape.stride_bytes[0] = static_cast<std::int64_t>(columns * sizeof(T));
    shape.box[0] = static_cast<int>(box_columns);
    shape.box[1] = static_cast<int>(box_rows);
    shape.swizzle = swizzle;
    Parameter parameter{};
    const TensorMapBytes map = encode_tensor_map(data.data(), shape);
    std::memcpy(parameter.data(), map.data(), map.size());
    return parameter;
  }

  std::vector<std::uint16_t> a = random_rows(1, kRows), b = random_rows(2, kColumns);
  std::vector<float> c = std::vector<float>(kRows * kColumns, 7777.0F);

  simt::LaunchReport operator()(const std::string& text, simt::Order order) {
    Call call(text);
    call.memory("A", a).memory("B", b).memory("C", c);
    call.value(map_of(a, kRows, kInner * kTiles, kRows, kInner, simt::Swizzle::bytes_128));
    call.value(map_of(b, kColumns, kInner * kTiles, kColumns, kInner, simt::Swizzle::bytes_128));
    call.value(map_of(c, kRows, kColumns, kRows, kColumns, simt::Swizzle::none));
    call.value(static_cast<std::uint32_t>(kTiles)).value(std::uint8_t{0});
    return call.run(1, kThreads, kSharedBytes, order);
  }

  bool is_right() const {
    for (std::size_t k = 0; k < c.size(); ++k) {
      float sum = 0.0F;  // whole numbers: exact
      for (std::size_t i = 0; i < kInner * kTiles; ++i) {
        sum += float_from_bf16(a[k / kColumns * kInner * kTiles + i]) *
               float_from_bf16(b[k % kColumns * kInner * kTiles + i]);
      }
      if (c[k] != sum) return false;
    }
    return true;
  }
};

}  // namespace attest::ptx::testing
