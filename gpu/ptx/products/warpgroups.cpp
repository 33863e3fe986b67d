#include "gpu/ptx/products/warpgroups.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "core/dtype/dtype.hpp"
#include "gpu/ptx/execution/block_run.hpp"

namespace attest::ptx {

using simt::Fault;

namespace {

std::string group_name(std::uint32_t number) { return "warpgroup " + std::to_string(number); }

// Registers that a product takes: accumulators, then fragments of A.
std::span<const std::uint32_t> registers_of(const Instruction& in) {
  return std::span(in.slots).first(in.product_registers);
}

}  // namespace

void Warpgroups::begin(BlockRun& block) {
  block_ = &block;
  groups_.assign((block.warps().size() + kWarps - 1) / kWarps, {});
}

Warp& Warpgroups::warp_of(std::uint32_t group, std::uint32_t k) const {
  return block_->warps()[group * kWarps + k];
}

void Warpgroups::come(Warp& warp, const Instruction& in, Finish finish) {
  const std::uint32_t number = warp.number() / kWarps;
  Group& group = groups_[number];
  const auto refuse = [&](Fault fault, const std::string& text) {
    block_->give_up({fault, "warp " + std::to_string(warp.number()) + text}, in);
  };
  if ((number + 1) * kWarps > block_->warps().size() || warp.live() != kAllLanes) {
    return refuse(Fault::exited_lane, " comes to an instruction of all 128 lanes of " +
                                          group_name(number) +
                                          ", of which some have returned or never were");
  }
  if (warp.mask() != kAllLanes) {
    return refuse(Fault::divergence, " comes to an instruction of " + group_name(number) +
                                         " while some of its lanes are elsewhere");
  }
  if (!group.arrived.empty() && group.at != &in) {
    return refuse(Fault::divergence, " comes to another instruction of " + group_name(number) +
                                         " than those that wait there since PTX line " +
                                         std::to_string(group.at->line));
  }
  group.at = &in;
  group.arrived.push_back(&warp);
  if (group.arrived.size() < kWarps) return warp.wait_at_barrier();
  for (Warp* const each : group.arrived) each->leave_barrier();
  group.arrived.clear();
  finish(*this, number, in);
}

bool Warpgroups::give_up_deadlocked() {
  const auto stuck = std::find_if(groups_.begin(), groups_.end(),
                                  [](const Group& group) { return !group.arrived.empty(); });
  if (stuck == groups_.end()) return false;
  const auto number = static_cast<std::uint32_t>(stuck - groups_.begin());
  bool has_ended = false;
  for (std::uint32_t k = 0; k < kWarps; ++k) {
    has_ended = has_ended || warp_of(number, k).state() == Warp::State::ended;
  }
  block_->give_up(
      {has_ended ? Fault::exited_lane : Fault::divergence,
       std::to_string(stuck->arrived.size()) + " of the 4 warps of " + group_name(number) +
           " have come here; " + (has_ended ? "others have returned" : "the others do not")},
      *stuck->at);
  return true;
}

void Warpgroups::fence(std::uint32_t number) {
  Group& group = groups_[number];
  group.is_fenced = true;
  for (RegisterSet& used : group.used) used.clear();
}

// PTX ISA, wgmma.fence: before the first product, and between another use of a register and a
// product that has it.
void Warpgroups::require_fence(const Group& group, const Instruction& in) {
  if (!group.is_fenced) {
    return block_->report({Fault::missing_fence, "no wgmma.fence comes before the first product"},
                          in);
  }
  for (const std::uint32_t slot : registers_of(in)) {
    for (const RegisterSet& used : group.used) {
      if (!used.has(slot)) continue;
      return block_->report({Fault::missing_fence,
                             "registers of this product have been used since "
                             "the last wgmma.fence"},
                            in);
    }
  }
}

// Products may share accumulators of one shape, and fragments of A, which they read.
void Warpgroups::require_apart(const Group& group, const Instruction& in, std::size_t accumulators,
                               bool is_shared) {
  const std::span<const std::uint32_t> all = registers_of(in);
  for (std::size_t k = is_shared ? accumulators : 0; k < all.size(); ++k) {
    if (!group.busy.has(all[k])) continue;
    for (const Product& product : group.pending) {
      const std::span<const std::uint32_t> others =
          k < accumulators ? registers_of(*product.instruction) : std::span(product.d->slots);
      if (std::find(others.begin(), others.end(), all[k]) == others.end()) continue;
      return block_->report(
          {Fault::async_pending, "this product takes registers of the one of PTX line " +
                                     std::to_string(product.instruction->line) +
                                     ", which has not ended"},
          in);
    }
  }
}

std::list<Warpgroups::Accumulators>::iterator Warpgroups::take_accumulators(
    std::uint32_t number, const Instruction& in, const simt::GroupProduct& product) {
  Group& group = groups_[number];
  const std::size_t count = product.sum_registers();
  const std::vector<std::uint32_t> slots(in.slots.begin(),
                                         in.slots.begin() + static_cast<std::ptrdiff_t>(count));
  const auto known = std::find_if(group.accumulators.begin(), group.accumulators.end(),
                                  [&](const Accumulators& each) { return each.slots == slots; });
  require_apart(group, in, count, known != group.accumulators.end());
  if (known != group.accumulators.end()) return known;
  Accumulators made{slots, product.has_half_sums,
                    std::vector<float>(simt::kWarpgroupLanes * product.columns / 2)};
  for_each_sum(number, made, [&](std::size_t place, float& value) {
    made.values[place] = value;
    value = std::numeric_limits<float>::quiet_NaN();
  });
  return group.accumulators.insert(group.accumulators.end(), std::move(made));
}

// function(place in D, value) for each sum in the lanes' registers.
template <class Function>
void Warpgroups::for_each_sum(std::uint32_t number, const Accumulators& accumulators,
                              Function&& function) const {
  const std::vector<std::uint32_t>& slots = accumulators.slots;
  const std::size_t in_register = accumulators.are_halves ? 2 : 1;
  const std::size_t columns = 2 * slots.size() * in_register;
  for (std::size_t lane = 0; lane < simt::kWarpgroupLanes; ++lane) {
    Warp& warp = warp_of(number, static_cast<std::uint32_t>(lane / kWarpLanes));
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto place = [&](std::size_t part) {
        return simt::accumulator_place(lane, in_register * i + part, columns);
      };
      if (!accumulators.are_halves) {
        function(place(0), warp.at<float>(slots[i])[lane % kWarpLanes]);
        continue;
      }
      std::uint32_t& word = warp.at<std::uint32_t>(slots[i])[lane % kWarpLanes];
      float low = float_from_f16(static_cast<std::uint16_t>(word));
      float high = float_from_f16(static_cast<std::uint16_t>(word >> 16));
      function(place(0), low);
      function(place(1), high);
      word = std::uint32_t{f16_from_float(low)} | std::uint32_t{f16_from_float(high)} << 16;
    }
  }
}

void Warpgroups::multiply(std::uint32_t number, const Instruction& in,
                          const simt::GroupProduct& product) {
  Group& group = groups_[number];
  if (const auto found = simt::misplaced(block_->shared(), product)) {
    return block_->give_up(*found, in);
  }
  require_fence(group, in);
  if (const auto found = simt::begin_reads(block_->shared(), product, number)) {
    block_->report(*found, in);
  }
  Product made{&in, product, {}, take_accumulators(number, in, product), group.latest};
  ++made.d->products;
  for (std::size_t lane = 0; product.a_in_registers && lane < simt::kWarpgroupLanes; ++lane) {
    for (std::size_t k = 0; k < simt::kFragmentWords; ++k) {
      const Warp& warp = warp_of(number, static_cast<std::uint32_t>(lane / kWarpLanes));
      made.fragments.push_back(
          warp.read<std::uint32_t>(in.slots[product.sum_registers() + k])[lane % kWarpLanes]);
    }
  }
  group.pending.push_back(std::move(made));
  for (const std::uint32_t slot : registers_of(in)) group.busy.add(slot);
}

void Warpgroups::wait(std::uint32_t number, std::uint64_t most_pending) {
  Group& group = groups_[number];
  const std::uint64_t before = group.latest - std::min(group.latest, most_pending);
  const auto last = std::find_if(group.pending.begin(), group.pending.end(),
                                 [&](const Product& each) { return each.group >= before; });
  if (last == group.pending.begin()) return;
  for (auto each = group.pending.begin(); each != last; ++each) {
    simt::carry_out(block_->shared(), each->product, each->fragments, each->d->values);
    simt::end_reads(block_->shared(), each->product, number);
    --each->d->products;
  }
  group.pending.erase(group.pending.begin(), last);
  group.accumulators.remove_if([&](const Accumulators& each) {
    if (each.products > 0) return false;
    for_each_sum(number, each,
                 [&](std::size_t place, float& value) { value = each.values[place]; });
    return true;
  });
  group.busy.clear();
  for (const Product& each : group.pending) {
    for (const std::uint32_t slot : registers_of(*each.instruction)) group.busy.add(slot);
  }
  simt::come_after_reads(block_->shared(), number);
}

void Warpgroups::touch(const Warp& warp, const Instruction& in, Touch touch) {
  Group& group = groups_[warp.number() / kWarps];
  const auto use = [&](std::uint32_t slot) {
    if (touch == Touch::use) group.used[warp.number() % kWarps].add(slot);
    if (!group.busy.has(slot)) return;
    block_->report({Fault::async_pending, "warp " + std::to_string(warp.number()) +
                                              " uses a register of a wgmma that has not ended"},
                   in);
  };
  for (const std::uint32_t slot : in.slots) use(slot);
  for (const Address& address : in.addresses) use(address.slot);
}

void Warpgroups::end() {
  for (const Group& group : groups_) {
    if (group.pending.empty()) continue;
    block_->report({Fault::async_pending,
                    "the block ends while a wgmma is under way; "
                    "wgmma.wait_group waits for it"},
                   *group.pending.front().instruction);
  }
}

}  // namespace attest::ptx
