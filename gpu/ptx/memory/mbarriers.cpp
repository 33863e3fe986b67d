#include "gpu/ptx/memory/addresses.hpp"

/// mbarrier, and the fences that make it and shared memory visible to asynchronous instructions.
namespace attest::ptx {
namespace {

const void* barrier_of(const Warp& warp, const Instruction& in, std::uint32_t lane) {
  const std::uint64_t address = address_of(warp, in.addresses[0], lane);
  return shared_pointer(warp, in.is_generic ? address - kSharedWindow : address);
}

// function(mbarriers, the barrier, lane), each lane's after the one before it.
template <class F>
void for_each_active(Warp& warp, const Instruction& in, F&& function) {
  BlockRun& block = warp.block();
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) == 0) continue;
    block.set_lane(BlockRun::number_of(warp, lane));
    function(block.mbarriers(), barrier_of(warp, in, lane), lane);
  }
}

void init(Warp& warp, const Instruction& in) {
  const auto& counts = warp.read<std::uint32_t>(in.slots[0]);
  for_each_active(warp, in, [&](simt::Mbarriers& all, const void* barrier, std::uint32_t lane) {
    all.init(warp.block(), barrier, counts[lane], where(in));
  });
}

void invalidate(Warp& warp, const Instruction& in) {
  for_each_active(warp, in, [&](simt::Mbarriers& all, const void* barrier, std::uint32_t) {
    all.invalidate(warp.block(), barrier, where(in));
  });
}

// The state that arrivals return is the number of their phase.
void arrive(Warp& warp, const Instruction& in) {
  Lanes<std::uint64_t> states{};
  for_each_active(warp, in, [&](simt::Mbarriers& all, const void* barrier, std::uint32_t lane) {
    const std::uint32_t count =
        in.slots.size() > 1 ? warp.read<std::uint32_t>(in.slots[1])[lane] : 1;
    states[lane] = all.arrive(warp.block(), barrier, where(in), count);
  });
  warp.write(in.slots[0], states);
}

void arrive_and_expect(Warp& warp, const Instruction& in) {
  Lanes<std::uint64_t> states{};
  const auto& bytes = warp.read<std::uint32_t>(in.slots[1]);
  for_each_active(warp, in, [&](simt::Mbarriers& all, const void* barrier, std::uint32_t lane) {
    all.expect(warp.block(), barrier, bytes[lane], where(in));
    states[lane] = all.arrive(warp.block(), barrier, where(in));
  });
  warp.write(in.slots[0], states);
}

void expect(Warp& warp, const Instruction& in) {
  const auto& bytes = warp.read<std::uint32_t>(in.slots[0]);
  for_each_active(warp, in, [&](simt::Mbarriers& all, const void* barrier, std::uint32_t lane) {
    all.expect(warp.block(), barrier, bytes[lane], where(in));
  });
}

// Tests, too, come back when the phase has ended: a thread may be so late with them.
template <class Phase, bool kIsState>
void wait(Warp& warp, const Instruction& in) {
  const Lanes<Phase>& phases = warp.read<Phase>(in.slots[1]);
  std::uint32_t waiting = 0;
  for_each_active(warp, in, [&](simt::Mbarriers& all, const void* barrier, std::uint32_t lane) {
    const auto parity = static_cast<std::uint32_t>(kIsState ? phases[lane] % 2 : phases[lane]);
    waiting += all.wait(warp.block(), barrier, parity, where(in)) ? 0 : 1;
  });
  warp.write_predicates(in.slots[0], kAllLanes);
  if (waiting > 0) warp.block().wait_for_mbarriers(warp, in, waiting);
}

template <bool kAll>
void fence(Warp& warp, const Instruction&) {
  BlockRun& block = warp.block();
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) == 0) continue;
    const std::uint32_t number = BlockRun::number_of(warp, lane);
    block.mbarriers().fence_init(number, kAll);
    if (kAll && block.shared().is_checked()) block.shared().fence_async(number);
  }
}
// Nothing reads global memory otherwise than lanes do, and registers are as many as a warp asks
// for.
void pass(Warp&, const Instruction&) {}

constexpr Form kForms[] = {
    {"mbarrier.init[.shared|.shared::cta].b64", "[a] b:b32", as<init>},
    {"mbarrier.inval[.shared|.shared::cta].b64", "[a]", as<invalidate>},
    {"mbarrier.arrive[.release|.relaxed][.cta|.cluster][.shared|.shared::cta|.shared::cluster].b64",
     "d:b64 [a] b:b32?", as<arrive>},
    {"mbarrier.arrive.expect_tx[.release|.relaxed][.cta|.cluster][.shared|.shared::cta|.shared::"
     "cluster].b64",
     "d:b64 [a] b:b32", as<arrive_and_expect>},
    {"mbarrier.expect_tx[.relaxed][.cta|.cluster][.shared|.shared::cta|.shared::cluster].b64",
     "[a] b:b32", as<expect>},
    {"mbarrier(.try_wait|.test_wait)[.acquire|.relaxed][.cta|.cluster][.shared|.shared::cta].b64",
     "d:pred [a] b:b64 c:b32?", as<wait<std::uint64_t, true>>},
    {"mbarrier(.try_wait|.test_wait).parity[.acquire|.relaxed][.cta|.cluster][.shared|.shared::cta]"
     ".b64",
     "d:pred [a] b:b32 c:b32?", as<wait<std::uint32_t, false>>},
    {"fence.mbarrier_init.release.cluster", "", as<fence<false>>},
    {"fence.proxy.async[.shared::cta|.shared::cluster]", "", as<fence<true>>},
    {"fence.proxy.async.global", "", as<pass>},
    {"setmaxnreg(.inc|.dec).sync.aligned.u32", "#i", as<pass>},
    {"griddepcontrol(.launch_dependents|.wait)", "", as<pass>},
};

}  // namespace

std::span<const Form> mbarrier_forms() { return kForms; }

}  // namespace attest::ptx
