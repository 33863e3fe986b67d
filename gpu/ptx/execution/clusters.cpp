#include <string>

#include "gpu/ptx/arithmetic/lanes.hpp"
#include "gpu/ptx/memory/addresses.hpp"

/// Clusters, each of one block: their barrier, and addresses of their blocks.
namespace attest::ptx {
namespace {

template <bool kReleases>
void arrive(Warp& warp, const Instruction& in) {
  warp.block().cluster_barrier().arrive(warp, in, kReleases);
}
Execute arrivals(const Spelling& spelling, Instruction& in) {
  in.is_partial_barrier = true;  // it orders by hand-overs
  return spelling.has("relaxed") ? arrive<false> : arrive<true>;
}
void wait(Warp& warp, const Instruction& in) { warp.block().cluster_barrier().wait(warp, in); }

// The address of the same variable in block b of the cluster.
template <class T>
void map_address(Warp& warp, const Instruction& in) {
  const Lanes<std::uint32_t>& ranks = warp.read<std::uint32_t>(in.slots[2]);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) == 0 || ranks[lane] == 0) continue;
    return warp.block().give_up(
        {simt::Fault::out_of_bounds,
         "mapa asks for block " + std::to_string(ranks[lane]) + " of a cluster of one block"},
        in);
  }
  each_lane<T, T>(warp, in, [](T address) { return address; });
}
template <class T>
void rank_of(Warp& warp, const Instruction& in) {
  each_lane<std::uint32_t, T>(warp, in, [](T) { return 0U; });
}

constexpr Form kForms[] = {
    {"barrier.cluster.arrive[.release|.relaxed][.aligned]", "", arrivals},
    {"barrier.cluster.wait[.acquire][.aligned]", "", as<wait>},
    {"mapa[.shared::cluster].u32", "d a b:u32", as<map_address<std::uint32_t>>},
    {"mapa[.shared::cluster].u64", "d a b:u32", as<map_address<std::uint64_t>>},
    {"getctarank[.shared::cluster].u32", "d:u32 a", as<rank_of<std::uint32_t>>},
    {"getctarank[.shared::cluster].u64", "d:u32 a", as<rank_of<std::uint64_t>>},
};

}  // namespace

std::span<const Form> cluster_forms() { return kForms; }

}  // namespace attest::ptx
