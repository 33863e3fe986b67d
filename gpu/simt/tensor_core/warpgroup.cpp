#include "gpu/simt/tensor_core/warpgroup.hpp"

#include <algorithm>
#include <string>

#include "gpu/simt/block.hpp"

namespace attest::simt {
namespace {

std::string group_name(std::uint32_t number) { return "warpgroup " + std::to_string(number); }

}  // namespace

void Warpgroups::begin(std::uint32_t lanes) {
  if (used_) groups_.clear();
  used_ = false;
  groups_.resize((lanes + kWarpgroupLanes - 1) / kWarpgroupLanes);
  for (std::uint32_t k = 0; k < groups_.size(); ++k) {
    groups_[k].live = std::min(lanes - k * kWarpgroupLanes, kWarpgroupLanes);
  }
}

// PTX ISA, wgmma: all lanes of all warps of the warpgroup, at the same instruction; else undefined.
void Warpgroups::come(Block& block, std::string_view operation, SourceLine where, const void* given,
                      Finish finish) {
  const std::uint32_t lane = block.lane().number, number = lane / kWarpgroupLanes;
  Group& group = groups_[number];
  used_ = true;
  if (group.arrived == 0) {
    group.operation = operation;
    group.where = where;
    group.finish = finish;
    group.given = {};
  } else if (group.operation != operation || !(group.where == where)) {
    block.stop(Fault::divergence,
               "lane " + std::to_string(lane) + " comes to " + std::string(operation) +
                   " here while others of " + group_name(number) + " are in " +
                   std::string(group.operation) + " of " + group.where.to_string(),
               where);
  }
  group.given[lane % kWarpgroupLanes] = given;
  if (++group.arrived == group.live) {
    meet(block, number);
  } else {
    group.waiting.push_back(lane);
    block.suspend(operation, where);
  }
}

void Warpgroups::leave(Block& block, std::uint32_t lane) {
  Group& group = groups_[lane / kWarpgroupLanes];
  --group.live;
  if (group.arrived > 0 && group.arrived == group.live) meet(block, lane / kWarpgroupLanes);
}

void Warpgroups::meet(Block& block, std::uint32_t number) {
  Group& group = groups_[number];
  group.arrived = 0;
  if (group.live == kWarpgroupLanes) {
    group.finish(block, number, group.given, group.where);
  } else {
    block.report_once({Fault::exited_lane, std::string(group.operation) +
                                               " needs all 128 lanes of " + group_name(number) +
                                               ", of which some have returned or never were"},
                      group.where);
  }
  for (const std::uint32_t waiting : group.waiting) block.wake(waiting);
  group.waiting.clear();
}

std::optional<Finding> Warpgroups::touch(std::uint32_t lane, const void* pointer,
                                         std::size_t bytes) {
  if (!used_) return std::nullopt;
  return groups_[lane / kWarpgroupLanes].products.touch(lane, pointer, bytes);
}

void Warpgroups::explain_deadlock(Block& block) const {
  for (std::uint32_t k = 0; k < groups_.size(); ++k) {
    if (groups_[k].arrived == 0) continue;
    block.report_once(
        {Fault::divergence, std::to_string(groups_[k].arrived) + " of 128 lanes of " +
                                group_name(k) + " have come to " +
                                std::string(groups_[k].operation) + "; the others do not"},
        groups_[k].where);
  }
}

void Warpgroups::end(Block& block) const {
  for (const Group& group : groups_) group.products.end(block);
}

std::uint64_t describe_matrix(const void* shared, std::uint32_t leading_bytes,
                              std::uint32_t stride_bytes, Swizzle swizzle, SourceLine where) {
  constexpr std::uint32_t kAlignment = 16, kMostBytes = 1U << 18;  // what a descriptor can say
  Block& block = Block::running();
  const auto lane = [&] { return "lane " + std::to_string(block.lane().number); };
  const auto address = block.shared().address(shared);
  if (!address) {
    block.stop(Fault::out_of_bounds,
               lane() + " describes a matrix at " + block.shared().describe(shared, 1), where);
  }
  for (const std::uint32_t bytes : {*address, leading_bytes, stride_bytes}) {
    if (bytes % kAlignment == 0 && bytes < kMostBytes) continue;
    block.stop(Fault::misaligned,
               lane() + " describes a matrix by " + std::to_string(bytes) +
                   " bytes, which must be a multiple of 16 below 2^18",
               where);
  }
  return encode({*address, leading_bytes, stride_bytes, swizzle, 0});
}

void group_fence(SourceLine where) {
  Block& block = Block::running();
  block.warpgroups().come(block, "wgmma.fence", where, nullptr,
                          [](Block& in, std::uint32_t group, const Warpgroups::Given&, SourceLine) {
                            in.warpgroups().products(group).fence();
                          });
}

void group_product(const GroupProductCall& call, SourceLine where) {
  Block& block = Block::running();
  block.warpgroups().come(
      block, "wgmma.mma_async", where, &call,
      [](Block& in, std::uint32_t group, const Warpgroups::Given& given, SourceLine place) {
        GroupProducts::Calls calls;
        for (std::size_t k = 0; k < calls.size(); ++k) {
          calls[k] = *static_cast<const GroupProductCall*>(given[k]);
        }
        in.warpgroups().products(group).begin(in, group, calls, place);
      });
}

void group_commit(SourceLine where) {
  Block& block = Block::running();
  block.warpgroups().come(block, "wgmma.commit_group", where, nullptr,
                          [](Block& in, std::uint32_t group, const Warpgroups::Given&, SourceLine) {
                            in.warpgroups().products(group).commit();
                          });
}

void group_wait(std::uint64_t most_pending, SourceLine where) {
  Block& block = Block::running();
  block.warpgroups().come(
      block, "wgmma.wait_group", where, &most_pending,
      [](Block& in, std::uint32_t group, const Warpgroups::Given& given, SourceLine) {
        const auto most = *static_cast<const std::uint64_t*>(given[0]);
        in.warpgroups().products(group).wait(in, group, most);
      });
}

}  // namespace attest::simt
