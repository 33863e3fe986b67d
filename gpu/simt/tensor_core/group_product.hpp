#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/memory/shared_memory.hpp"
#include "gpu/simt/tensor_core/factor.hpp"
#include "gpu/simt/tensor_core/matrix_descriptor.hpp"

/// One product of a warpgroup, whoever emulates the warpgroup: its operands, checks and arithmetic.
namespace attest::simt {

inline constexpr std::uint32_t kWarpgroupLanes = 128;

/// D = ±A ±B + D, or without "+ D": (64, k) by (k, columns) for 32 bytes of k, as wgmma.mma_async
/// names it. All lanes of a warpgroup give the same.
struct GroupProduct {
  std::uint64_t a_matrix = 0, b_matrix = 0;  // descriptors
  std::uint32_t columns = 0;
  Factor type = Factor::bf16;
  Major a_major = Major::k, b_major = Major::k;
  bool adds = true;
  bool a_in_registers = false;     // then a_matrix says nothing
  bool is_negative = false;        // one of the factors is taken with a minus
  bool has_half_sums = false;      // D is of f16, not of float32
  std::optional<Factor> b_type{};  // where it is another than A's, of as many bits

  /// Registers of D that a lane has: two sums of f16 share one.
  std::uint32_t sum_registers() const { return columns / (has_half_sums ? 4 : 2); }

  friend bool operator==(const GroupProduct&, const GroupProduct&) = default;
};

/// Words of a fragment of A that a lane has.
inline constexpr std::uint32_t kFragmentWords = 4;

/// The place in D (64 x columns, row by row) of a lane's k-th accumulator (PTX ISA,
/// wgmma.mma_async, register fragments of D).
constexpr std::size_t accumulator_place(std::size_t lane, std::size_t k, std::size_t columns) {
  const std::size_t row = lane / 32 * 16 + lane % 32 / 4 + k / 2 % 2 * 8;
  return row * columns + k / 4 * 8 + lane % 4 * 2 + k % 2;
}

/// Returns why a product cannot be carried out: an operand leaves shared memory, or has a base
/// offset.
std::optional<Finding> misplaced(const SharedMemory& shared, const GroupProduct& product);

/// It begins to read its operands in shared memory, or has read them.
std::optional<Finding> begin_reads(SharedMemory& shared, const GroupProduct& product,
                                   std::uint32_t group);
void end_reads(SharedMemory& shared, const GroupProduct& product, std::uint32_t group);
/// Orders what the warpgroup's lanes do now after the reads that have ended.
void come_after_reads(SharedMemory& shared, std::uint32_t group);

/// Computes D. `fragments`: of A, lane by lane. Factors' products are exact and summed in float64
/// in the order of k, then rounded once to D's type.
void carry_out(const SharedMemory& shared, const GroupProduct& product,
               std::span<const std::uint32_t> fragments, std::span<float> d);

}  // namespace attest::simt
