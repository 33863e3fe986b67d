#include "gpu/simt/warp.hpp"

#include <string>

#include "core/error.hpp"
#include "gpu/simt/block.hpp"

namespace attest::simt {
namespace {

Block& block() {
  Block* const current = Block::current();
  if (current == nullptr) throw InternalError("a word of CUDA outside of an emulated kernel");
  return *current;
}

const char* shuffle_name(Source source) {
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

struct Shuffled {
  std::uint64_t value;
  Source source;
  int argument, width;
  SourceLine where;
};

// PTX ISA, shfl.sync: segments of `width` lanes; what leaves them reads the lane itself.
std::uint32_t source_lane(std::uint32_t lane, const Shuffled& shuffled) {
  const auto width = static_cast<std::uint32_t>(shuffled.width);
  const auto argument = static_cast<std::uint32_t>(shuffled.argument);
  const std::uint32_t within = lane % width, segment = lane - within;
  switch (shuffled.source) {
    case Source::index:
      return segment + argument % width;
    case Source::exclusive_or: {
      const std::uint32_t other = lane ^ (argument % kWarpLanes);
      return other < segment + width ? other : lane;
    }
    case Source::up:
      return within >= argument ? lane - argument : lane;
    case Source::down:
      return within + argument < width ? lane + argument : lane;
  }
  return lane;
}

void finish_shuffle(Block& in, const Exchange& exchange) {
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (exchange.given[lane] == nullptr) continue;
    const auto& own = *static_cast<const Shuffled*>(exchange.given[lane]);
    const std::uint32_t from = source_lane(lane, own);
    if (exchange.given[from] == nullptr) {
      in.report(Fault::outside_mask,
                "lane " + std::to_string(lane) + " of a warp reads from lane " +
                    std::to_string(from) + " in " + shuffle_name(own.source) +
                    ", which the mask does not name",
                own.where);
      continue;  // undefined on a device; here its own
    }
    *static_cast<std::uint64_t*>(exchange.taken[lane]) =
        static_cast<const Shuffled*>(exchange.given[from])->value;
  }
}

void finish_ballot(Block&, const Exchange& exchange) {
  std::uint32_t votes = 0;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (exchange.given[lane] != nullptr && *static_cast<const bool*>(exchange.given[lane])) {
      votes |= std::uint32_t{1} << lane;
    }
  }
  for (void* taken : exchange.taken) {
    if (taken != nullptr) *static_cast<std::uint32_t*>(taken) = votes;
  }
}

}  // namespace

Index3 lane_index() { return block().lane().thread; }
Index3 block_index() { return block().index(); }
Index3 block_size() { return block().size(); }
Index3 grid_size() { return block().grid(); }

void* shared_variable(const void* tag, const char* name, std::size_t bytes, std::size_t alignment) {
  Block& in = block();
  void* const variable = in.shared().variable(tag, bytes, alignment);
  if (variable == nullptr) {
    in.stop(Fault::shared_budget,
            std::string("'") + name + "' takes " + std::to_string(bytes) + " bytes, but " +
                std::to_string(in.shared().used_bytes()) + " of " +
                std::to_string(in.shared().limit_bytes()) + " are taken",
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

int barrier(int value, const char* operation, SourceLine where) {
  return block().barrier(value, operation, where);
}

void warp_barrier(std::uint32_t mask, SourceLine where) { block().warp_barrier(mask, where); }

std::uint32_t ballot(std::uint32_t mask, bool predicate, SourceLine where) {
  std::uint32_t votes = 0;
  block().collective(mask, "__ballot_sync", where, &predicate, &votes, finish_ballot);
  return votes;
}

std::uint64_t shuffle_bits(std::uint32_t mask, std::uint64_t value, Source source, int argument,
                           int width, SourceLine where) {
  Shuffled given{value, source, argument, width, where};
  std::uint64_t taken = value;
  block().collective(mask, shuffle_name(source), where, &given, &taken, finish_shuffle);
  return taken;
}

}  // namespace attest::simt
