#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/simt/memory/global_races.hpp"
#include "gpu/simt/memory/shared_memory.hpp"

/// Accesses of any size are held against each other byte by byte, whatever histories are kept
/// together.
namespace attest::simt {
namespace {

constexpr std::size_t kBytes = 48;
constexpr int kSequences = 3000, kSteps = 40;

struct Access {
  std::size_t begin, bytes;
  std::uint32_t block, lane;
  bool writes;
  std::uint32_t epoch;  // of the block

  bool races(const Access& other) const {
    const bool overlap = begin < other.begin + other.bytes && other.begin < begin + bytes;
    const bool ordered = block == other.block && (lane == other.lane || epoch != other.epoch);
    return overlap && !ordered && (writes || other.writes);
  }
};

Access random_access(Rng& rng) {
  Access access{};
  access.bytes = std::size_t{1} << rng.between(0, 4);
  if (rng.between(0, 1) == 0) access.bytes = 16;
  const auto places = static_cast<std::int64_t>(kBytes / access.bytes);
  access.begin = static_cast<std::size_t>(rng.between(0, places - 1)) * access.bytes;
  access.lane = static_cast<std::uint32_t>(rng.between(0, 3)) * 20;
  access.writes = rng.between(0, 3) == 0;
  return access;
}

// Runs sequences up to their first race, which `note` must find at once and nothing before.
template <class Begin, class Barrier, class Note>
void check_against_definition(std::uint32_t blocks, Begin&& begin, Barrier&& barrier, Note&& note) {
  int with_race = 0, without = 0;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    Rng rng(static_cast<std::uint64_t>(sequence));
    begin();
    std::vector<Access> before;
    std::array<std::uint32_t, 2> epochs{};
    bool raced = false;
    for (int step = 0; step < kSteps && !raced; ++step) {
      const auto block = static_cast<std::uint32_t>(rng.between(0, blocks - 1));
      if (rng.between(0, 1) == 0) {
        barrier(block);
        ++epochs[block];
        continue;
      }
      Access access = random_access(rng);
      access.block = block;
      access.epoch = epochs[block];
      if (blocks > 1 && rng.between(0, 9) != 0) access.writes = false;
      raced = std::any_of(before.begin(), before.end(),
                          [&](const Access& other) { return access.races(other); });
      INFO("sequence " << sequence << " step " << step);
      REQUIRE(note(access) == raced);
      before.push_back(access);
    }
    ++(raced ? with_race : without);
  }
  CHECK(with_race > kSequences / 10);
  CHECK(without > kSequences / 20);
}

TEST_CASE("races of accesses of all sizes to shared memory, also at a glance", "[access_order]") {
  SharedMemory memory;
  int glances = 0;
  const auto begin = [&] {
    memory.begin(kBytes, kBytes, SharedChecks::on, 3);
    for (std::size_t word = 0; word < kBytes; word += 4) {
      auto* const byte = static_cast<std::byte*>(memory.dynamic()) + word;
      REQUIRE_FALSE(memory.check(byte, 4, SharedMemory::Access::write, 0));
    }
    memory.block_barrier();
  };
  const auto begin_with_rows = [&] {
    memory.begin(kBytes, kBytes, SharedChecks::on, 3);
    REQUIRE_FALSE(memory.check(memory.dynamic(), kBytes, SharedMemory::Access::write, 0));
    memory.block_barrier();
  };
  const auto barrier = [&](std::uint32_t) { memory.block_barrier(); };
  const auto note = [&](const Access& access) {
    const auto how = access.writes ? SharedMemory::Access::write : SharedMemory::Access::read;
    if (memory.glance(access.begin, access.bytes, how, access.lane) != nullptr) {
      ++glances;
      return false;
    }
    const auto* const byte = static_cast<std::byte*>(memory.dynamic()) + access.begin;
    return memory.check(byte, access.bytes, how, access.lane).has_value();
  };
  check_against_definition(1, begin, barrier, note);
  check_against_definition(1, begin_with_rows, barrier, note);
  CHECK(glances > kSequences);
}

TEST_CASE("races of accesses of all sizes to global memory, also of reads together",
          "[access_order]") {
  alignas(64) std::array<std::byte, kBytes> bytes{};
  GlobalMemory memory;
  memory.add("bytes", bytes.data(), static_cast<std::int64_t>(bytes.size()));
  std::array<AccessOrder, 2> orders;
  std::optional<GlobalRaces> races;
  int together = 0;
  const auto begin = [&] {
    races.emplace(memory);
    for (AccessOrder& order : orders) order.begin(3);
  };
  const auto barrier = [&](std::uint32_t block) { orders[block].block_barrier(); };
  const auto note = [&](const Access& access) {
    const std::byte* const byte = bytes.data() + access.begin;
    std::array<std::uint64_t, 32> addresses{};
    const std::uint32_t lane = access.lane % 32;
    addresses[lane] = std::bit_cast<std::uint64_t>(byte);
    const Index3 block{access.block, 0, 0};
    if (!access.writes &&
        races->note_reads(addresses.data(), 1U << lane, access.bytes,
                          {block, access.lane - lane, &orders[access.block]}) != 0) {
      ++together;
      return false;
    }
    const GlobalUse use = access.writes ? GlobalUse::write : GlobalUse::read;
    return races->note(byte, access.bytes, use, {block, access.lane, &orders[access.block]})
        .has_value();
  };
  check_against_definition(2, begin, barrier, note);
  CHECK(together > kSequences);
}

}  // namespace
}  // namespace attest::simt
