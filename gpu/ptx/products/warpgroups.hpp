#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "gpu/simt/tensor_core/group_product.hpp"

namespace attest::ptx {

class BlockRun;
class Warp;
struct Instruction;

/// The warpgroups of a block: four warps each, that come to wgmma's instructions together, and
/// their products that have not ended. These read shared memory and write registers when they are
/// waited for, the latest that a device may; until then the accumulators are NaN.
class Warpgroups {
 public:
  static constexpr std::uint32_t kWarps = 4;

  void begin(BlockRun& block);

  /// An instruction of one of its warps; once all four have come, it is carried out.
  using Finish = void (*)(Warpgroups& all, std::uint32_t group, const Instruction& in);
  void come(Warp& warp, const Instruction& in, Finish finish);

  void fence(std::uint32_t group);
  void multiply(std::uint32_t group, const Instruction& in, const simt::GroupProduct& product);
  void commit(std::uint32_t group) { ++groups_[group].latest; }
  void wait(std::uint32_t group, std::uint64_t most_pending);

  /// Another instruction uses registers that products take. Moves need no fence: to an assembler
  /// they name a value anew, and compilers leave them between fence and product.
  enum class Touch : std::uint8_t { use, move };
  void touch(const Warp& warp, const Instruction& in, Touch touch);

  /// Gives up where a part of a warpgroup waits for the others and no warp can go on.
  bool give_up_deadlocked();
  /// All warps have ended: what is still under way is a diagnosis.
  void end();

  Warp& warp_of(std::uint32_t group, std::uint32_t k) const;
  BlockRun& block() const { return *block_; }

 private:
  // Registers by their slots, which are multiples of 64.
  class RegisterSet {
   public:
    void add(std::uint32_t slot) {
      if (slot / kApart >= has_.size()) has_.resize(slot / kApart + 1);
      has_[slot / kApart] = true;
    }
    bool has(std::uint32_t slot) const {
      return slot / kApart < has_.size() && has_[slot / kApart];
    }
    void clear() { has_.clear(); }

   private:
    static constexpr std::uint32_t kApart = 64;
    std::vector<bool> has_;
  };

  // D of the products that have the same registers for it.
  struct Accumulators {
    std::vector<std::uint32_t> slots;
    bool are_halves = false;    // two in each register
    std::vector<float> values;  // row by row
    int products = 0;           // under way
  };
  struct Product {
    const Instruction* instruction;
    simt::GroupProduct product;
    std::vector<std::uint32_t> fragments;  // of A, lane by lane
    std::list<Accumulators>::iterator d;
    std::uint64_t group;
  };
  struct Group {
    const Instruction* at = nullptr;  // that its warps have come to
    std::vector<Warp*> arrived;
    std::uint64_t latest = 0;  // group of products that has no commit yet
    bool is_fenced = false;
    std::vector<Product> pending;
    std::list<Accumulators> accumulators;
    RegisterSet busy;                      // of products under way
    std::array<RegisterSet, kWarps> used;  // by warp, by others since the last fence
  };

  void require_fence(const Group& group, const Instruction& in);
  void require_apart(const Group& group, const Instruction& in, std::size_t accumulators,
                     bool is_shared);
  std::list<Accumulators>::iterator take_accumulators(std::uint32_t group, const Instruction& in,
                                                      const simt::GroupProduct& product);
  template <class Function>
  void for_each_sum(std::uint32_t group, const Accumulators& accumulators,
                    Function&& function) const;

  BlockRun* block_ = nullptr;
  std::vector<Group> groups_;
};

}  // namespace attest::ptx
