#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "core/dtype.hpp"
#include "gpu/ptx/addresses.hpp"
#include "gpu/ptx/lanes.hpp"
#include "gpu/simt/tensor_core.hpp"

/// Matrices of a warp: ldmatrix, stmatrix and mma.sync, from PTX ISA's tables of fragments.
namespace attest::ptx {
namespace {

using simt::Fault;

constexpr std::size_t kRow = 8;  // elements of a row of a small matrix
using Row = std::array<std::uint16_t, kRow>;
// A small matrix by rows. A register of a warp holds one: lane 4 i + j has elements (i, 2 j) and
// (i, 2 j + 1), the first in the low half, which is the order of its bytes.
using Small = std::array<Row, kRow>;
static_assert(sizeof(Small) == sizeof(Lanes<std::uint32_t>));
static_assert(std::endian::native == std::endian::little);

// Rows k and k + 4 are interleaved, three times over: element 8 i + j moves to 8 j + i, as its
// index of six bits is turned by one each time.
Small transposed(const Small& matrix) {
  using Halves = std::uint16_t __attribute__((vector_size(sizeof(Row))));
  std::array<Halves, kRow> from, to;
  std::memcpy(from.data(), matrix.data(), sizeof matrix);
#pragma GCC unroll 3
  for (std::size_t pass = 0; pass < 3; ++pass) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kRow / 2; ++k) {
      const Halves a = from[k], b = from[k + kRow / 2];
      to[2 * k] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      to[2 * k + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    from = to;
  }
  Small result;
  std::memcpy(result.data(), from.data(), sizeof result);
  return result;
}

// `.sync.aligned`: all lanes of the warp, else undefined.
bool is_whole(const Warp& warp, const Instruction& in) {
  if (warp.mask() == kAllLanes) return true;
  const bool has_ended = warp.live() != kAllLanes;
  warp.block().report({has_ended ? Fault::exited_lane : Fault::divergence,
                       "an instruction of the whole warp is executed by some of its lanes"},
                      in);
  return false;
}

// The k-th eight lanes name the rows of matrix k.
template <class F>
void for_each_row(const Warp& warp, const Instruction& in, Use use, F&& function) {
  const Lanes<std::uint64_t> addresses = addresses_of(warp, in.addresses[0]);
  for (std::uint32_t lane = 0; lane < kRow * in.elements; ++lane) {
    function(lane, access(warp, in, Space::shared, addresses[lane], lane, sizeof(Row), use));
  }
}

template <bool kTransposed>
void load_matrices(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  std::array<Small, kWarpLanes / kRow> matrices;
  for_each_row(warp, in, Use::read, [&](std::uint32_t lane, const std::byte* from) {
    Row& row = matrices[lane / kRow][lane % kRow];
    row.fill(0xFFFF);  // a NaN of both types
    if (from != nullptr) std::memcpy(row.data(), from, sizeof(Row));
  });
  for (std::size_t k = 0; k < in.elements; ++k) {
    warp.at<Small>(in.slots[k])[0] = kTransposed ? transposed(matrices[k]) : matrices[k];
  }
}

template <bool kTransposed>
void store_matrices(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  std::array<Small, kWarpLanes / kRow> matrices;
  for (std::size_t k = 0; k < in.elements; ++k) {
    const Small& matrix = warp.read<Small>(in.slots[k])[0];
    matrices[k] = kTransposed ? transposed(matrix) : matrix;
  }
  for_each_row(warp, in, Use::write, [&](std::uint32_t lane, std::byte* to) {
    if (to != nullptr) std::memcpy(to, matrices[lane / kRow][lane % kRow].data(), sizeof(Row));
  });
}

Execute loads(const Spelling& spelling, Instruction&) {
  return spelling.has("trans") ? load_matrices<true> : load_matrices<false>;
}
Execute stores(const Spelling& spelling, Instruction&) {
  return spelling.has("trans") ? store_matrices<true> : store_matrices<false>;
}

enum class Factor : std::uint8_t { f16, bf16, tf32 };

// The same as float_from_f16, without a branch: the multiplication is exact, of subnormals too.
float from_f16(std::uint16_t bits) {
  const std::uint32_t magnitude = std::uint32_t{bits & 0x7FFFU} << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112F;
  const std::uint32_t special = magnitude >= 0x0F800000U ? 0x7F800000U : 0;  // infinite or NaN
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special |
                              std::uint32_t{bits & 0x8000U} << 16);
}
template <Factor kFactor>
float factor_of(std::uint16_t bits) {
  return kFactor == Factor::f16 ? from_f16(bits) : std::bit_cast<float>(std::uint32_t{bits} << 16);
}
float from_tf32(std::uint32_t bits) {
  constexpr std::uint32_t kIgnored = (1U << 13) - 1;  // below the 10 bits of the mantissa
  return std::bit_cast<float>(bits & ~kIgnored);
}

// Registers of 16-bit factors: a small matrix each, of B a transposed one.
template <Factor kFactor, std::size_t kDepth>
void read_factors(const Warp& warp, const std::uint32_t* slots, simt::FragmentA& A,
                  simt::FragmentB& B) {
  for (std::size_t word = 0; word < kDepth / 4; ++word) {
    const Small& part = warp.read<Small>(slots[word])[0];
    for (std::size_t row = 0; row < kRow; ++row) {
      float* const to = &A[row + kRow * (word % 2)][kRow * (word / 2)];
      for (std::size_t k = 0; k < kRow; ++k) to[k] = factor_of<kFactor>(part[row][k]);
    }
  }
  for (std::size_t word = 0; word < kDepth / 8; ++word) {
    const Small part = transposed(warp.read<Small>(slots[kDepth / 4 + word])[0]);
    for (std::size_t k = 0; k < kRow; ++k) {
      for (std::size_t column = 0; column < kRow; ++column) {
        B[k + kRow * word][column] = factor_of<kFactor>(part[k][column]);
      }
    }
  }
}
// Of tf32, a register holds half of one: four columns of A, four rows of B.
template <std::size_t kDepth>
void read_tf32(const Warp& warp, const std::uint32_t* slots, simt::FragmentA& A,
               simt::FragmentB& B) {
  for (std::size_t step = 0; step < kDepth / 4; ++step) {
    const auto& upper = warp.read<std::uint32_t>(slots[2 * step]);
    const auto& lower = warp.read<std::uint32_t>(slots[2 * step + 1]);
    const auto& column = warp.read<std::uint32_t>(slots[kDepth / 2 + step]);
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::size_t group = lane / 4, k = 4 * step + lane % 4;
      A[group][k] = from_tf32(upper[lane]);
      A[group + kRow][k] = from_tf32(lower[lane]);
      B[k][group] = from_tf32(column[lane]);
    }
  }
}

// D = A B + C, 16 x 8, `kDepth` deep. Lane 4 i + j has of C rows i and i + 8, columns 2 j and
// 2 j + 1.
template <Factor kFactor, std::size_t kDepth>
void multiply(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  constexpr std::size_t kA = 4;  // its first slot; D has four before it
  constexpr std::size_t kC = kA + (kFactor == Factor::tf32 ? 3 * kDepth / 4 : 3 * kDepth / 8);
  simt::FragmentA A;
  simt::FragmentB B;
  simt::FragmentC C;
  if constexpr (kDepth < 16) A = {}, B = {};
  if constexpr (kFactor == Factor::tf32) {
    read_tf32<kDepth>(warp, &in.slots[kA], A, B);
  } else {
    read_factors<kFactor, kDepth>(warp, &in.slots[kA], A, B);
  }
  for (std::size_t half = 0; half < 2; ++half) {
    const auto& even = warp.read<float>(in.slots[kC + 2 * half]);
    const auto& odd = warp.read<float>(in.slots[kC + 2 * half + 1]);
    float* const sums = &C[kRow * half][0];
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      sums[2 * lane] = even[lane];
      sums[2 * lane + 1] = odd[lane];
    }
  }
  simt::multiply_fragments(A, B, C, kDepth);
  for (std::size_t half = 0; half < 2; ++half) {
    auto& even = warp.at<float>(in.slots[2 * half]);
    auto& odd = warp.at<float>(in.slots[2 * half + 1]);
    const float* const sums = &C[kRow * half][0];
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      even[lane] = sums[2 * lane];
      odd[lane] = sums[2 * lane + 1];
    }
  }
}

constexpr Form kForms[] = {
    {"ldmatrix.sync.aligned.m8n8(.x1|.x2|.x4)[.trans](.shared|.shared::cta).b16", "{d:b32} [a]",
     loads},
    {"stmatrix.sync.aligned.m8n8(.x1|.x2|.x4)[.trans](.shared|.shared::cta).b16", "[a] {a:b32}",
     stores},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "{d:f32*4} {a:b32*4} {b:b32*2} {c:f32*4}",
     as<multiply<Factor::f16, 16>>},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
     "{d:f32*4} {a:b32*4} {b:b32*2} {c:f32*4}", as<multiply<Factor::bf16, 16>>},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "{d:f32*4} {a:b32*2} {b:b32*1} {c:f32*4}",
     as<multiply<Factor::f16, 8>>},
    {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
     "{d:f32*4} {a:b32*2} {b:b32*1} {c:f32*4}", as<multiply<Factor::bf16, 8>>},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
     "{d:f32*4} {a:b32*4} {b:b32*2} {c:f32*4}", as<multiply<Factor::tf32, 8>>},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
     "{d:f32*4} {a:b32*2} {b:b32*1} {c:f32*4}", as<multiply<Factor::tf32, 4>>},
};

}  // namespace

std::span<const Form> matrix_forms() { return kForms; }

}  // namespace attest::ptx
