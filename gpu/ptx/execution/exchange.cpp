#include <algorithm>
#include <bit>
#include <string>

#include "gpu/ptx/arithmetic/lanes.hpp"
#include "gpu/ptx/execution/block_run.hpp"

/// Instructions in which the lanes of a warp exchange values.
namespace attest::ptx {
namespace {

using simt::Fault;

bool has(std::uint32_t lanes, std::size_t lane) { return (lanes >> lane & 1U) != 0; }

std::string lane_text(std::uint32_t lanes) {
  return "lane " + std::to_string(std::countr_zero(lanes)) + " of the warp";
}

// All lanes that the mask names must come; the lanes that do.
std::uint32_t members(const Warp& warp, const Instruction& in, std::size_t operand) {
  const auto first = static_cast<std::size_t>(std::countr_zero(warp.mask()));
  const std::uint32_t named = warp.read<std::uint32_t>(in.slots[operand])[first];
  BlockRun& block = warp.block();
  if (const std::uint32_t outside = warp.mask() & ~named; outside != 0) {
    block.report({Fault::outside_mask, lane_text(outside) + " is not in its own mask"}, in);
  }
  if (const std::uint32_t missing = named & ~warp.mask(); missing != 0) {
    const bool has_ended = (missing & warp.live()) == 0;
    block.report({has_ended ? Fault::exited_lane : Fault::divergence,
                  lane_text(missing) + (has_ended ? " is named by the mask and has returned"
                                                  : " is named by the mask and is elsewhere")},
                 in);
  }
  return named & warp.mask();
}

enum class Shuffle : std::uint8_t { up, down, bfly, idx };

// PTX ISA, shfl.sync: the source lane, and whether it is in range.
struct Source {
  std::uint32_t lane;
  bool is_in_range;
};
template <Shuffle kShuffle>
Source source_of(std::uint32_t lane, std::uint32_t by, std::uint32_t clamp) {
  by &= 31U;
  const std::uint32_t segment = clamp >> 8 & 31U;
  const std::uint32_t most = (lane & segment) | (clamp & 31U & ~segment);
  const std::uint32_t least = lane & segment;
  switch (kShuffle) {
    case Shuffle::up: {
      const bool is_in_range =
          static_cast<int>(lane) - static_cast<int>(by) >= static_cast<int>(most);
      return {is_in_range ? lane - by : lane, is_in_range};
    }
    case Shuffle::down:
      return {lane + by <= most ? lane + by : lane, lane + by <= most};
    case Shuffle::bfly:
      return {(lane ^ by) <= most ? lane ^ by : lane, (lane ^ by) <= most};
    case Shuffle::idx:
      break;
  }
  const std::uint32_t source = least | (by & ~segment);
  return {source <= most ? source : lane, source <= most};
}

template <Shuffle kShuffle>
void shuffle(Warp& warp, const Instruction& in) {
  const std::uint32_t lanes = members(warp, in, 5);
  const auto& values = warp.read<std::uint32_t>(in.slots[2]);
  const auto& by = warp.read<std::uint32_t>(in.slots[3]);
  const auto& clamp = warp.read<std::uint32_t>(in.slots[4]);
  Lanes<std::uint32_t> results{};
  std::uint32_t in_range = 0;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    const Source source = source_of<kShuffle>(lane, by[lane], clamp[lane]);
    results[lane] = values[source.lane];
    in_range |= std::uint32_t{source.is_in_range} << lane;
    if (has(lanes, lane) && !has(lanes, source.lane)) {
      warp.block().report(
          {Fault::outside_mask, "lane " + std::to_string(lane) + " of the warp reads from lane " +
                                    std::to_string(source.lane) + ", which does not take part"},
          in);
    }
  }
  warp.write_predicates(in.slots[1], in_range);
  warp.write(in.slots[0], results);
}

template <Shuffle kShuffle>
std::uint32_t receivers(const Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto& by = warp.read<std::uint32_t>(in.slots[3]);
  const auto& clamp = warp.read<std::uint32_t>(in.slots[4]);
  std::uint32_t found = 0;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    const bool gets = has(lanes, source_of<kShuffle>(lane, by[lane], clamp[lane]).lane);
    found |= std::uint32_t{gets} << lane;
  }
  return found;
}

template <Shuffle kShuffle>
Execute shuffle_as(Instruction& in) {
  in.receivers = receivers<kShuffle>;
  return shuffle<kShuffle>;
}
Execute shuffles(const Spelling& spelling, Instruction& in) {
  if (spelling.has("up")) return shuffle_as<Shuffle::up>(in);
  if (spelling.has("down")) return shuffle_as<Shuffle::down>(in);
  return spelling.has("bfly") ? shuffle_as<Shuffle::bfly>(in) : shuffle_as<Shuffle::idx>(in);
}

void write_all(Warp& warp, std::uint32_t slot, std::uint32_t value) {
  Lanes<std::uint32_t> values;
  values.fill(value);
  warp.write(slot, values);
}

void ballot(Warp& warp, const Instruction& in) {
  write_all(warp, in.slots[0], warp.predicates(in, 1) & members(warp, in, 2));
}

enum class Vote : std::uint8_t { all, any, uni };
template <Vote kVote>
void vote(Warp& warp, const Instruction& in) {
  const std::uint32_t lanes = members(warp, in, 2), holds = warp.predicates(in, 1) & lanes;
  const bool all = holds == lanes, any = holds != 0;
  const bool result = kVote == Vote::all ? all : kVote == Vote::any ? any : all || !any;
  warp.write_predicates(in.slots[0], result ? kAllLanes : 0);
}
Execute votes(const Spelling& spelling, Instruction&) {
  if (spelling.has("all")) return vote<Vote::all>;
  return spelling.has("any") ? vote<Vote::any> : vote<Vote::uni>;
}

void active_mask(Warp& warp, const Instruction& in) { write_all(warp, in.slots[0], warp.mask()); }

// Lanes with the lane's own value.
template <class T>
void match_any(Warp& warp, const Instruction& in) {
  const std::uint32_t lanes = members(warp, in, 2);
  const Lanes<T>& values = warp.read<T>(in.slots[1]);
  Lanes<std::uint32_t> results{};
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    for (std::size_t other = 0; other < kWarpLanes; ++other) {
      const bool is_equal = has(lanes, other) && values[other] == values[lane];
      results[lane] |= std::uint32_t{is_equal} << other;
    }
  }
  warp.write(in.slots[0], results);
}
// All members where all their values are equal, else none.
template <class T>
void match_all(Warp& warp, const Instruction& in) {
  const std::uint32_t lanes = members(warp, in, 3);
  const Lanes<T>& values = warp.read<T>(in.slots[2]);
  const T first = values[static_cast<std::size_t>(std::countr_zero(warp.mask()))];
  bool all = true;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    all = all && (!has(lanes, lane) || values[lane] == first);
  }
  warp.write_predicates(in.slots[1], all ? kAllLanes : 0);
  write_all(warp, in.slots[0], all ? lanes : 0);
}
Execute matches_any(const Spelling& spelling, Instruction&) {
  return bits(spelling.last_type()) == 32 ? match_any<std::uint32_t> : match_any<std::uint64_t>;
}
Execute matches_all(const Spelling& spelling, Instruction&) {
  return bits(spelling.last_type()) == 32 ? match_all<std::uint32_t> : match_all<std::uint64_t>;
}

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
};
struct Least {
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct Most {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct And {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a & b; }
};
struct Or {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a | b; }
};
struct Xor {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a ^ b; }
};

template <class Op, class T>
void reduce(Warp& warp, const Instruction& in) {
  const std::uint32_t lanes = members(warp, in, 2);
  const Lanes<T>& values = warp.read<T>(in.slots[1]);
  bool is_first = true;
  T result{};
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    if (!has(lanes, lane)) continue;
    result = is_first ? values[lane] : Op{}(result, values[lane]);
    is_first = false;
  }
  write_all(warp, in.slots[0], static_cast<std::uint32_t>(result));
}
template <class Op>
Execute reduction(const Spelling& spelling, Instruction&) {
  return spelling.last_type() == Type::s32 ? reduce<Op, std::int32_t> : reduce<Op, std::uint32_t>;
}
template <class Op>
Execute bit_reduction(const Spelling&, Instruction&) {
  return reduce<Op, std::uint32_t>;
}

// The first member leads.
void elect(Warp& warp, const Instruction& in) {
  const std::uint32_t lanes = members(warp, in, 2);
  warp.write_predicates(in.slots[1], lanes & (~lanes + 1));
  write_all(warp, in.slots[0], static_cast<std::uint32_t>(std::countr_zero(lanes)));
}

void warp_barrier(Warp& warp, const Instruction& in) {
  warp.block().shared().warp_barrier(warp.number(), members(warp, in, 0));
}

constexpr Form kForms[] = {
    {"shfl.sync(.up|.down|.bfly|.idx).b32", "d |p a b:b32 c:b32 m:b32", shuffles},
    {"vote.sync.ballot.b32", "d a:pred m:b32", as<ballot>},
    {"vote.sync(.all|.any|.uni).pred", "d a m:b32", votes},
    {"activemask.b32", "d", as<active_mask>},
    {"match.any.sync(.b32|.b64)", "d:b32 a m:b32", matches_any},
    {"match.all.sync(.b32|.b64)", "d:b32 |p a m:b32", matches_all},
    {"redux.sync.add(.u32|.s32)", "d a m:b32", reduction<Sum>},
    {"redux.sync.min(.u32|.s32)", "d a m:b32", reduction<Least>},
    {"redux.sync.max(.u32|.s32)", "d a m:b32", reduction<Most>},
    {"redux.sync.and.b32", "d a m:b32", bit_reduction<And>},
    {"redux.sync.or.b32", "d a m:b32", bit_reduction<Or>},
    {"redux.sync.xor.b32", "d a m:b32", bit_reduction<Xor>},
    {"elect.sync", "d:b32 |p m:b32", as<elect>},
    {"bar.warp.sync", "m:b32", as<warp_barrier>},
};

}  // namespace

std::span<const Form> exchange_forms() { return kForms; }

}  // namespace attest::ptx
