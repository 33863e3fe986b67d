#include "gpu/ptx/memory/late_values.hpp"

#include "gpu/ptx/execution/warp.hpp"

namespace attest::ptx {

void LateValues::begin(bool is_on, std::size_t register_bytes) {
  is_on_ = is_on;
  any_ = false;
  if (is_on) lanes_.assign(register_bytes / kSlotBytes + 1, 0);
}

void LateValues::add(const Instruction& in, std::uint32_t lanes) {
  any_ = true;
  for (std::size_t k = 0; k < in.results; ++k) at(in.slots[k]) |= lanes;
}

bool LateValues::pass_on(const Warp& warp, const Instruction& in) {
  if (!any_) return false;
  const std::uint32_t lanes = warp.mask();
  std::uint32_t sources = 0, addresses = 0;
  for (std::size_t k = in.results; k < in.slots.size(); ++k) sources |= at(in.slots[k]);
  for (const Address& each : in.addresses) addresses |= at(each.slot);
  // Lanes that may be in the mask or not: either way their results depend on it.
  const std::uint32_t chosen = in.has_predicate ? at(in.predicate) & warp.active() : 0;
  const bool matters_beyond = in.reach == Reach::beyond || in.results == 0;
  if ((addresses & lanes) != 0) return true;
  if (matters_beyond && ((sources & lanes) | chosen) != 0) return true;
  std::uint32_t reached = sources & lanes;
  if (in.reach == Reach::warp && reached != 0) {
    // A lane of a shuffle also depends on which lane it reads from.
    reached = in.receivers == nullptr ? lanes : lanes & (sources | in.receivers(warp, in, sources));
  }
  for (std::size_t k = 0; k < in.results; ++k) {
    std::uint32_t& result = at(in.slots[k]);
    result = (result & ~lanes) | reached | chosen;
  }
  return false;
}

}  // namespace attest::ptx
