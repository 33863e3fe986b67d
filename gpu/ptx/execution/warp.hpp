#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gpu/ptx/memory/late_values.hpp"
#include "gpu/ptx/program/program.hpp"

namespace attest::ptx {

class BlockRun;

template <class T>
using Lanes = std::array<T, kWarpLanes>;

inline constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};

/// 32 lanes that execute one instruction at a time.
///
/// Lanes at different places form groups; the group whose program counter is least goes on, and
/// takes along those that it meets: lanes reconverge where paths join, without an analysis of the
/// control flow.
class Warp {
 public:
  struct Group {
    std::size_t pc = 0;
    std::uint32_t lanes = 0;
  };
  enum class State : std::uint8_t { running, yielding, at_barrier, ended };

  /// Begins at the first instruction with those lanes.
  void begin(BlockRun& block, std::uint32_t number, std::uint32_t lanes);

  /// Executes until it yields, waits at a barrier or has ended.
  void run();

  std::uint32_t mask() const { return mask_; }  // of the current instruction
  std::uint32_t active() const { return group_.lanes; }
  std::uint32_t live() const { return live_; }
  std::uint32_t number() const { return number_; }  // in the block
  BlockRun& block() const { return *block_; }
  State state() const { return state_; }

  /// A register's lanes.
  template <class T>
  const Lanes<T>& read(std::uint32_t slot) const {
    return *reinterpret_cast<const Lanes<T>*>(registers_.data() + slot);
  }
  template <class T>
  Lanes<T>& at(std::uint32_t slot) {
    return *reinterpret_cast<Lanes<T>*>(registers_.data() + slot);
  }
  /// Writes those of the mask.
  template <class T>
  void write(std::uint32_t slot, const Lanes<T>& values) {
    Lanes<T>& lanes = at<T>(slot);
    if (mask_ == kAllLanes) {
      lanes = values;
      return;
    }
    for (std::size_t k = 0; k < kWarpLanes; ++k) {
      if ((mask_ >> k & 1U) != 0) lanes[k] = values[k];
    }
  }
  /// Predicates of all lanes as bits; `operand` counts the instruction's slots.
  std::uint32_t predicates(const Instruction& in, std::size_t operand) const {
    const std::uint32_t bits = predicate_at(in.slots[operand]);
    return (in.negated >> operand & 1U) != 0 ? ~bits : bits;
  }
  std::uint32_t predicate_at(std::uint32_t slot) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, registers_.data() + slot, sizeof bits);
    return bits;
  }
  void write_predicates(std::uint32_t slot, std::uint32_t bits) {
    const std::uint32_t merged = (predicate_at(slot) & ~mask_) | (bits & mask_);
    std::memcpy(registers_.data() + slot, &merged, sizeof merged);
  }

  /// Carries of all lanes as bits (carries.cpp).
  std::uint32_t carries() const { return carries_; }
  void write_carries(std::uint32_t bits) { carries_ = (carries_ & ~mask_) | (bits & mask_); }

  /// The lanes of the mask go on at `target`, the others at the next instruction.
  void branch(std::size_t target);
  /// Takes those lanes of the mask to `target`.
  void branch(std::size_t target, std::uint32_t lanes);
  /// The lanes of the mask end.
  void exit();
  /// Ends its turn: another warp may have to go on first.
  void yield() { state_ = State::yielding; }
  void wait_at_barrier() { state_ = State::at_barrier; }
  void leave_barrier() { state_ = State::running; }
  /// Ends the warp: its block is given up.
  void give_up() { state_ = State::ended; }

 private:
  void next_group();
  void note_others();
  void execute_followed(const Instruction& in);

  std::vector<std::byte> registers_;
  LateValues late_values_;
  BlockRun* block_ = nullptr;
  std::uint32_t number_ = 0, mask_ = 0, live_ = 0, carries_ = 0;
  Group group_;
  std::vector<Group> others_;
  std::size_t stop_ = 0;  // the least program counter of the others
  State state_ = State::ended;
};

}  // namespace attest::ptx
