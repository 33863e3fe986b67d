#include <bit>
#include <string>

#include "gpu/ptx/execution/block_run.hpp"

/// Control flow, barriers and fences.
namespace attest::ptx {
namespace {

void branch(Warp& warp, const Instruction& in) { warp.branch(in.target); }
// Lanes of one index go together.
void branch_by_index(Warp& warp, const Instruction& in) {
  const Lanes<std::uint32_t> indices = warp.read<std::uint32_t>(in.slots[0]);
  for (std::uint32_t left = warp.mask(); left != 0;) {
    const std::uint32_t index = indices[static_cast<std::size_t>(std::countr_zero(left))];
    if (index >= in.immediates.size()) {
      return warp.block().give_up({simt::Fault::out_of_bounds,
                                   "an indexed branch takes number " + std::to_string(index) +
                                       " of " + std::to_string(in.immediates.size()) + " labels"},
                                  in);
    }
    std::uint32_t lanes = 0;
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      lanes |= std::uint32_t{indices[lane] == index} << lane;
    }
    warp.branch(static_cast<std::size_t>(in.immediates[index]), lanes & left);
    left &= ~lanes;
  }
}
void leave(Warp& warp, const Instruction&) { warp.exit(); }
// Warps of a block take turns, and memory shows every write at once; only fences of the device's
// scope order blocks.
void fence_block(Warp&, const Instruction&) {}
void fence_device(Warp& warp, const Instruction&) {
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) != 0) warp.block().fence_device(warp, lane);
  }
}

// Time does not pass; another warp may go on.
void sleep(Warp& warp, const Instruction&) { warp.yield(); }

void trap(Warp& warp, const Instruction& in) {
  warp.block().give_up({simt::Fault::exception, "warp " + std::to_string(warp.number()) +
                                                    " comes to a trap or a breakpoint"},
                       in);
}

std::uint32_t first_value(const Warp& warp, const Instruction& in, std::size_t operand) {
  const auto first = static_cast<std::size_t>(std::countr_zero(warp.mask()));
  return warp.read<std::uint32_t>(in.slots[operand])[first];
}

// Operands of a barrier: its number, then the threads that come, if they are said.
template <bool kWaits>
void synchronise(Warp& warp, const Instruction& in) {
  const std::uint32_t threads = in.slots.size() > 1 ? first_value(warp, in, 1) : 0;
  warp.block().barriers().arrive(warp, in, first_value(warp, in, 0), threads,
                                 Barriers::Reduction::none, 0, kWaits);
}

template <Barriers::Reduction kReduction>
void reduce(Warp& warp, const Instruction& in) {
  const std::size_t last = in.slots.size() - 1;
  const std::uint32_t threads = last > 2 ? first_value(warp, in, 2) : 0;
  warp.block().barriers().arrive(warp, in, first_value(warp, in, 1), threads, kReduction,
                                 warp.predicates(in, last), true);
}

template <Execute kExecute>
Execute partial(const Spelling&, Instruction& in) {
  in.is_partial_barrier = true;
  return kExecute;
}
Execute reductions(const Spelling& spelling, Instruction& in) {
  in.is_partial_barrier = in.slots.size() > 3;
  if (spelling.has("popc")) return reduce<Barriers::Reduction::popc>;
  return spelling.has("and") ? reduce<Barriers::Reduction::and_> : reduce<Barriers::Reduction::or_>;
}

Execute fences(const Spelling& spelling, Instruction&) {
  const bool is_narrow = spelling.has("cta") || spelling.has("cluster");
  return is_narrow ? fence_block : fence_device;
}

constexpr Form kForms[] = {
    {"bra[.uni]", "L", as<branch>},
    {"brx.idx[.uni]", "a:u32 T", as<branch_by_index>},
    {"ret[.uni]", "", as<leave>},
    {"exit", "", as<leave>},
    {"trap", "", as<trap>},
    {"brkpt", "", as<trap>},
    {"bar[.cta].sync", "a:b32", as<synchronise<true>>},
    {"bar[.cta].sync", "a:b32 b:b32", partial<synchronise<true>>},
    {"bar[.cta].arrive", "a:b32 b:b32", partial<synchronise<false>>},
    {"barrier[.cta].sync[.aligned]", "a:b32", as<synchronise<true>>},
    {"barrier[.cta].sync[.aligned]", "a:b32 b:b32", partial<synchronise<true>>},
    {"barrier[.cta].arrive[.aligned]", "a:b32 b:b32", partial<synchronise<false>>},
    {"bar[.cta].red.popc.u32", "d a:b32 c:pred", reductions},
    {"bar[.cta].red.popc.u32", "d a:b32 b:b32 c:pred", reductions},
    {"bar[.cta].red(.and|.or).pred", "d a:b32 c", reductions},
    {"bar[.cta].red(.and|.or).pred", "d a:b32 b:b32 c", reductions},
    {"barrier[.cta].red.popc.aligned.u32", "d a:b32 c:pred", reductions},
    {"barrier[.cta].red(.and|.or).aligned.pred", "d a:b32 c", reductions},
    {"nanosleep.u32", "a", as<sleep>},
    {"membar(.cta|.gl|.sys)", "", fences},
    {"fence[.sc|.acq_rel](.cta|.cluster|.gpu|.sys)", "", fences},
};

}  // namespace

std::span<const Form> control_forms() { return kForms; }

}  // namespace attest::ptx
