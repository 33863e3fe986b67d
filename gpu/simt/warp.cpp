#include "gpu/simt/warp.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <string_view>

#include "gpu/simt/block.hpp"

namespace attest::simt {
namespace {

Block& block() { return Block::running(); }

std::string_view shuffle_name(Source source) {
  switch (source) {
    case Source::index:
      return "__shfl_sync";
    case Source::exclusive_or:
      return "__shfl_xor_sync";
    case Source::up:
      return "__shfl_up_sync";
    case Source::down:
      return "__shfl_down_sync";
  }
  return "__shfl_sync";
}

struct ShuffleCall {
  std::uint64_t value;
  Source source;
  int argument, width;
  SourceLine where;
};

// PTX ISA, shfl.sync: segments of `width` lanes; what leaves them reads the lane itself. The
// lowest five bits of the argument count.
std::uint32_t source_lane(std::uint32_t lane, const ShuffleCall& call) {
  const auto width = static_cast<std::uint32_t>(call.width);
  const std::uint32_t argument = static_cast<std::uint32_t>(call.argument) % kWarpLanes;
  const std::uint32_t within = lane % width, segment = lane - within;
  switch (call.source) {
    case Source::index:
      return segment + argument % width;
    case Source::exclusive_or: {
      const std::uint32_t other = lane ^ argument;
      return other < segment + width ? other : lane;
    }
    case Source::up:
      return within >= argument ? lane - argument : lane;
    case Source::down:
      return within + argument < width ? lane + argument : lane;
  }
  return lane;
}

void report_absent(Block& in, const Exchange& exchange, std::uint32_t lane, std::uint32_t from,
                   Source source, SourceLine where) {
  const bool named = (exchange.mask >> from & 1U) != 0;
  in.report(named ? Fault::exited_lane : Fault::outside_mask,
            "lane " + std::to_string(lane) + " of a warp reads from lane " + std::to_string(from) +
                " in " + std::string(shuffle_name(source)) +
                (named ? ", which has returned or never was" : ", which the mask does not name"),
            where);
}

void finish_shuffle(Block& in, std::uint32_t, const Exchange& exchange) {
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (exchange.given[lane] == nullptr) continue;
    const auto& own = *static_cast<const ShuffleCall*>(exchange.given[lane]);
    const std::uint32_t from = source_lane(lane, own);
    if (exchange.given[from] == nullptr) {
      report_absent(in, exchange, lane, from, own.source, own.where);
      continue;  // undefined on a device; here its own
    }
    *static_cast<std::uint64_t*>(exchange.taken[lane]) =
        static_cast<const ShuffleCall*>(exchange.given[from])->value;
  }
}

struct ButterflyCall {
  float value;
  Joined joined;
  std::uint32_t width;
  SourceLine where;
};

float join(float a, float b, Joined joined) {
  return joined == Joined::maximum ? std::fmax(a, b) : a + b;
}

// A lane whose partner is not there goes on with its own value, as after a shuffle.
void finish_butterfly(Block& in, std::uint32_t, const Exchange& exchange) {
  std::array<float, kWarpLanes> values{};
  const ButterflyCall* call = nullptr;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (exchange.given[lane] == nullptr) continue;
    call = static_cast<const ButterflyCall*>(exchange.given[lane]);
    values[lane] = call->value;
  }
  for (std::uint32_t bits = call->width / 2; bits > 0; bits /= 2) {
    const std::array<float, kWarpLanes> before = values;
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      if (exchange.given[lane] == nullptr) continue;
      const bool met = exchange.given[lane ^ bits] != nullptr;
      if (!met) report_absent(in, exchange, lane, lane ^ bits, Source::exclusive_or, call->where);
      values[lane] = join(before[lane], before[met ? lane ^ bits : lane], call->joined);
    }
  }
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (exchange.taken[lane] != nullptr) *static_cast<float*>(exchange.taken[lane]) = values[lane];
  }
}

std::string_view vote_name(Vote kind) {
  switch (kind) {
    case Vote::ballot:
      return "__ballot_sync";
    case Vote::any:
      return "__any_sync";
    case Vote::all:
      return "__all_sync";
  }
  return "__ballot_sync";
}

struct Ballot {
  std::uint32_t yes = 0, voters = 0;
};

void finish_vote(Block&, std::uint32_t, const Exchange& exchange) {
  Ballot ballot{0, exchange.lanes};
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    const auto* const yes = static_cast<const bool*>(exchange.given[lane]);
    if (yes != nullptr && *yes) ballot.yes |= std::uint32_t{1} << lane;
  }
  for (void* taken : exchange.taken) {
    if (taken != nullptr) *static_cast<Ballot*>(taken) = ballot;
  }
}

}  // namespace

Index3 lane_index() { return block().lane().thread; }
Index3 block_index() { return block().index(); }
Index3 block_size() { return block().size(); }
Index3 grid_size() { return block().grid(); }

void* shared_variable(const void* tag, const char* name, std::size_t bytes, std::size_t alignment) {
  Block& in = block();
  void* const variable = in.shared().variable(tag, name, bytes, alignment);
  if (variable == nullptr) {
    in.stop(Fault::shared_budget,
            std::string("'") + name + "' takes " + std::to_string(bytes) + " bytes, but " +
                in.shared().taken(),
            {});
  }
  return variable;
}

void* dynamic_shared() { return block().shared().dynamic(); }

void require_aligned(const void* pointer, std::size_t bytes, SourceLine where) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0) return;
  block().report(Fault::misaligned,
                 "lane " + std::to_string(block().lane().number) + " moves " +
                     std::to_string(bytes) + " bytes at an address that is no multiple of that",
                 where);
}

int barrier(int value, std::string_view operation, SourceLine where) {
  return block().barrier(value, operation, where);
}

void warp_barrier(std::uint32_t mask, SourceLine where) { block().warp_barrier(mask, where); }

std::uint32_t vote(std::uint32_t mask, Vote kind, bool predicate, SourceLine where) {
  Ballot ballot;
  block().collective(mask, vote_name(kind), where, &predicate, &ballot, finish_vote);
  switch (kind) {
    case Vote::ballot:
      return ballot.yes;
    case Vote::any:
      return ballot.yes != 0 ? 1 : 0;
    case Vote::all:
      return ballot.yes == ballot.voters ? 1 : 0;
  }
  return 0;
}

std::uint64_t shuffle_bits(std::uint32_t mask, std::uint64_t value, Source source, int argument,
                           int width, SourceLine where) {
  if (width < 1 || width > static_cast<int>(kWarpLanes) || (width & (width - 1)) != 0) {
    block().stop(Fault::shuffle_width,
                 "lane " + std::to_string(block().lane().number) + " calls " +
                     std::string(shuffle_name(source)) + " by a width of " + std::to_string(width) +
                     "; it must be 1, 2, 4, 8, 16 or 32",
                 where);
  }
  ShuffleCall given{value, source, argument, width, where};
  std::uint64_t taken = value;
  block().collective(mask, shuffle_name(source), where, &given, &taken, finish_shuffle);
  return taken;
}

float butterfly(float value, Joined joined, int width, SourceLine where) {
  ButterflyCall given{value, joined, static_cast<std::uint32_t>(width), where};
  float taken = value;
  block().collective(~std::uint32_t{0}, shuffle_name(Source::exclusive_or), where, &given, &taken,
                     finish_butterfly);
  return taken;
}

}  // namespace attest::simt
