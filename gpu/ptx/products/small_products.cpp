#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "core/dtype/dtype.hpp"
#include "gpu/ptx/execution/block_run.hpp"
#include "gpu/ptx/products/matrix.hpp"
#include "gpu/simt/tensor_core/factor.hpp"

/// mma.sync with factors of 8 bits, whole numbers too, and with accumulators of f16: rarer than the
/// products of matrix.cpp, and computed one sum after the other.
namespace attest::ptx {
namespace {

using simt::Factor;

constexpr std::size_t kRows = 16, kColumns = 8, kMostDepth = 32;

// PTX ISA, matrix fragments for mma.m16n8: lane 4 i + j has rows i and i + 8 of A, column i of B
// and columns 2 j, 2 j + 1 of C and D.
enum class Sum : std::uint8_t { f32, f16, s32, s32_that_stops };  // .satfinite: at the last number
struct Shape {
  Factor a, b;
  std::size_t depth;
  Sum sum;

  bool has_half_sums() const { return sum == Sum::f16; }
  std::size_t parts() const { return 32 / simt::bits_of(a); }
  std::size_t a_registers() const { return depth / parts() / 2; }
  std::size_t b_registers() const { return depth / parts() / 4; }
  std::size_t sum_registers() const { return has_half_sums() ? 2 : 4; }
};

std::uint32_t encoded(const Shape& shape) {
  return static_cast<std::uint32_t>(shape.a) | static_cast<std::uint32_t>(shape.b) << 8 |
         static_cast<std::uint32_t>(shape.depth) << 16 |
         static_cast<std::uint32_t>(shape.sum) << 24;
}
Shape decoded(std::uint32_t variant) {
  return {static_cast<Factor>(variant & 0xFFU), static_cast<Factor>(variant >> 8 & 0xFFU),
          variant >> 16 & 0xFFU, static_cast<Sum>(variant >> 24)};
}

using Sums = std::array<std::array<double, kColumns>, kRows>;

// A register of D: sums rounded once, two of f16 in one.
std::uint32_t word_of(Sum kind, const double* sums) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  switch (kind) {
    case Sum::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(sums[0]));
    case Sum::f16: {
      const auto half = [sums](int k) {
        return std::uint32_t{f16_from_float(simt::nearest_f16_of(sums[k]))};
      };
      return half(0) | half(1) << 16;
    }
    case Sum::s32:
      break;
    case Sum::s32_that_stops:
      return static_cast<std::uint32_t>(
          static_cast<std::int32_t>(std::clamp(sums[0], -kMost - 1.0, kMost)));
  }
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(sums[0]));
}

// function(register, lane, its columns in a row): two sums of f16 share a register.
template <class Function>
void for_each_sum(const Shape& shape, Sums& sums, Function&& function) {
  for (std::size_t k = 0; k < shape.sum_registers(); ++k) {
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::size_t upper = shape.has_half_sums() ? k : k / 2;
      const std::size_t column = lane % 4 * 2 + (shape.has_half_sums() ? 0 : k % 2);
      function(k, lane, &sums[lane / 4 + 8 * upper][column]);
    }
  }
}

void multiply(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  const Shape shape = decoded(in.variant);
  const std::size_t parts = shape.parts(), bits = simt::bits_of(shape.a);
  const std::uint32_t* const d = in.slots.data();
  const std::uint32_t* const a = d + shape.sum_registers();
  const std::uint32_t* const b = a + shape.a_registers();
  const std::uint32_t* const c = b + shape.b_registers();
  std::array<std::array<double, kMostDepth>, kRows> rows{};
  std::array<std::array<double, kMostDepth>, kColumns> columns{};
  const auto read = [&](std::uint32_t slot, std::size_t lane, std::size_t part, Factor type) {
    const auto shift = static_cast<std::uint32_t>(part * bits);
    return static_cast<double>(simt::value_of(warp.read<std::uint32_t>(slot)[lane], shift, type));
  };
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    for (std::size_t part = 0; part < parts; ++part) {
      for (std::size_t k = 0; k < shape.a_registers(); ++k) {
        rows[lane / 4 + 8 * (k % 2)][(lane % 4 + 4 * (k / 2)) * parts + part] =
            read(a[k], lane, part, shape.a);
      }
      for (std::size_t k = 0; k < shape.b_registers(); ++k) {
        columns[lane / 4][(lane % 4 + 4 * k) * parts + part] = read(b[k], lane, part, shape.b);
      }
    }
  }
  Sums sums{};
  for_each_sum(shape, sums, [&](std::size_t k, std::size_t lane, double* at) {
    const std::uint32_t word = warp.read<std::uint32_t>(c[k])[lane];
    const auto half = [word](int shift) {
      return static_cast<double>(float_from_f16(static_cast<std::uint16_t>(word >> shift)));
    };
    at[0] = shape.sum == Sum::f16   ? half(0)
            : shape.sum == Sum::f32 ? static_cast<double>(std::bit_cast<float>(word))
                                    : static_cast<double>(static_cast<std::int32_t>(word));
    if (shape.has_half_sums()) at[1] = half(16);
  });
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      for (std::size_t k = 0; k < shape.depth; ++k) {
        sums[row][column] += rows[row][k] * columns[column][k];
      }
    }
  }
  for_each_sum(shape, sums, [&](std::size_t k, std::size_t lane, const double* at) {
    warp.at<std::uint32_t>(d[k])[lane] = word_of(shape.sum, at);
  });
}

Factor factor_named(std::string_view name) {
  if (name == "s8") return Factor::s8;
  if (name == "u8") return Factor::u8;
  if (name == "e4m3") return Factor::e4m3;
  return name == "e5m2" ? Factor::e5m2 : Factor::f16;
}

Sum sum_of(const Spelling& spelling) {
  const std::string_view name = spelling.modifiers.back();
  if (name == "s32") return spelling.has("satfinite") ? Sum::s32_that_stops : Sum::s32;
  return name == "f16" ? Sum::f16 : Sum::f32;
}

// ".m16n8k32.row.col.f32.e4m3.e5m2.f32"
Execute products(const Spelling& spelling, Instruction& in) {
  const auto& words = spelling.modifiers;
  const std::size_t last = words.size() - 1;
  const std::size_t depth = spelling.has("m16n8k32") ? 32 : spelling.has("m16n8k16") ? 16 : 8;
  in.variant = encoded(
      {factor_named(words[last - 2]), factor_named(words[last - 1]), depth, sum_of(spelling)});
  return multiply;
}

constexpr Form kForms[] = {
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "{d:b32*2} {a:b32*4} {b:b32*2} {c:b32*2}",
     products},
    {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "{d:b32*2} {a:b32*2} {b:b32*1} {c:b32*2}",
     products},
    {"mma.sync.aligned.m16n8k32.row.col[.kind::f8f6f4].f32(.e4m3|.e5m2)(.e4m3|.e5m2).f32",
     "{d:f32*4} {a:b32*4} {b:b32*2} {c:f32*4}", products},
    {"mma.sync.aligned.m16n8k32.row.col[.kind::f8f6f4].f16(.e4m3|.e5m2)(.e4m3|.e5m2).f16",
     "{d:b32*2} {a:b32*4} {b:b32*2} {c:b32*2}", products},
    {"mma.sync.aligned.m16n8k32.row.col[.satfinite].s32(.s8|.u8)(.s8|.u8).s32",
     "{d:s32*4} {a:b32*4} {b:b32*2} {c:s32*4}", products},
    {"mma.sync.aligned.m16n8k16.row.col[.satfinite].s32(.s8|.u8)(.s8|.u8).s32",
     "{d:s32*4} {a:b32*2} {b:b32*1} {c:s32*4}", products},
    {"mma.sync.aligned.m16n8k16.row.col.f32(.e4m3|.e5m2)(.e4m3|.e5m2).f32",
     "{d:f32*4} {a:b32*2} {b:b32*1} {c:f32*4}", products},
};

}  // namespace

std::span<const Form> small_product_forms() { return kForms; }

}  // namespace attest::ptx
