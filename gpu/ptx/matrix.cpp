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

// `.sync.aligned`: all lanes of the warp, else undefined.
bool is_whole(const Warp& warp, const Instruction& in) {
  if (warp.mask() == kAllLanes) return true;
  const bool has_ended = warp.live() != kAllLanes;
  warp.block().report({has_ended ? Fault::exited_lane : Fault::divergence,
                       "an instruction of the whole warp is executed by some of its lanes"},
                      in);
  return false;
}

// Where lane 4 i + j has the halves of its register of a matrix: (i, 2 j) and (i, 2 j + 1), the
// transposed way (2 j, i) and (2 j + 1, i).
struct Place {
  std::size_t row, column;
};
Place place_of(std::size_t lane, std::size_t half, bool is_transposed) {
  const Place place{lane / 4, lane % 4 * 2 + half};
  return is_transposed ? Place{place.column, place.row} : place;
}

template <bool kTransposed>
void load_matrices(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  std::array<Row, kWarpLanes> rows;
  for (std::uint32_t lane = 0; lane < kRow * in.elements; ++lane) {  // eight for a matrix
    const std::uint64_t address = address_of(warp, in.addresses[0], lane);
    const std::byte* const from =
        access(warp, in, Space::shared, address, lane, sizeof(Row), Use::read);
    rows[lane].fill(0xFFFF);  // a NaN of both types
    if (from != nullptr) std::memcpy(rows[lane].data(), from, sizeof(Row));
  }
  for (std::size_t matrix = 0; matrix < in.elements; ++matrix) {
    Lanes<std::uint32_t> words{};
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      for (std::size_t half = 0; half < 2; ++half) {
        const Place place = place_of(lane, half, kTransposed);
        words[lane] |= std::uint32_t{rows[kRow * matrix + place.row][place.column]} << 16 * half;
      }
    }
    warp.write(in.slots[matrix], words);
  }
}

template <bool kTransposed>
void store_matrices(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  std::array<Row, kWarpLanes> rows{};
  for (std::size_t matrix = 0; matrix < in.elements; ++matrix) {
    const auto& words = warp.read<std::uint32_t>(in.slots[matrix]);
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      for (std::size_t half = 0; half < 2; ++half) {
        const Place place = place_of(lane, half, kTransposed);
        rows[kRow * matrix + place.row][place.column] =
            static_cast<std::uint16_t>(words[lane] >> 16 * half);
      }
    }
  }
  for (std::uint32_t lane = 0; lane < kRow * in.elements; ++lane) {
    const std::uint64_t address = address_of(warp, in.addresses[0], lane);
    const void* const row = rows[lane].data();
    std::byte* const to =
        access(warp, in, Space::shared, address, lane, sizeof(Row), Use::write, row);
    if (to != nullptr) std::memcpy(to, row, sizeof(Row));
  }
}

Execute loads(const Spelling& spelling, Instruction&) {
  return spelling.has("trans") ? load_matrices<true> : load_matrices<false>;
}
Execute stores(const Spelling& spelling, Instruction&) {
  return spelling.has("trans") ? store_matrices<true> : store_matrices<false>;
}

float from_tf32(std::uint32_t bits) {
  constexpr std::uint32_t kIgnored = (1U << 13) - 1;  // below the 10 bits of the mantissa
  return std::bit_cast<float>(bits & ~kIgnored);
}

// A register of 16-bit factors has two of a row, of tf32 one.
enum class Factor : std::uint8_t { f16, bf16, tf32 };
template <Factor kFactor>
constexpr std::size_t kPerWord = kFactor == Factor::tf32 ? 1 : 2;

template <Factor kFactor>
float factor_of(std::uint32_t word, std::size_t part) {
  if constexpr (kFactor == Factor::tf32) return from_tf32(word);
  const auto half = static_cast<std::uint16_t>(word >> 16 * part);
  if constexpr (kFactor == Factor::f16) return float_from_f16(half);
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

// D = A B + C, 16 x 8, `kDepth` deep. Lane 4 i + j has of A rows i and i + 8, of B column i, and
// of both each fourth group of k from j on; of C columns 2 j and 2 j + 1.
template <Factor kFactor, std::size_t kDepth>
void multiply(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  constexpr std::size_t kParts = kPerWord<kFactor>, kSteps = kDepth / (4 * kParts);
  constexpr std::size_t kA = 4, kB = kA + 2 * kSteps, kC = kB + kSteps;  // first slots; D has four
  simt::FragmentA A{};
  simt::FragmentB B{};
  simt::FragmentC C{};
  for (std::size_t step = 0; step < kSteps; ++step) {
    const auto& upper = warp.read<std::uint32_t>(in.slots[kA + 2 * step]);
    const auto& lower = warp.read<std::uint32_t>(in.slots[kA + 2 * step + 1]);
    const auto& column = warp.read<std::uint32_t>(in.slots[kB + step]);
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t group = lane / 4, k = (4 * step + lane % 4) * kParts + part;
        A[group][k] = factor_of<kFactor>(upper[lane], part);
        A[group + 8][k] = factor_of<kFactor>(lower[lane], part);
        B[k][group] = factor_of<kFactor>(column[lane], part);
      }
    }
  }
  for (std::size_t word = 0; word < 4; ++word) {
    const auto& sums = warp.read<float>(in.slots[kC + word]);
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      C[lane / 4 + 8 * (word / 2)][lane % 4 * 2 + word % 2] = sums[lane];
    }
  }
  simt::multiply_fragments(A, B, C, kDepth);
  for (std::size_t word = 0; word < 4; ++word) {
    Lanes<float> values;
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      values[lane] = C[lane / 4 + 8 * (word / 2)][lane % 4 * 2 + word % 2];
    }
    warp.write(in.slots[word], values);
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
