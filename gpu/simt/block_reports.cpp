// Reports of a block on its kernel.
#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/simt/block.hpp"
#include "gpu/simt/source_line.hpp"

namespace attest::simt {
namespace {

// "0x0000ffff".
std::string hexadecimal(std::uint32_t mask) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[mask >> shift & 15U];
  return text;
}

}  // namespace

void Block::report(Fault fault, std::string text, SourceLine where) {
  if (found_->size() < emulation_.most_diagnoses) {
    found_->push_back({fault, std::move(text), where, index_});
  }
}

void Block::report_once(const Finding& finding, SourceLine where) {
  for (const Diagnosis& known : *found_) {
    if (where.line != 0 && known.fault == finding.fault && known.where == where &&
        known.block == index_)
      return;
  }
  report(finding.fault, finding.text, where);
}

void Block::report_at(Fault fault, std::string text, const void* return_address) {
  if (found_->size() >= emulation_.most_diagnoses ||
      std::find(reported_.begin(), reported_.end(), return_address) != reported_.end()) {
    return;
  }
  reported_.push_back(return_address);
  report_once({fault, std::move(text)}, line_of_code(return_address));
}

void Block::give_up(Fault fault, std::string text, SourceLine where) {
  report(fault, std::move(text), where);
  stopped_ = true;
}

// First what may be the cause.
void Block::give_up_deadlocked(SourceLine where) {
  warpgroups_.explain_deadlock(*this);
  const std::string barriers = mbarriers_.explain_deadlock(*this);
  give_up(Fault::deadlock, waiting_lanes() + barriers, where);
}

void Block::stop(Fault fault, std::string text, SourceLine where) {
  give_up(fault, std::move(text), where);
  throw LaneStopped{};
}

// The running lane comes to a collective of `mask`. Where a lane that it names waits with another
// mask that names it, neither will go on.
void Block::require_together(const Warp& warp, std::uint32_t mask, std::string_view operation,
                             SourceLine where) {
  const Lane& self = *running_;
  for (const Group& group : warp.groups) {
    const std::uint32_t waiting = group.arrived & mask;
    if (group.mask == mask || waiting == 0 || (group.mask >> self.in_warp & 1U) == 0) continue;
    const std::uint32_t other =
        self.warp * kWarpLanes + static_cast<std::uint32_t>(std::countr_zero(waiting));
    stop(Fault::divergence,
         "lane " + std::to_string(self.number) + " comes to " + std::string(operation) + " of " +
             hexadecimal(mask) + " while lane " + std::to_string(other) + " waits for it in " +
             std::string(group.operation) + " of " + hexadecimal(group.mask) + " (" +
             group.where.to_string() + ")",
         where);
  }
}

void Block::report_returned(std::uint32_t lane, std::string_view operation, SourceLine where) {
  report_once(
      {Fault::exited_lane, "lane " + std::to_string(lane) + " has returned without coming to " +
                               std::string(operation) + ", where others waited for it"},
      where);
}

void Block::report_returned_before_barrier() {
  std::uint32_t lane = 0;
  while (!lanes_[lane].ended) ++lane;
  report_returned(lane, barrier_operation_, barrier_where_);
}

// Lanes 0-15 wait in __syncthreads (a.cuh:3); lanes 16-31 …: at most a few.
std::string Block::waiting_lanes() const {
  constexpr int kMostGroups = 4;
  std::string text;
  int groups = 0;
  for (std::uint32_t n = 0; n < count_;) {
    const Lane& first = lanes_[n];
    std::uint32_t last = n;
    const auto alike = [&](const Lane& lane) {
      if (lane.ended || first.ended) return lane.ended && first.ended;
      return lane.operation == first.operation && lane.mask == first.mask &&
             lane.where == first.where;
    };
    while (last + 1 < count_ && alike(lanes_[last + 1])) ++last;
    if (++groups > kMostGroups) return text + "; …";
    if (!text.empty()) text += "; ";
    text += last == n ? "lane " + std::to_string(n)
                      : "lanes " + std::to_string(n) + "-" + std::to_string(last);
    if (first.ended) {
      text += last == n ? " has returned" : " have returned";
    } else {
      text += last == n ? " waits in " : " wait in ";
      text += std::string(first.operation);
      if (first.mask != 0) text += " of " + hexadecimal(first.mask);
      text += " (" + first.where.to_string() + ")";
    }
    n = last + 1;
  }
  return text;
}

}  // namespace attest::simt
