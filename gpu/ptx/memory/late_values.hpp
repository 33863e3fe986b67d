#pragma once

#include <cstdint>
#include <vector>

#include "gpu/ptx/program/program.hpp"

namespace attest::ptx {

class Warp;

/// Follows values that were read while another thread may write there, from register to register:
/// compilers let several threads load an element of which one stores the result, and the others'
/// values may go unused. Each lane's bit of a register tells whether it depends on such a value.
///
/// A value matters as soon as memory, an address, control flow or what leaves the warp depends on
/// it. Instructions are taken to depend on all that they read.
/// [gpu/ptx/memory/late_values_test]
class LateValues {
 public:
  /// Forgets all; follows values from now on, or none.
  void begin(bool is_on, std::size_t register_bytes);
  bool is_on() const { return is_on_; }

  /// Follows what an instruction is about to do with them; returns whether one matters.
  bool pass_on(const Warp& warp, const Instruction& in);
  /// The lanes have read such values to the instruction's results.
  void add(const Instruction& in, std::uint32_t lanes);

 private:
  std::uint32_t& at(std::uint32_t slot) { return lanes_[slot / kSlotBytes]; }

  static constexpr std::size_t kSlotBytes = 64;  // slots are multiples of it
  bool is_on_ = false, any_ = false;
  std::vector<std::uint32_t> lanes_;  // by slot
};

}  // namespace attest::ptx
