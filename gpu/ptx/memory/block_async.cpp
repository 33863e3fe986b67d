// A block as its mbarriers and tensor copies see it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/ptx/execution/block_run.hpp"

namespace attest::ptx {

using simt::Fault;

// Statements stand in the order of their lines.
const Instruction& BlockRun::instruction_at(simt::SourceLine where) const {
  const std::vector<Instruction>& code = program().code;
  return *std::lower_bound(code.begin(), code.end() - 1, where.line,
                           [](const Instruction& in, int line) { return in.line < line; });
}

void BlockRun::report_once(const simt::Finding& finding, simt::SourceLine where) {
  report(finding, instruction_at(where));
}

void BlockRun::stop(Fault fault, std::string text, simt::SourceLine where) {
  give_up({fault, std::move(text)}, instruction_at(where));
  throw Stopped{};
}

void BlockRun::wait_for_mbarriers(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  waiting_[warp.number()] = {&in, lanes};
  warp.wait_at_barrier();
}

void BlockRun::wake(std::uint32_t lane) {
  const std::size_t warp = lane / kWarpLanes;
  if (--waiting_[warp].lanes == 0) warps_[warp].leave_barrier();
}

void BlockRun::read_row(int, const void* from, void* to, std::size_t bytes,
                        simt::SourceLine where) {
  if (touch_global(lane_, instruction_at(where), from, bytes, 1, simt::GlobalUse::read)) {
    std::memcpy(to, from, bytes);
  }
  if (take_late_lanes() != 0) note_late_matters();  // whoever reads the copy
}

void BlockRun::write_row(int, void* to, const void* from, std::size_t bytes,
                         simt::SourceLine where) {
  if (touch_global(lane_, instruction_at(where), to, bytes, 1, simt::GlobalUse::write)) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace attest::ptx
