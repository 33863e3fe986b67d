#include "gpu/ptx/products/matrix.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "gpu/ptx/arithmetic/lanes.hpp"
#include "gpu/ptx/memory/addresses.hpp"
#include "gpu/simt/tensor_core/warp_product.hpp"

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
  using Rows = std::uint16_t __attribute__((vector_size(sizeof(Row))));
  std::array<Rows, kRow> from, to;
  std::memcpy(from.data(), matrix.data(), sizeof matrix);
#pragma GCC unroll 3
  for (std::size_t pass = 0; pass < 3; ++pass) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kRow / 2; ++k) {
      const Rows a = from[k], b = from[k + kRow / 2];
      to[2 * k] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      to[2 * k + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    from = to;
  }
  Small result;
  std::memcpy(result.data(), from.data(), sizeof result);
  return result;
}

// The k-th eight lanes name the rows of matrix k. `matrices`: what a write brings.
template <class F>
void for_each_row(const Warp& warp, const Instruction& in, const Small* matrices, F&& function) {
  simt::SharedMemory& shared = warp.block().shared();
  const bool reads = matrices == nullptr;
  const auto how = reads ? simt::SharedMemory::Access::read : simt::SharedMemory::Access::write;
  const Lanes<std::uint64_t> addresses = addresses_of(warp, in.addresses[0]);
  const std::uint32_t first = BlockRun::number_of(warp, 0);
  for (std::uint32_t lane = 0; lane < kRow * in.elements; ++lane) {
    std::byte* data = shared.glance(addresses[lane], sizeof(Row), how, first + lane);
    if (data == nullptr) {
      const void* const row = reads ? nullptr : matrices[lane / kRow][lane % kRow].data();
      data = access(warp, in, Space::shared, addresses[lane], lane, sizeof(Row),
                    reads ? Use::read : Use::write, row);
    }
    function(lane, data);
  }
}

template <bool kTransposed>
void load_matrices(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  std::array<Small, kWarpLanes / kRow> matrices;
  for_each_row(warp, in, nullptr, [&](std::uint32_t lane, const std::byte* from) {
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
  for_each_row(warp, in, matrices.data(), [&](std::uint32_t lane, std::byte* to) {
    if (to != nullptr) std::memcpy(to, matrices[lane / kRow][lane % kRow].data(), sizeof(Row));
  });
}

void transpose(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  warp.at<Small>(in.slots[0])[0] = transposed(warp.read<Small>(in.slots[1])[0]);
}

Execute loads(const Spelling& spelling, Instruction&) {
  return spelling.has("trans") ? load_matrices<true> : load_matrices<false>;
}
Execute stores(const Spelling& spelling, Instruction&) {
  return spelling.has("trans") ? store_matrices<true> : store_matrices<false>;
}

template <simt::Factor kType, std::size_t kDepth>
void multiply(Warp& warp, const Instruction& in) {
  if (!is_whole(warp, in)) return;
  constexpr std::size_t kRegisters = kDepth / (kType == simt::Factor::tf32 ? 4 : 8);
  auto slot = in.slots.begin();
  simt::WarpProduct product;
  for (std::size_t k = 0; k < 4; ++k) product.d[k] = warp.at<float>(*slot++).data();
  for (std::size_t k = 0; k < 2 * kRegisters; ++k) {
    product.a[k] = warp.read<std::uint32_t>(*slot++).data();
  }
  for (std::size_t k = 0; k < kRegisters; ++k) {
    product.b[k] = warp.read<std::uint32_t>(*slot++).data();
  }
  for (std::size_t k = 0; k < 4; ++k) product.c[k] = warp.read<float>(*slot++).data();
  product.multiply(kType, kDepth);
}

constexpr Form kForms[] = {
    {"ldmatrix.sync.aligned.m8n8(.x1|.x2|.x4)[.trans](.shared|.shared::cta).b16", "{d:b32} [a]",
     loads},
    {"stmatrix.sync.aligned.m8n8(.x1|.x2|.x4)[.trans](.shared|.shared::cta).b16", "[a] {a:b32}",
     stores},
    {"movmatrix.sync.aligned.m8n8.trans.b16", "d:b32 a:b32", as<transpose>},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "{d:f32*4} {a:b32*4} {b:b32*2} {c:f32*4}",
     as<multiply<simt::Factor::f16, 16>>},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
     "{d:f32*4} {a:b32*4} {b:b32*2} {c:f32*4}", as<multiply<simt::Factor::bf16, 16>>},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "{d:f32*4} {a:b32*2} {b:b32*1} {c:f32*4}",
     as<multiply<simt::Factor::f16, 8>>},
    {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
     "{d:f32*4} {a:b32*2} {b:b32*1} {c:f32*4}", as<multiply<simt::Factor::bf16, 8>>},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
     "{d:f32*4} {a:b32*4} {b:b32*2} {c:f32*4}", as<multiply<simt::Factor::tf32, 8>>},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
     "{d:f32*4} {a:b32*2} {b:b32*1} {c:f32*4}", as<multiply<simt::Factor::tf32, 4>>},
};

}  // namespace

bool is_whole(const Warp& warp, const Instruction& in) {
  if (warp.mask() == kAllLanes) return true;
  const bool has_ended = warp.live() != kAllLanes;
  warp.block().report({has_ended ? Fault::exited_lane : Fault::divergence,
                       "an instruction of the whole warp is executed by some of its lanes"},
                      in);
  return false;
}

std::span<const Form> matrix_forms() { return kForms; }

}  // namespace attest::ptx
