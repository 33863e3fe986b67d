#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu/simt/memory/access_order.hpp"

namespace attest::ptx {

class BlockRun;
class Warp;
struct Instruction;

/// The 16 named barriers of a block. Warps come as a whole, as on a device.
///
/// A barrier of all threads orders all accesses before it before all after it; one of some warps
/// orders those of these warps, by hand-overs.
class Barriers {
 public:
  enum class Reduction : std::uint8_t { none, popc, and_, or_ };

  void begin(BlockRun& block);

  /// The warp's lanes come to barrier `number` of so many threads (0: all of the block). `values`
  /// are the predicates of a reduction, whose result goes to the instruction's first slot.
  void arrive(Warp& warp, const Instruction& in, std::uint32_t number, std::uint32_t threads,
              Reduction reduction, std::uint32_t values, bool waits);

  /// Lets go on where all have come.
  void release_complete();
  /// Gives the block up for the first barrier at which a warp waits.
  void give_up_deadlocked();

 private:
  struct Arrival {
    Warp* warp;
    const Instruction* instruction;
    std::uint32_t lanes, values;
    bool waits;
  };
  struct Barrier {
    std::uint32_t threads = 0;  // 0: all
    Reduction reduction = Reduction::none;
    std::vector<Arrival> arrivals;
    simt::AccessOrder::Clock clock;  // before the arrivals
  };
  static constexpr std::uint32_t kBarriers = 16;

  bool is_complete(const Barrier& barrier) const;
  void release(Barrier& barrier);
  void order(const Barrier& barrier);
  void report_ended(const Barrier& barrier);

  BlockRun* block_ = nullptr;
  std::array<Barrier, kBarriers> barriers_;
};

}  // namespace attest::ptx
