#include "gpu/simt/tensor_core/group_product.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/vector_clones.hpp"
#include "gpu/simt/async/tensor_copy.hpp"
#include "gpu/simt/memory/access_order.hpp"

namespace attest::simt {
namespace {

constexpr std::uint32_t kRows = 64, kPiece = 16, kInnerBytes = 32, kWarps = 4;
// Descriptors count in elements of 16 bits, whatever the type.
constexpr std::uint32_t kInner = kInnerBytes / 2, kElements = kPiece / 2;

struct Operand {
  MatrixDescriptor matrix;
  Major major;
  std::uint32_t rows;
};

// function(row, k, address) for each piece of 8 elements.
template <class Function>
void for_each_piece(const Operand& operand, Function&& function) {
  const bool by_k = operand.major == Major::k;
  for (std::uint32_t row = 0; row < operand.rows; row += by_k ? 1 : kElements) {
    for (std::uint32_t k = 0; k < kInner; k += by_k ? kElements : 1) {
      const std::uint32_t offset = piece_offset(operand.matrix, operand.major, row, k);
      function(row, k, swizzled(operand.matrix.start + offset, operand.matrix.swizzle));
    }
  }
}

Operand a_of(const GroupProduct& product) {
  return {decode(product.a_matrix), product.a_major, kRows};
}
Operand b_of(const GroupProduct& product) {
  return {decode(product.b_matrix), product.b_major, product.columns};
}

template <class Function>
void for_each_operand(const GroupProduct& product, Function&& function) {
  if (!product.a_in_registers) function(a_of(product));
  function(b_of(product));
}

// Values row by row, or k by k.
struct Matrix {
  std::vector<float> values;
  std::size_t row_stride, k_stride;

  float& at(std::size_t row, std::size_t k) { return values[row * row_stride + k * k_stride]; }
};

void load(const SharedMemory& shared, const Operand& operand, Factor type, Matrix& matrix) {
  const std::uint32_t bits = bits_of(type);
  for_each_piece(operand, [&](std::uint32_t row, std::uint32_t k, std::uint32_t address) {
    std::array<std::uint32_t, kPiece / 4> words{};
    std::memcpy(words.data(), shared.at(address, kPiece), kPiece);
    for (std::uint32_t e = 0; e < kPiece * 8 / bits; ++e) {
      const float value = value_of(words[e * bits / 32], e * bits % 32, type);
      if (operand.major == Major::k) {
        matrix.at(row, k * 16 / bits + e) = value;
      } else {
        matrix.at(row + e, k) = value;
      }
    }
  });
}

// PTX ISA, wgmma.mma_async, register fragments of A: each warp has 16 rows, as mma.m16n8 has.
void load_fragments(std::span<const std::uint32_t> fragments, Factor type, Matrix& matrix) {
  const std::uint32_t bits = bits_of(type), parts = 32 / bits;
  for (std::size_t lane = 0; lane < kWarpgroupLanes; ++lane) {
    const std::size_t first = lane / 32 * 16 + lane % 32 / 4;
    for (std::size_t word = 0; word < kFragmentWords; ++word) {
      for (std::uint32_t part = 0; part < parts; ++part) {
        const std::size_t k = (lane % 4 + 4 * (word / 2)) * parts + part;
        matrix.at(first + 8 * (word % 2), k) =
            value_of(fragments[lane * kFragmentWords + word], bits * part, type);
      }
    }
  }
}

// By rows, so that the columns' sums, each in the order of k, are computed together.
ATTEST_VECTOR_CLONES
void multiply(const float* a, const float* b, float* d, std::size_t inner, std::size_t columns,
              bool adds, double sign, bool has_half_sums) {
  constexpr std::size_t kTogether = 8;  // columns come by eights
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t first = 0; first < columns; first += kTogether) {
      float* const sums_of = d + row * columns + first;
      std::array<double, kTogether> sums{};
      for (std::size_t c = 0; adds && c < kTogether; ++c) {
        sums[c] = static_cast<double>(sums_of[c]);
      }
      for (std::size_t k = 0; k < inner; ++k) {
        const double factor = sign * static_cast<double>(a[row * inner + k]);
        for (std::size_t c = 0; c < kTogether; ++c) {
          sums[c] += factor * static_cast<double>(b[k * columns + first + c]);  // exact product
        }
      }
      for (std::size_t c = 0; c < kTogether; ++c) {
        sums_of[c] = has_half_sums ? nearest_f16_of(sums[c]) : static_cast<float>(sums[c]);
      }
    }
  }
}

}  // namespace

std::optional<Finding> misplaced(const SharedMemory& shared, const GroupProduct& product) {
  std::optional<Finding> found;
  for_each_operand(product, [&](const Operand& operand) {
    // Swizzles go by addresses, as those of tensor copies do, wherever a matrix begins.
    if (operand.matrix.base_offset != 0) {
      found = {Fault::misaligned, "a matrix at byte " + std::to_string(operand.matrix.start) +
                                      " of shared memory has a base offset, which is not emulated"};
    }
    for_each_piece(operand, [&](std::uint32_t row, std::uint32_t k, std::uint32_t address) {
      if (found || shared.at(address, kPiece) != nullptr) return;
      found = {Fault::out_of_bounds, "wgmma reads row " + std::to_string(row) + ", k " +
                                         std::to_string(k) + " at byte " + std::to_string(address) +
                                         " of shared memory, where there is no variable"};
    });
  });
  return found;
}

std::optional<Finding> begin_reads(SharedMemory& shared, const GroupProduct& product,
                                   std::uint32_t group) {
  std::optional<Finding> first;
  if (!shared.is_checked()) return first;
  const SharedMemory::Readers readers{group * kWarpgroupLanes, AccessOrder::kWarpLanes, kWarps};
  for_each_operand(product, [&](const Operand& operand) {
    for_each_piece(operand, [&](std::uint32_t, std::uint32_t, std::uint32_t address) {
      auto found = shared.begin_async_read(shared.at(address, kPiece), kPiece, readers);
      if (first || !found) return;
      found->text = "wgmma of warpgroup " + std::to_string(group) + " " + found->text;
      first = std::move(found);
    });
  });
  return first;
}

void end_reads(SharedMemory& shared, const GroupProduct& product, std::uint32_t group) {
  if (!shared.is_checked()) return;
  const std::uint32_t engine = shared.order().engine(group);
  for_each_operand(product, [&](const Operand& operand) {
    for_each_piece(operand, [&](std::uint32_t, std::uint32_t, std::uint32_t address) {
      shared.end_async_read(shared.at(address, kPiece), kPiece, engine);
    });
  });
}

void come_after_reads(SharedMemory& shared, std::uint32_t group) {
  AccessOrder& order = shared.order();
  if (!shared.is_checked() || !order.has_hand_overs()) return;
  AccessOrder::Clock clock;
  order.release(order.engine(group), clock);
  for (std::uint32_t k = 0; k < kWarpgroupLanes; ++k) {
    order.acquire(group * kWarpgroupLanes + k, clock);
  }
}

void carry_out(const SharedMemory& shared, const GroupProduct& product,
               std::span<const std::uint32_t> fragments, std::span<float> d) {
  const std::size_t inner = std::size_t{kInnerBytes} * 8 / bits_of(product.type);
  Matrix a{std::vector<float>(kRows * inner), inner, 1};
  Matrix b{std::vector<float>(product.columns * inner), 1, product.columns};
  if (product.a_in_registers) {
    load_fragments(fragments, product.type, a);
  } else {
    load(shared, a_of(product), product.type, a);
  }
  load(shared, b_of(product), product.b_type.value_or(product.type), b);
  multiply(a.values.data(), b.values.data(), d.data(), inner, product.columns, product.adds,
           product.is_negative ? -1.0 : 1.0, product.has_half_sums);
}

}  // namespace attest::simt
