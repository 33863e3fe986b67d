#include "gpu/simt/tensor_core.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "core/dtype.hpp"
#include "core/vector_clones.hpp"
#include "gpu/simt/block.hpp"

namespace attest::simt {
namespace {

constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};
constexpr std::uint32_t kNaNs = ~std::uint32_t{0};  // in both types

// Element of a fragment's register: the low or the high half.
std::uint16_t half_of(std::uint32_t word, std::size_t part) {
  return static_cast<std::uint16_t>(word >> 16 * part);
}

float value_of(std::uint16_t bits, Half type) {
  return type == Half::bf16 ? float_from_bf16(bits) : float_from_f16(bits);
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

// PTX ISA, matrix fragments for mma.m16n8k16: register and half r of lane 4 i + j.
void finish_product(Block& in, std::uint32_t, const Exchange& exchange) {
  if (!is_whole<ProductCall>(in, exchange, "mma.sync")) return;
  FragmentA A{};
  FragmentB B{};
  FragmentC C{};
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const auto& call = *static_cast<const ProductCall*>(exchange.given[lane]);
    const std::size_t group = lane / 4, pair = lane % 4 * 2;
    for (std::size_t word = 0; word < 4; ++word) {
      for (std::size_t part = 0; part < 2; ++part) {
        A[group + 8 * (word % 2)][pair + part + 8 * (word / 2)] =
            value_of(half_of(call.a[word], part), call.type);
      }
    }
    for (std::size_t word = 0; word < 2; ++word) {
      for (std::size_t part = 0; part < 2; ++part) {
        B[pair + part + 8 * word][group] = value_of(half_of(call.b[word], part), call.type);
      }
    }
  }
  const auto each_sum = [&](auto&& function) {
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      const auto& call = *static_cast<const ProductCall*>(exchange.given[lane]);
      for (std::size_t word = 0; word < 4; ++word) {
        function(call, word, C[lane / 4 + 8 * (word / 2)][lane % 4 * 2 + word % 2]);
      }
    }
  };
  each_sum([](const ProductCall& call, std::size_t word, float& sum) { sum = call.c[word]; });
  multiply_fragments(A, B, C);
  each_sum([](const ProductCall& call, std::size_t word, float sum) { call.d[word] = sum; });
}

}  // namespace

// Four rows at once, so that no sum waits for the one before it; the columns of a row together,
// each summed in the order of k.
ATTEST_VECTOR_CLONES
void multiply_fragments(const FragmentA& A, const FragmentB& B, FragmentC& C, std::size_t depth) {
  constexpr std::size_t kColumns = 8;
  using Sums = double __attribute__((vector_size(kColumns * sizeof(double))));
  std::array<std::array<double, 16>, 16> a;
  std::array<Sums, 16> b, c;
  for (std::size_t row = 0; row < A.size(); ++row) {
    for (std::size_t k = 0; k < A[row].size(); ++k) a[row][k] = static_cast<double>(A[row][k]);
  }
  for (std::size_t k = 0; k < B.size(); ++k) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      b[k][column] = static_cast<double>(B[k][column]);
    }
  }
  for (std::size_t row = 0; row < C.size(); ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      c[row][column] = static_cast<double>(C[row][column]);
    }
  }
  for (std::size_t row = 0; row < A.size(); row += 4) {
    Sums first = c[row], second = c[row + 1], third = c[row + 2], fourth = c[row + 3];
    for (std::size_t k = 0; k < depth; ++k) {  // exact products
      first += a[row][k] * b[k];
      second += a[row + 1][k] * b[k];
      third += a[row + 2][k] * b[k];
      fourth += a[row + 3][k] * b[k];
    }
    c[row] = first;
    c[row + 1] = second;
    c[row + 2] = third;
    c[row + 3] = fourth;
  }
  for (std::size_t row = 0; row < C.size(); ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      C[row][column] = static_cast<float>(c[row][column]);
    }
  }
}

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
