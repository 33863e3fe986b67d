#include "gpu/simt/memory/access_order.hpp"

#include <array>
#include <set>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/simt/memory/shared_memory.hpp"

namespace attest::simt {
namespace {

using Access = SharedMemory::Access;

// The definition: every access is kept, and every lane keeps the set of those that come before what
// it does next.
class History {
 public:
  void barrier(const std::vector<std::uint32_t>& lanes) {
    std::set<std::size_t> all;
    for (const std::uint32_t lane : lanes) all.insert(before_[lane].begin(), before_[lane].end());
    for (const std::uint32_t lane : lanes) before_[lane] = all;
  }

  void release(std::uint32_t lane, std::size_t clock) {
    clocks_[clock].insert(before_[lane].begin(), before_[lane].end());
  }
  void acquire(std::uint32_t lane, std::size_t clock) {
    before_[lane].insert(clocks_[clock].begin(), clocks_[clock].end());
  }

  bool races(std::uint32_t lane, Access access) const {
    for (std::size_t k = 0; k < accesses_.size(); ++k) {
      const bool both_read = accesses_[k] == Access::read && access == Access::read;
      const bool both_atomic = accesses_[k] == Access::atomic && access == Access::atomic;
      if (!both_read && !both_atomic && before_[lane].count(k) == 0) return true;
    }
    return false;
  }

  void add(std::uint32_t lane, Access access) {
    before_[lane].insert(accesses_.size());
    accesses_.push_back(access);
  }

 private:
  std::vector<Access> accesses_;
  std::array<std::set<std::size_t>, 64> before_;
  std::array<std::set<std::size_t>, 2> clocks_;
};

// Accesses of a few lanes of two warps to one word, between barriers of some of them and hand-overs
// from one to another, up to the first race.
void check_against_definition(bool hand_overs) {
  constexpr std::array<std::uint32_t, 6> kLanes{0, 1, 2, 3, 32, 33};
  constexpr int kSequences = 4000, kSteps = 24;
  const std::vector<std::uint32_t> all(kLanes.begin(), kLanes.end());
  int with_race = 0, without = 0;
  SharedMemory memory;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    Rng rng(static_cast<std::uint64_t>(sequence));
    memory.begin(4, 4, SharedChecks::on, 2);
    History history;
    REQUIRE_FALSE(memory.check(memory.dynamic(), 4, Access::write, 0));
    history.add(0, Access::write);
    memory.block_barrier();
    history.barrier(all);
    std::array<AccessOrder::Clock, 2> clocks;
    if (hand_overs) memory.order().begin_hand_overs();
    bool raced = false;
    for (int step = 0; step < kSteps && !raced; ++step) {
      const std::int64_t kind = rng.between(0, 9);
      if (kind == 0) {
        memory.block_barrier();
        history.barrier(all);
      } else if (kind < 5 && hand_overs) {
        const auto clock = static_cast<std::size_t>(rng.between(0, 1));
        const std::uint32_t lane = kLanes[static_cast<std::size_t>(rng.between(0, 5))];
        if (rng.between(0, 1) == 0) {
          memory.order().release(lane, clocks[clock]);
          history.release(lane, clock);
        } else {
          memory.order().acquire(lane, clocks[clock]);
          history.acquire(lane, clock);
        }
      } else if (kind < 7) {
        std::vector<std::uint32_t> some;
        std::uint32_t mask = 0;
        for (std::uint32_t lane = 0; lane < 4; ++lane) {
          if (rng.between(0, 2) == 0) continue;
          some.push_back(lane);
          mask |= 1U << lane;
        }
        memory.warp_barrier(0, mask);
        history.barrier(some);
      } else {
        // The first warp most of the time, and more reads than writes.
        const auto last = rng.between(0, hand_overs ? 2 : 19) == 0 ? 5 : 3;
        const std::uint32_t lane = kLanes[static_cast<std::size_t>(rng.between(0, last))];
        constexpr std::array<Access, 5> kAccesses{Access::read, Access::read, Access::read,
                                                  Access::atomic, Access::write};
        const Access access = kAccesses[static_cast<std::size_t>(rng.between(0, 4))];
        const auto finding = memory.check(memory.dynamic(), 4, access, lane);
        raced = history.races(lane, access);
        INFO("sequence " << sequence << " step " << step << " lane " << lane);
        REQUIRE(finding.has_value() == raced);
        history.add(lane, access);
      }
    }
    ++(raced ? with_race : without);
  }
  CHECK(with_race > kSequences / 10);
  CHECK(without > kSequences / 10);
}

TEST_CASE("a race is found where the definition says", "[access_order]") {
  check_against_definition(false);
  check_against_definition(true);
}

}  // namespace
}  // namespace attest::simt
