#include "gpu/simt/tensor_core/tensor_core.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "core/dtype/dtype.hpp"
#include "gpu/simt/block.hpp"
#include "gpu/simt/tensor_core/warp_product.hpp"

namespace attest::simt {
namespace {

constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};
constexpr std::uint32_t kNaNs = ~std::uint32_t{0};  // in both types

// Element of a fragment's register: the low or the high half.
std::uint16_t half_of(std::uint32_t word, std::size_t part) {
  return static_cast<std::uint16_t>(word >> 16 * part);
}

template <class Call>
const Call& first_call(const Exchange& exchange) {
  const auto lane = static_cast<std::size_t>(std::countr_zero(exchange.lanes));
  return *static_cast<const Call*>(exchange.given[lane]);
}

// PTX ISA, `.sync.aligned`: all lanes of the warp, at the same instruction; else undefined.
template <class Call>
bool is_whole(Block& in, const Exchange& exchange, std::string_view operation) {
  const SourceLine here = first_call<Call>(exchange).where;
  for (const void* given : exchange.given) {
    if (given == nullptr) continue;
    const SourceLine where = static_cast<const Call*>(given)->where;
    if (where == here) continue;
    in.report_once(
        {Fault::divergence, "lanes of a warp come to different " + std::string(operation) +
                                ", here and at " + here.to_string()},
        where);
    return false;
  }
  if (exchange.lanes == kAllLanes) return true;
  in.report_once({Fault::exited_lane, std::string(operation) +
                                          " needs all lanes of the warp, of which some have " +
                                          "returned or never were"},
                 here);
  return false;
}

struct LoadCall {
  const std::byte* row;  // null where it may not be read
  std::uint32_t* fragments;
  std::uint32_t matrices;
  bool transposed;
  std::string_view operation;
  SourceLine where;
};

std::uint16_t element(const Exchange& exchange, std::uint32_t matrix, std::size_t row,
                      std::size_t column) {
  const auto& owner = *static_cast<const LoadCall*>(exchange.given[8 * matrix + row]);
  if (owner.row == nullptr) return half_of(kNaNs, 0);
  std::uint16_t bits = 0;
  std::memcpy(&bits, owner.row + column * sizeof bits, sizeof bits);
  return bits;
}

void finish_load(Block& in, std::uint32_t, const Exchange& exchange) {
  if (!is_whole<LoadCall>(in, exchange, first_call<LoadCall>(exchange).operation)) return;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const auto& call = *static_cast<const LoadCall*>(exchange.given[lane]);
    const std::size_t group = lane / 4, pair = lane % 4 * 2;
    for (std::uint32_t matrix = 0; matrix < call.matrices; ++matrix) {
      std::uint32_t word = 0;
      for (std::size_t part = 0; part < 2; ++part) {
        const std::uint16_t bits = call.transposed ? element(exchange, matrix, pair + part, group)
                                                   : element(exchange, matrix, group, pair + part);
        word |= std::uint32_t{bits} << 16 * part;
      }
      call.fragments[matrix] = word;
    }
  }
}

struct ProductCall {
  float* d;
  const std::uint32_t *a, *b;
  const float* c;
  Half type;
  SourceLine where;
};

// Registers of all lanes in a row each, from those that each lane has.
template <class T, std::size_t kCount>
struct Registers {
  std::array<std::array<T, kWarpLanes>, kCount> lanes;

  void set(std::size_t lane, const T* values) {
    for (std::size_t k = 0; k < kCount; ++k) lanes[k][lane] = values[k];
  }
};

void finish_product(Block& in, std::uint32_t, const Exchange& exchange) {
  if (!is_whole<ProductCall>(in, exchange, "mma.sync")) return;
  Registers<std::uint32_t, 4> a;
  Registers<std::uint32_t, 2> b;
  Registers<float, 4> sums;
  WarpProduct product;
  for (std::size_t k = 0; k < 4; ++k) {
    product.a[k] = a.lanes[k].data();
    if (k < 2) product.b[k] = b.lanes[k].data();
    product.c[k] = product.d[k] = sums.lanes[k].data();
  }
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const auto& call = *static_cast<const ProductCall*>(exchange.given[lane]);
    a.set(lane, call.a);
    b.set(lane, call.b);
    sums.set(lane, call.c);
  }
  constexpr std::size_t kDepth = 16;
  product.multiply(
      first_call<ProductCall>(exchange).type == Half::bf16 ? Factor::bf16 : Factor::f16, kDepth);
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const auto& call = *static_cast<const ProductCall*>(exchange.given[lane]);
    for (std::size_t k = 0; k < 4; ++k) call.d[k] = sums.lanes[k][lane];
  }
}

}  // namespace

void load_matrices(std::uint32_t* fragments, const void* row, std::uint32_t matrices,
                   bool transposed, std::string_view operation, SourceLine where) {
  constexpr std::size_t kRowBytes = 16;
  Block& block = Block::running();
  const Lane& lane = block.lane();
  LoadCall call{
      static_cast<const std::byte*>(row), fragments, matrices, transposed, operation, where};
  std::fill_n(fragments, matrices, kNaNs);
  if (lane.in_warp < 8 * matrices) {  // the others' addresses are not used
    if (reinterpret_cast<std::uintptr_t>(row) % kRowBytes != 0) {
      block.report_once({Fault::misaligned, "lane " + std::to_string(lane.number) +
                                                " names a row at no multiple of 16 bytes"},
                        where);
    }
    const auto finding =
        block.shared().check(row, kRowBytes, SharedMemory::Access::read, lane.number);
    if (finding) block.report_once(*finding, where);
    if (finding && finding->fault == Fault::out_of_bounds) call.row = nullptr;
  }
  block.collective(kAllLanes, operation, where, &call, nullptr, finish_load);
}

void multiply_matrices(float* d, const std::uint32_t* a, const std::uint32_t* b, const float* c,
                       Half type, SourceLine where) {
  const std::array<float, 4> sums{c[0], c[1], c[2], c[3]};  // d may be c
  std::fill_n(d, sums.size(), std::numeric_limits<float>::quiet_NaN());
  ProductCall call{d, a, b, sums.data(), type, where};
  Block::running().collective(kAllLanes,
                              type == Half::bf16 ? "mma.sync of bf16" : "mma.sync of f16", where,
                              &call, nullptr, finish_product);
}

std::uint32_t pack_halves(float high, float low, Half type) {
  const auto bits = type == Half::bf16 ? bf16_from_float : f16_from_float;
  return std::uint32_t{bits(high)} << 16 | bits(low);
}

}  // namespace attest::simt
