#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/memory/access_order.hpp"

/// Host functions behind the words of mbarrier.cuh. Each throws InternalError outside of a lane.
namespace attest::simt {

class AsyncBlock;

/// The mbarriers of one block, by the address that a device has for them. Kept beside shared
/// memory, whose bytes stay NaN: their form is the device's own.
class Mbarriers {
 public:
  void begin() { all_.clear(); }

  void init(AsyncBlock& block, const void* barrier, std::uint32_t count, SourceLine where);
  void invalidate(AsyncBlock& block, const void* barrier, SourceLine where);
  /// The running lane expects so many more bytes in this phase, and arrives or does not.
  void expect(AsyncBlock& block, const void* barrier, std::uint32_t bytes, SourceLine where);
  /// So many arrivals at once. Returns the phase that they belong to.
  std::uint32_t arrive(AsyncBlock& block, const void* barrier, SourceLine where,
                       std::uint32_t count = 1);
  /// Waits for the end of the phase of that parity: the running one, or the one before. Returns
  /// whether it has ended; else the lane is to wait, and is woken.
  bool wait(AsyncBlock& block, const void* barrier, std::uint32_t parity, SourceLine where);
  /// Makes the lane's initialisations visible to tensor copies; with `all`, those of any lane.
  void fence_init(std::uint32_t lane, bool all);

  /// A tensor copy that will complete here: its phase.
  struct Completion {
    std::uint32_t address = 0, phase = 0;
  };
  Completion begin_copy(AsyncBlock& block, const void* barrier, SourceLine where);
  bool is_waited_for(const Completion& copy) const;
  /// Its bytes have arrived; `where` it began. First the lane that stands for it writes.
  std::uint32_t engine(AsyncBlock& block, const Completion& copy) const;
  void complete(AsyncBlock& block, const Completion& copy, std::uint32_t bytes, SourceLine where);

  /// Returns, in one line, what each barrier lacks that lanes wait for although no lane can go on.
  /// Reports each such barrier whose bytes do not come.
  std::string explain_deadlock(AsyncBlock& block) const;

 private:
  struct Mbarrier {
    std::string name;
    std::uint32_t count = 0, pending = 0;  // arrivals
    std::int64_t bytes = 0;                // expected less arrived
    std::uint32_t phase = 0;
    std::uint32_t number = 0;  // in the order of initialisation
    std::uint32_t initialiser = 0;
    bool is_fenced = false;
    SourceLine expected_at;
    Accesses initialised;
    AccessOrder::Clock arrived, completed;  // of all arrivals; of those before the last phase's end
    std::vector<std::uint32_t> waiting;
  };

  Mbarrier& find(AsyncBlock& block, const void* barrier, const char* verb, SourceLine where);
  void end_phase_if_complete(AsyncBlock& block, Mbarrier& barrier);

  std::map<std::uint32_t, Mbarrier> all_;
};

void mbarrier_begin(const void* barrier, std::uint32_t count, SourceLine where);
void mbarrier_end(const void* barrier, SourceLine where);
void mbarrier_arrival(const void* barrier, SourceLine where);
void mbarrier_expectation(const void* barrier, std::uint32_t bytes, SourceLine where);
void mbarrier_wait_for(const void* barrier, std::uint32_t parity, SourceLine where);
void mbarrier_fence();
void async_fence();

}  // namespace attest::simt
