#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/ptx/program/opcodes.hpp"
#include "gpu/ptx/text/module.hpp"
#include "gpu/simt/diagnosis.hpp"

/// Checked program: opcodes found in the table, names resolved, types and widths compared.
namespace attest::ptx {

inline constexpr std::size_t kWarpLanes = 32;

/// Lanes that get a value of those lanes.
using Receivers = std::uint32_t (*)(const Warp& warp, const Instruction& in, std::uint32_t lanes);

enum class Rounding : std::uint8_t { nearest, zero, down, up };

/// Address of an access: the register at a slot, of 64 bits or of 32, and an offset.
struct Address {
  std::uint32_t slot = 0;
  bool is_wide = true;
  std::int64_t offset = 0;
};

/// Instruction ready to be executed. Its slots are places among a warp's registers: of each operand
/// in the order of its form, immediates among them, for each lane has its value in a row.
struct Instruction {
  Execute execute = nullptr;
  std::vector<std::uint32_t> slots;
  std::vector<std::uint32_t> widths;  // of the slots, in bytes: registers may be wider than types
  std::uint32_t results = 0;          // so many of the first slots are written
  std::uint32_t negated = 0;          // slots that are predicates with "!" before them, as bits

  bool has_predicate = false, is_predicate_negated = false;
  std::uint32_t predicate = 0;  // slot

  Reach reach = Reach::beyond;
  Receivers receivers = nullptr;  // of a shuffle

  Rounding rounding = Rounding::nearest;
  bool ftz = false, sat = false;

  std::vector<std::uint64_t> immediates;  // "#i", in their order
  std::uint32_t variant = 0;              // as its family numbers them
  std::uint32_t product_registers = 0;    // so many slots are registers that a wgmma takes
  Execute watched = nullptr;              // carried out after a look at such registers
  std::size_t target = 0;                 // of a branch; those of an indexed one are immediates
  bool is_partial_barrier = false;        // of a number of threads, or without a wait

  // Accesses to memory.
  Space space = Space::global;
  bool is_generic = false, is_signed = false;
  bool is_strong = false;   // a load or store of a word that several threads use at once
  bool of_device = true;    // a strong access that other blocks see as such
  bool is_release = false;  // of what comes before, to other blocks
  std::uint32_t element_bytes = 0, elements = 1;
  std::vector<Address> addresses;

  int line = 0;             // of the PTX
  simt::SourceLine source;  // of what was compiled; the PTX's own where that is unknown
};

/// Registers whose values the hardware gives.
enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  dynamic_smem_size,
  total_smem_size,
};

struct Program {
  struct Parameter {
    std::string name;
    std::size_t offset, bytes;
  };
  struct SpecialSlot {
    Special special;
    std::uint32_t slot;
  };
  // Variables of the module in global and constant memory, which outlive a launch.
  struct Resident {
    std::string name;
    std::size_t bytes;
    bool is_constant;
    std::unique_ptr<std::byte[]> memory;
    std::byte* data;  // aligned
  };

  std::string name;
  std::vector<Instruction> code;
  std::vector<std::byte> registers;  // of a warp as it begins: constants, the others NaN
  std::vector<SpecialSlot> specials;
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0, local_bytes = 0;
  std::size_t static_shared_bytes = 0;  // before the extern ones
  std::size_t extern_shared_alignment = 16;
  std::vector<Resident> residents;
  std::vector<std::uint64_t> required_threads;

  /// Where extern shared memory begins, after the static variables.
  std::size_t extern_shared_offset() const {
    const std::size_t alignment = extern_shared_alignment;
    return (static_shared_bytes + alignment - 1) / alignment * alignment;
  }
  /// Bytes of shared memory of a block whose launch brings so many.
  std::size_t shared_bytes(std::size_t dynamic_bytes) const {
    return dynamic_bytes == 0 ? static_shared_bytes : extern_shared_offset() + dynamic_bytes;
  }
};

/// Checks the kernel of that name; the only one where the name is empty.
///
/// Throws InvalidProblem with line and column for an opcode, modifier or operand that is not
/// carried out, an unknown or repeated name, a width that does not fit.
/// [gpu/ptx/program/program_test]
Program check(const Module& module, const std::string& kernel = "");

}  // namespace attest::ptx
