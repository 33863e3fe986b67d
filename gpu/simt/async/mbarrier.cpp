#include "gpu/simt/async/mbarrier.hpp"

#include <algorithm>

#include "gpu/simt/block.hpp"

namespace attest::simt {
namespace {

// PTX ISA, mbarrier: size and alignment of the object, and the most that it counts.
constexpr std::size_t kBytes = 8;
constexpr std::uint32_t kMostCount = (1U << 20) - 1;

std::string lane_of(const AsyncBlock& block) {
  return "lane " + std::to_string(block.lane_number());
}

// "the mbarrier at byte 8 of 'full'".
std::string name_of(AsyncBlock& block, const void* barrier) {
  const std::string text = block.shared().describe(barrier, kBytes);
  return "the mbarrier " + text.substr(text.find("at "));
}

std::string several(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

Mbarriers::Mbarrier& Mbarriers::find(AsyncBlock& block, const void* barrier, const char* verb,
                                     SourceLine where) {
  const auto address = block.shared().address(barrier);
  const auto found = address ? all_.find(*address) : all_.end();
  if (found == all_.end()) {
    block.stop(Fault::mbarrier,
               lane_of(block) + verb + block.shared().describe(barrier, kBytes) +
                   ", where no mbarrier is initialised",
               where);
  }
  if (!block.shared().is_checked()) return found->second;
  const auto other =
      found->second.initialised.unordered(block.lane_number(), block.shared().order());
  if (other) {
    block.report_once(
        {Fault::mbarrier, lane_of(block) + verb + found->second.name + ", which lane " +
                              std::to_string(*other) + " initialises; nothing orders the two"},
        where);
  }
  return found->second;
}

void Mbarriers::init(AsyncBlock& block, const void* barrier, std::uint32_t count,
                     SourceLine where) {
  SharedMemory& shared = block.shared();
  const std::uint32_t lane = block.lane_number();
  const auto address = shared.address(barrier);
  if (address && all_.count(*address) != 0) {
    block.stop(Fault::mbarrier,
               lane_of(block) + " initialises " + shared.describe(barrier, kBytes) +
                   ", which is an mbarrier already: mbarrier_inval() comes first",
               where);
  }
  if (address && *address % kBytes != 0) {
    block.stop(Fault::misaligned,
               lane_of(block) + " initialises an mbarrier at no multiple of 8 bytes", where);
  }
  if (count < 1 || count > kMostCount) {
    block.stop(Fault::mbarrier,
               lane_of(block) + " initialises an mbarrier of " + several(count, "arrival") +
                   "; it counts 1 to " + std::to_string(kMostCount),
               where);
  }
  if (const auto finding = shared.check(barrier, kBytes, SharedMemory::Access::write, lane)) {
    if (finding->fault == Fault::out_of_bounds) block.stop(finding->fault, finding->text, where);
    block.report_once(*finding, where);
  }
  shared.set_barrier(barrier, kBytes, true);
  if (shared.is_checked() && !shared.order().has_hand_overs()) shared.order().begin_hand_overs();
  Mbarrier made;
  made.name = name_of(block, barrier);
  made.count = made.pending = count;
  made.number = static_cast<std::uint32_t>(all_.size());
  made.initialiser = lane;
  made.initialised.add(lane, shared.order());
  all_.emplace(*address, std::move(made));
}

void Mbarriers::invalidate(AsyncBlock& block, const void* barrier, SourceLine where) {
  const Mbarrier& ended = find(block, barrier, " invalidates ", where);
  if (!ended.waiting.empty()) {
    block.stop(Fault::mbarrier,
               lane_of(block) + " invalidates " + ended.name + ", for which lane " +
                   std::to_string(ended.waiting.front()) + " waits",
               where);
  }
  block.shared().set_barrier(barrier, kBytes, false);
  all_.erase(*block.shared().address(barrier));
}

void Mbarriers::expect(AsyncBlock& block, const void* barrier, std::uint32_t bytes,
                       SourceLine where) {
  Mbarrier& found = find(block, barrier, " expects more bytes of ", where);
  found.bytes += bytes;
  found.expected_at = where;
  if (bytes > kMostCount || found.bytes > kMostCount) {
    block.report_once(
        {Fault::transactions,
         lane_of(block) + " makes " + found.name + " expect " + std::to_string(found.bytes) +
             " bytes; an mbarrier counts at most " + std::to_string(kMostCount)},
        where);
  }
}

std::uint32_t Mbarriers::arrive(AsyncBlock& block, const void* barrier, SourceLine where,
                                std::uint32_t count) {
  Mbarrier& found = find(block, barrier, " arrives at ", where);
  if (found.pending < count) {
    block.stop(Fault::mbarrier,
               lane_of(block) + " arrives at " + found.name + ", whose " +
                   several(found.count, "arrival") + " of this phase have come already",
               where);
  }
  const std::uint32_t phase = found.phase;
  found.pending -= count;
  if (block.shared().is_checked()) {
    block.shared().order().release(block.lane_number(), found.arrived);
  }
  end_phase_if_complete(block, found);
  return phase;
}

void Mbarriers::end_phase_if_complete(AsyncBlock& block, Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.count;
  barrier.completed = barrier.arrived;
  for (const std::uint32_t lane : barrier.waiting) {
    if (block.shared().is_checked()) block.shared().order().acquire(lane, barrier.completed);
    block.wake(lane);
  }
  barrier.waiting.clear();
}

bool Mbarriers::wait(AsyncBlock& block, const void* barrier, std::uint32_t parity,
                     SourceLine where) {
  Mbarrier& found = find(block, barrier, " waits for ", where);
  if (parity > 1) {
    block.stop(Fault::mbarrier,
               lane_of(block) + " waits for a phase of parity " + std::to_string(parity) +
                   "; it is 0 or 1",
               where);
  }
  if (found.phase % 2 == parity) {
    found.waiting.push_back(block.lane_number());
    return false;
  }
  if (block.shared().is_checked()) {
    block.shared().order().acquire(block.lane_number(), found.completed);
  }
  return true;
}

void Mbarriers::fence_init(std::uint32_t lane, bool all) {
  for (auto& [address, barrier] : all_) {
    if (all || barrier.initialiser == lane) barrier.is_fenced = true;
  }
}

Mbarriers::Completion Mbarriers::begin_copy(AsyncBlock& block, const void* barrier,
                                            SourceLine where) {
  const Mbarrier& found = find(block, barrier, " begins a tensor copy that completes on ", where);
  if (!found.is_fenced) {
    block.report_once(
        {Fault::mbarrier, lane_of(block) + " begins a tensor copy that completes on " + found.name +
                              ", whose initialisation it may not see: " +
                              "fence_mbarrier_init() comes after mbarrier_init()"},
        where);
  }
  return {*block.shared().address(barrier), found.phase};
}

bool Mbarriers::is_waited_for(const Completion& copy) const {
  const auto found = all_.find(copy.address);
  return found != all_.end() && !found->second.waiting.empty();
}

std::uint32_t Mbarriers::engine(AsyncBlock& block, const Completion& copy) const {
  // A lane of its own for each barrier, of those that products do not take (warpgroup.cpp).
  constexpr std::uint32_t kFirst = 8;
  const auto found = all_.find(copy.address);
  const std::uint32_t number = found == all_.end() ? 0 : found->second.number;
  return block.shared().order().engine(kFirst + number % (kWarpLanes - kFirst));
}

void Mbarriers::complete(AsyncBlock& block, const Completion& copy, std::uint32_t bytes,
                         SourceLine where) {
  const auto place = all_.find(copy.address);
  if (place == all_.end()) {
    block.report_once({Fault::mbarrier, "a tensor copy completes on an mbarrier that is no more"},
                      where);
    return;
  }
  Mbarrier& found = place->second;
  found.bytes -= bytes;
  const bool too_early = found.phase != copy.phase;
  if (too_early || (found.pending == 0 && found.bytes < 0)) {
    block.report_once({Fault::transactions,
                       found.name + (too_early ? " ended its phase before this tensor copy's " +
                                                     std::to_string(bytes) + " bytes arrived"
                                               : " gets " + several(-found.bytes, "byte") +
                                                     " more than it expects")},
                      where);
  }
  if (block.shared().is_checked()) {
    block.shared().order().release(engine(block, copy), found.arrived);
  }
  end_phase_if_complete(block, found);
}

std::string Mbarriers::explain_deadlock(AsyncBlock& block) const {
  std::string text;
  for (const auto& [address, barrier] : all_) {
    if (barrier.waiting.empty()) continue;
    text += "; " + barrier.name + " in phase " + std::to_string(barrier.phase) + " lacks " +
            std::to_string(barrier.pending) + " of " + several(barrier.count, "arrival") + " and " +
            several(barrier.bytes, "byte");
    if (barrier.pending == 0 && barrier.bytes > 0) {
      block.report_once(
          {Fault::transactions,
           barrier.name + " expects " + several(barrier.bytes, "byte") + " more than arrive"},
          barrier.expected_at);
    }
  }
  return text;
}

}  // namespace attest::simt
