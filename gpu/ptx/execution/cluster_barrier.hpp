#pragma once

#include <cstdint>
#include <vector>

#include "gpu/simt/memory/access_order.hpp"

namespace attest::ptx {

class BlockRun;
class Warp;
struct Instruction;

/// The barrier of a cluster, which is one block: warps come to it, and wait for it later.
class ClusterBarrier {
 public:
  void begin(BlockRun& block);

  /// `releases`: what the warp has done comes before what others do once they have waited.
  void arrive(Warp& warp, const Instruction& in, bool releases);
  void wait(Warp& warp, const Instruction& in);

  /// Lets go on where all that have not returned have come.
  void release_complete();
  /// Gives the block up where a warp waits here.
  bool give_up_deadlocked();

 private:
  struct Place {
    std::uint64_t arrivals = 0;  // of the warp
    const Instruction* waits = nullptr;
  };
  bool require_whole(const Warp& warp, const Instruction& in);
  void acquire(const Warp& warp);

  BlockRun* block_ = nullptr;
  std::vector<Place> places_;                    // by warp
  std::uint64_t completed_ = 0;                  // phases
  simt::AccessOrder::Clock running_, complete_;  // before the arrivals of a phase
};

}  // namespace attest::ptx
