#include "gpu/ptx/execution/special_registers.hpp"

#include <algorithm>
#include <array>

namespace attest::ptx {
namespace {

using Place = const LanePlace&;

struct Row {
  std::string_view name;
  std::uint32_t (*value)(Place);
};

// In the order of Special.
constexpr std::array kRows{
    Row{"%tid.x", [](Place p) { return p.thread.x; }},
    Row{"%tid.y", [](Place p) { return p.thread.y; }},
    Row{"%tid.z", [](Place p) { return p.thread.z; }},
    Row{"%ntid.x", [](Place p) { return p.block_size.x; }},
    Row{"%ntid.y", [](Place p) { return p.block_size.y; }},
    Row{"%ntid.z", [](Place p) { return p.block_size.z; }},
    Row{"%ctaid.x", [](Place p) { return p.block.x; }},
    Row{"%ctaid.y", [](Place p) { return p.block.y; }},
    Row{"%ctaid.z", [](Place p) { return p.block.z; }},
    Row{"%nctaid.x", [](Place p) { return p.grid.x; }},
    Row{"%nctaid.y", [](Place p) { return p.grid.y; }},
    Row{"%nctaid.z", [](Place p) { return p.grid.z; }},
    Row{"%laneid", [](Place p) { return p.lane; }},
    Row{"%warpid", [](Place p) { return p.warp; }},
    Row{"%nwarpid", [](Place p) { return p.warps; }},
    Row{"%lanemask_eq", [](Place p) { return 1U << p.lane; }},
    Row{"%lanemask_le", [](Place p) { return (2U << p.lane) - 1; }},
    Row{"%lanemask_lt", [](Place p) { return (1U << p.lane) - 1; }},
    Row{"%lanemask_ge", [](Place p) { return ~((1U << p.lane) - 1); }},
    Row{"%lanemask_gt", [](Place p) { return ~((2U << p.lane) - 1); }},
    // A cluster has one block.
    Row{"%cluster_ctaid.x", [](Place) { return 0U; }},
    Row{"%cluster_ctaid.y", [](Place) { return 0U; }},
    Row{"%cluster_ctaid.z", [](Place) { return 0U; }},
    Row{"%cluster_nctaid.x", [](Place) { return 1U; }},
    Row{"%cluster_nctaid.y", [](Place) { return 1U; }},
    Row{"%cluster_nctaid.z", [](Place) { return 1U; }},
    Row{"%cluster_ctarank", [](Place) { return 0U; }},
    Row{"%cluster_nctarank", [](Place) { return 1U; }},
    Row{"%clusterid.x", [](Place p) { return p.block.x; }},
    Row{"%clusterid.y", [](Place p) { return p.block.y; }},
    Row{"%clusterid.z", [](Place p) { return p.block.z; }},
    Row{"%nclusterid.x", [](Place p) { return p.grid.x; }},
    Row{"%nclusterid.y", [](Place p) { return p.grid.y; }},
    Row{"%nclusterid.z", [](Place p) { return p.grid.z; }},
    Row{"%dynamic_smem_size", [](Place p) { return p.dynamic_shared_bytes; }},
    Row{"%total_smem_size", [](Place p) { return p.shared_bytes; }},
};

}  // namespace

std::optional<Special> special_named(std::string_view name) {
  const auto row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& each) { return each.name == name; });
  if (row == kRows.end()) return std::nullopt;
  return static_cast<Special>(row - kRows.begin());
}

std::uint32_t special_value(Special special, const LanePlace& place) {
  return kRows[static_cast<std::size_t>(special)].value(place);
}

}  // namespace attest::ptx
