#include "schedules/walks/demanded_rows.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"

namespace attest::schedules {
namespace {

using Needs = std::vector<io::Range>;
using Rows = std::set<std::int64_t>;

Rows rows_of(const Needs& needs) {
  Rows rows;
  for (const io::Range& range : needs) {
    for (std::int64_t row = range.begin; row < range.end; ++row) rows.insert(row);
  }
  return rows;
}

std::vector<Needs> random_needs(Rng& rng, std::int64_t visits, std::int64_t most,
                                std::int64_t rows) {
  std::vector<Needs> needed;
  for (std::int64_t visit = 0; visit < visits; ++visit) {
    if (visit > 0 && rng.between(0, 3) == 0) {
      needed.push_back(needed.back());
      continue;
    }
    Rows chosen;
    for (std::int64_t n = rng.between(1, most); n > 0; --n) chosen.insert(rng.between(0, rows - 1));
    Needs needs;
    for (const std::int64_t row : chosen) needs.push_back({row, row + 1});
    needed.push_back(needs);
  }
  return needed;
}

// The fewest entries, trying every row that could leave.
std::int64_t fewest_entries(const std::vector<Needs>& needed, std::size_t slots) {
  std::map<Rows, std::int64_t> reached{{{}, 0}};
  for (const Needs& needs : needed) {
    const Rows rows = rows_of(needs);
    std::map<Rows, std::int64_t> next;
    const auto note = [&](const Rows& there, std::int64_t entries) {
      const auto [found, added] = next.emplace(there, entries);
      if (!added) found->second = std::min(found->second, entries);
    };
    for (const auto& [there, entries] : reached) {
      Rows all = there;
      all.insert(rows.begin(), rows.end());
      const auto more = entries + static_cast<std::int64_t>(all.size() - there.size());
      const std::vector<std::int64_t> list(all.begin(), all.end());
      for (std::size_t kept = 0; kept < std::size_t{1} << list.size(); ++kept) {
        Rows stay = rows;
        for (std::size_t n = 0; n < list.size(); ++n) {
          if ((kept >> n & 1) != 0) stay.insert(list[n]);
        }
        if (stay.size() <= slots) note(stay, more);
      }
    }
    reached = std::move(next);
  }
  std::int64_t fewest = reached.begin()->second;
  for (const auto& [there, entries] : reached) fewest = std::min(fewest, entries);
  return fewest;
}

TEST_CASE("rows that are needed are there, and as few enter as can", "[cpu][schedules]") {
  Rng rng(20261124);
  int again = 0;
  for (int round = 0; round < 200; ++round) {
    const std::int64_t slots = rng.between(1, 4), rows = rng.between(2, 6);
    const auto needed = random_needs(rng, rng.between(1, 9), std::min(slots, rows), rows);
    const auto moves = moves_on_demand(needed, slots, rows);
    REQUIRE(moves.size() == needed.size());
    std::map<std::int64_t, std::int64_t> occupants;  // by slot
    Rows been;
    std::int64_t entries = 0;
    for (std::size_t visit = 0; visit < needed.size(); ++visit) {
      const Rows needs = rows_of(needed[visit]);
      for (const RowMove& move : moves[visit]) {
        REQUIRE(move.slot >= 0);
        REQUIRE(move.slot < slots);
        const auto found = occupants.find(move.slot);
        CHECK(move.leaves == (found == occupants.end() ? RowMove::kNobody : found->second));
        CHECK(needs.count(move.enters) == 1);
        CHECK(needs.count(move.leaves) == 0);
        CHECK(move.again == (been.count(move.enters) == 1));
        again += move.again ? 1 : 0;
        occupants[move.slot] = move.enters;
        been.insert(move.enters);
        ++entries;
      }
      Rows there;
      for (const auto& [slot, row] : occupants) CHECK(there.insert(row).second);
      CHECK(std::includes(there.begin(), there.end(), needs.begin(), needs.end()));
    }
    CHECK(entries == fewest_entries(needed, static_cast<std::size_t>(slots)));
  }
  CHECK(again > 0);
}

TEST_CASE("a visit that needs more rows than fit is refused", "[cpu][schedules]") {
  CHECK_THROWS_AS(moves_on_demand({{{0, 3}}}, 2, 4), InternalError);
  CHECK(moves_on_demand({}, 0, 0).empty());
}

}  // namespace
}  // namespace attest::schedules
