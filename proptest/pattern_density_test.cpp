// How much a bound by the pattern could gain that knew the densest parts of it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "core/rng.hpp"
#include "core/sparsity/sparsity_pattern.hpp"
#include "core/testing/catch.hpp"

namespace attest::proptest {
namespace {

// Rows and columns with the most in the others, in turns, until nothing changes; from random rows.
std::int64_t densest_found(const BlockForm& blocks, std::int64_t side, int starts) {
  const auto& [offsets, columns] = blocks.occupied;
  const std::size_t count = offsets.size() - 1;
  std::vector<std::vector<char>> visible(count, std::vector<char>(count));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::int64_t e = offsets[i]; e < offsets[i + 1]; ++e) {
      visible[i][static_cast<std::size_t>(columns[static_cast<std::size_t>(e)])] = 1;
    }
  }
  Rng rng(1);
  std::vector<std::size_t> all(count), chosen;
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::int64_t most = 0;
  for (int start = 0; start < starts; ++start) {
    for (std::size_t n = count; n > 1; --n) {
      std::swap(all[n - 1], all[static_cast<std::size_t>(rng.between(0, static_cast<int>(n) - 1))]);
    }
    chosen.assign(all.begin(), all.begin() + side);
    std::int64_t before = -1, now = 0;
    for (bool of_rows = true; now > before; of_rows = !of_rows) {
      before = now;
      std::vector<std::pair<std::int64_t, std::size_t>> sums;
      for (std::size_t other = 0; other < count; ++other) {
        std::int64_t sum = 0;
        for (const std::size_t one : chosen) {
          sum += of_rows ? visible[one][other] : visible[other][one];
        }
        sums.emplace_back(-sum, other);
      }
      std::sort(sums.begin(), sums.end());
      now = 0;
      for (std::size_t n = 0; n < chosen.size(); ++n) {
        now -= sums[n].first;
        chosen[n] = sums[n].second;
      }
    }
    most = std::max(most, now);
  }
  return most;
}

TEST_CASE("dense parts of random blocks", "[schedules][bounds]") {
  const auto pattern = SparsityPattern::parse("block_64_25_1", 4096, 4096);
  const auto found = [&](std::int64_t side) {
    const std::int64_t most = densest_found(std::get<BlockForm>(pattern.form()), side, 20000);
    std::printf("block_64_25_1: %lld x %lld blocks with %lld visible\n",
                static_cast<long long>(side), static_cast<long long>(side),
                static_cast<long long>(most));
    return most;
  };
  CHECK(found(8) >= 49);
  CHECK(found(12) >= 89);
}

}  // namespace
}  // namespace attest::proptest
