#include "gpu/simt/tensor_core/warp_product.hpp"

#include <bit>
#include <cstring>

#include "core/error.hpp"
#include "core/vector_clones.hpp"

namespace attest::simt {
namespace {

constexpr std::size_t kLanes = 32, kGroups = 8, kOfGroup = kLanes / kGroups;
using Words = std::array<std::uint32_t, kLanes>;
using Values = std::array<double, kLanes>;

// Values of the factors in a register: in double, in which products of float32's values are exact.
struct FromBf16 {
  static constexpr std::size_t kParts = 2;
  ATTEST_INLINE_CLONE static void widen(const Words& words, Values* parts) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      parts[0][lane] = static_cast<double>(std::bit_cast<float>(words[lane] << 16));
      parts[1][lane] = static_cast<double>(std::bit_cast<float>(words[lane] & 0xFFFF0000U));
    }
  }
};
struct FromF16 {
  static constexpr std::size_t kParts = 2;
  // The multiplication is exact, of subnormal numbers, too.
  ATTEST_INLINE_CLONE static double value(std::uint32_t half) {
    const std::uint32_t magnitude = (half & 0x7FFFU) << 13, sign = (half & 0x8000U) << 16;
    const std::uint32_t special = magnitude >= 0x0F800000U ? 0x7F800000U : 0;  // infinite or NaN
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112F;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(scaled) | special | sign;
    return static_cast<double>(std::bit_cast<float>(bits));
  }
  ATTEST_INLINE_CLONE static void widen(const Words& words, Values* parts) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      parts[0][lane] = value(words[lane] & 0xFFFFU);
      parts[1][lane] = value(words[lane] >> 16);
    }
  }
};
struct FromTf32 {
  static constexpr std::size_t kParts = 1;
  ATTEST_INLINE_CLONE static void widen(const Words& words, Values* parts) {
    constexpr std::uint32_t kIgnored = (1U << 13) - 1;  // below the 10 bits of the mantissa
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      parts[0][lane] = static_cast<double>(std::bit_cast<float>(words[lane] & ~kIgnored));
    }
  }
};

// A row of sums: of even columns, then of odd ones, as the registers have them.
using Row = double __attribute__((vector_size(kGroups * sizeof(double))));
using HalfRow = double __attribute__((vector_size(kOfGroup * sizeof(double))));
using NarrowHalfRow = float __attribute__((vector_size(kOfGroup * sizeof(float))));

ATTEST_INLINE_CLONE void load(Row& row, const float* even, const float* odd) {
  NarrowHalfRow first, second;
  std::memcpy(&first, even, sizeof first);
  std::memcpy(&second, odd, sizeof second);
  const auto low = __builtin_convertvector(first, HalfRow);
  const auto high = __builtin_convertvector(second, HalfRow);
  row = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}
ATTEST_INLINE_CLONE void store(const Row& row, float* even, float* odd) {
  const HalfRow low = __builtin_shufflevector(row, row, 0, 1, 2, 3);
  const HalfRow high = __builtin_shufflevector(row, row, 4, 5, 6, 7);
  const auto first = __builtin_convertvector(low, NarrowHalfRow);
  const auto second = __builtin_convertvector(high, NarrowHalfRow);
  std::memcpy(even, &first, sizeof first);
  std::memcpy(odd, &second, sizeof second);
}

// Rows of B from its columns, in the order of a row of sums: word 4 i + j goes to row j.
ATTEST_INLINE_CLONE void turn(Words& rows, const std::uint32_t* columns) {
  using Half = std::uint32_t __attribute__((vector_size(sizeof(Words) / 2)));
  Half low, high;
  std::memcpy(&low, columns, sizeof low);
  std::memcpy(&high, columns + kLanes / 2, sizeof high);
  const Half first = __builtin_shufflevector(low, high, 0, 8, 16, 24, 4, 12, 20, 28,  //
                                             1, 9, 17, 25, 5, 13, 21, 29);
  const Half second = __builtin_shufflevector(low, high, 2, 10, 18, 26, 6, 14, 22, 30,  //
                                              3, 11, 19, 27, 7, 15, 23, 31);
  std::memcpy(rows.data(), &first, sizeof first);
  std::memcpy(rows.data() + kLanes / 2, &second, sizeof second);
}

template <class From>
ATTEST_INLINE_CLONE void multiply_as(const WarpProduct& in, std::size_t depth) {
  constexpr std::size_t kParts = From::kParts, kMostRegisters = 2;
  const std::size_t registers = depth / (kOfGroup * kParts);
  alignas(64) Values a[2][kMostRegisters * kParts];
  alignas(64) Values b[kMostRegisters * kParts];  // by k, columns in the order of a row of sums
  Words words;
  for (std::size_t k = 0; k < registers; ++k) {
    for (std::size_t half = 0; half < 2; ++half) {
      std::memcpy(words.data(), in.a[2 * k + half], sizeof words);
      From::widen(words, &a[half][k * kParts]);
    }
    turn(words, in.b[k]);
    From::widen(words, &b[k * kParts]);
  }
  Row sums[2][kGroups];  // all of C before any of D, which may have the same registers
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t row = 0; row < kGroups; ++row) {
      load(sums[half][row], in.c[2 * half] + row * kOfGroup, in.c[2 * half + 1] + row * kOfGroup);
    }
  }
  for (std::size_t half = 0; half < 2; ++half) {
    // Four rows at once, so that no sum waits for the one before it.
    for (std::size_t row = 0; row < kGroups; row += 4) {
      Row* const four = &sums[half][row];
      Row first = four[0], second = four[1], third = four[2], fourth = four[3];
      for (std::size_t k = 0; k < registers * kParts; k += kParts) {
#pragma GCC unroll 4
        for (std::size_t j = 0; j < kOfGroup; ++j) {
#pragma GCC unroll 2
          for (std::size_t part = k; part < k + kParts; ++part) {
            Row factors;
            std::memcpy(&factors, &b[part][j * kGroups], sizeof factors);
            const double* const from = &a[half][part][row * kOfGroup + j];
            first += from[0] * factors;
            second += from[kOfGroup] * factors;
            third += from[2 * kOfGroup] * factors;
            fourth += from[3 * kOfGroup] * factors;
          }
        }
      }
      const Row* const results[] = {&first, &second, &third, &fourth};
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k) {
        const std::size_t lane = (row + k) * kOfGroup;
        store(*results[k], in.d[2 * half] + lane, in.d[2 * half + 1] + lane);
      }
    }
  }
}

ATTEST_VECTOR_CLONES void multiply_f16(const WarpProduct& in, std::size_t depth) {
  multiply_as<FromF16>(in, depth);
}
ATTEST_VECTOR_CLONES void multiply_bf16(const WarpProduct& in, std::size_t depth) {
  multiply_as<FromBf16>(in, depth);
}
ATTEST_VECTOR_CLONES void multiply_tf32(const WarpProduct& in, std::size_t depth) {
  multiply_as<FromTf32>(in, depth);
}

}  // namespace

void WarpProduct::multiply(Factor type, std::size_t depth) const {
  switch (type) {
    case Factor::f16:
      return multiply_f16(*this, depth);
    case Factor::bf16:
      return multiply_bf16(*this, depth);
    case Factor::tf32:
      return multiply_tf32(*this, depth);
    default:
      break;
  }
  throw InternalError("products of 8 bits are none of a WarpProduct");
}

}  // namespace attest::simt
