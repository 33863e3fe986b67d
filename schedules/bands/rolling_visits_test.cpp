#include "schedules/bands/rolling_visits.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "schedules/engine/rolling_buffer.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;

// The places of the residents that a visitor sees, by looking at every pair.
std::vector<std::int64_t> seen_by(const Problem& problem, const Sequence& sequence,
                                  Residents residents, std::int64_t visitor,
                                  const RollingVisits& visits) {
  const bool keys = residents == Residents::keys;
  std::vector<std::int64_t> list;
  for (std::int64_t place = 0; place < visits.resident_count(); ++place) {
    const std::int64_t r = visits.row(place).begin;
    if (problem.mask.visible(sequence, keys ? visitor : r, keys ? r : visitor)) {
      list.push_back(place);
    }
  }
  return list;
}

// The fewest stretches of so many residents, and of a gap more, that hold all of these, each at
// most the length of them.
std::int64_t fewest_stretches(const std::vector<std::int64_t>& rows, std::int64_t length,
                              std::int64_t gap) {
  std::vector<std::int64_t> fewest{0};  // that hold the first of the rows
  const auto fits = [&](std::size_t first, std::size_t last) {
    return rows[last] - rows[first] < length + gap &&
           static_cast<std::int64_t>(last - first) < length;
  };
  for (std::size_t n = 1; n <= rows.size(); ++n) {
    std::int64_t least = fewest[n - 1] + 1;
    for (std::size_t first = n; first >= 1 && fits(first - 1, n - 1); --first) {
      least = std::min(least, fewest[first - 1] + 1);
    }
    fewest.push_back(least);
  }
  return fewest.back();
}

// Visits in order, each of a visitor.
using Order = std::vector<std::int64_t>;

// The most visitors that can wait from one of their visits to the next with so many places, trying
// every choice; nothing where that is too many.
std::optional<std::int64_t> most_waits(const Order& order, std::int64_t places) {
  std::vector<Pair> gaps;
  std::map<std::int64_t, std::int64_t> last;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const auto now = static_cast<std::int64_t>(n);
    if (const auto found = last.find(order[n]); found != last.end()) {
      gaps.emplace_back(found->second, now);
    }
    last[order[n]] = now;
  }
  constexpr std::size_t kMost = 12;
  if (gaps.size() > kMost) return std::nullopt;
  std::int64_t most = 0;
  for (std::size_t chosen = 0; chosen < std::size_t{1} << gaps.size(); ++chosen) {
    std::vector<std::int64_t> waiting(order.size());
    std::int64_t count = 0;
    for (std::size_t gap = 0; gap < gaps.size(); ++gap) {
      if ((chosen >> gap & 1) == 0) continue;
      ++count;
      for (std::int64_t n = gaps[gap].first; n < gaps[gap].second; ++n) {
        ++waiting[static_cast<std::size_t>(n)];
      }
    }
    const bool room = std::all_of(waiting.begin(), waiting.end(),
                                  [&](std::int64_t number) { return number <= places; });
    if (room) most = std::max(most, count);
  }
  return most;
}

// Who is in fast memory between visits, as the runs say.
class Places {
 public:
  Places(std::int64_t count, const RollingVisits& visits)
      : occupants_(static_cast<std::size_t>(count), RollingVisits::kNowhere),
        own_(count == visits.visitor_count()) {}

  void visit(const RollingVisits::Run& run, std::int64_t visitor) {
    const std::int64_t place = run.place_of(visitor);
    REQUIRE((run.waited || run.waits || own_) == (place != RollingVisits::kNowhere));
    if (place == RollingVisits::kNowhere) return void(++placeless);
    std::int64_t& occupant = occupants_.at(static_cast<std::size_t>(place));
    CHECK(occupant == (run.waited ? visitor : RollingVisits::kNowhere));
    occupant = run.waits ? visitor : RollingVisits::kNowhere;
    waits += run.waits ? 1 : 0;
  }

  std::int64_t waits = 0, placeless = 0;

 private:
  std::vector<std::int64_t> occupants_;
  bool own_;
};

void check_alike(const RollingVisits& visits, std::int64_t resident,
                 const RollingVisits::Run& run) {
  std::int64_t next = run.visitors.begin;
  for (const io::Range& range : visits.alike(run)) {
    CHECK(range.begin == next);
    next = range.end;
    std::set<std::int64_t> counts;
    for (std::int64_t v = range.begin; v < range.end; ++v) {
      std::int64_t count = 0;
      for (const io::Range& met : visits.met(v, resident)) count += met.count();
      counts.insert(count);
    }
    CHECK(counts.size() == 1);
  }
  CHECK(next == run.visitors.end);
}

// Who is in a buffer on demand, as the runs say.
class Demanded {
 public:
  void move(const std::vector<RowMove>& moves) {
    for (const RowMove& move : moves) {
      const auto found = occupants_.find(move.slot);
      CHECK(move.leaves == (found == occupants_.end() ? RowMove::kNobody : found->second));
      occupants_[move.slot] = move.enters;
      again += move.again ? 1 : 0;
    }
  }

  bool has(std::int64_t row) const {
    return std::any_of(occupants_.begin(), occupants_.end(),
                       [row](const auto& entry) { return entry.second == row; });
  }

  std::size_t size() const { return occupants_.size(); }

  std::int64_t again = 0;

 private:
  std::map<std::int64_t, std::int64_t> occupants_;  // by slot
};

// Returns the first row between the met ones, which makes room for others; -1 if all have room.
std::int64_t first_left_out(const std::vector<io::Range>& met, std::int64_t length) {
  return met.back().end - met.front().begin > length ? met.front().end : -1;
}

struct Found {
  bool tried = false;  // whether the most waits could be found by trying
  std::int64_t again = 0;
};

Found check(const Problem& problem, Residents residents, std::int64_t length, std::int64_t room,
            const std::vector<std::int64_t>& rows = {}, std::int64_t gap_of_masks = 0) {
  Found result;
  const std::int64_t gap = problem.mask.boolean != nullptr ? gap_of_masks : 0;
  const AbiProblem form(problem, 1);
  for (std::size_t b = 0; b < problem.sequences().size(); ++b) {
    const Sequence sequence = problem.sequences()[b];
    const ScoreRule rule{form.get(), batch_of(*form.get(), static_cast<std::int64_t>(b)), 0};
    const RollingVisits visits(rule, {sequence.q_length, sequence.k_length}, residents, length,
                               room, rows, gap_of_masks);
    if (gap == 0) CHECK_FALSE(visits.on_demand());
    Demanded demanded;
    Places places(visits.places(), visits);
    Order order;
    std::map<std::int64_t, std::vector<std::int64_t>> met;  // by visitor
    std::int64_t count = 0, before = -1;
    visits.for_each_step([&](const RollingVisits::Step& step) {
      REQUIRE(step.resident > before);
      before = step.resident;
      std::pair<std::int64_t, std::int64_t> last{-1, -1};  // the first left out, and the visitor
      for (const RollingVisits::Run& run : step.runs) {
        check_alike(visits, step.resident, run);
        if (visits.on_demand()) {
          demanded.move(run.moves);
        } else {
          CHECK(run.moves.empty());
        }
        for (std::int64_t v = run.visitors.begin; v < run.visitors.end; ++v) {
          const std::pair now{first_left_out(visits.met(v, step.resident), length), v};
          REQUIRE(now > last);
          last = now;
          ++count;
          order.push_back(v);
          places.visit(run, v);
          std::vector<std::int64_t>& so_far = met[v];
          CHECK(so_far.empty() == (run.visit == RollingVisits::Visit::first));
          const std::size_t earlier = so_far.size();
          for (const io::Range& range : visits.met(v, step.resident)) {
            for (std::int64_t r = range.begin; r < range.end; ++r) {
              REQUIRE(r >= step.resident);
              REQUIRE(r - step.resident < length + gap);
              if (visits.on_demand()) CHECK(demanded.has(r));
              so_far.push_back(r);
            }
          }
          REQUIRE(so_far.size() > earlier);
          CHECK(static_cast<std::int64_t>(so_far.size() - earlier) <= length);
          CHECK(so_far[earlier] == step.resident);  // not before it must
        }
      }
    });
    std::set<std::int64_t> residents_seen, idle;
    std::int64_t fewest = 0, pairs = 0;
    for (std::int64_t v = 0; v < visits.visitor_count(); ++v) {
      const std::vector<std::int64_t> expected = seen_by(problem, sequence, residents, v, visits);
      CHECK(met[v] == expected);
      fewest += fewest_stretches(expected, length, gap);
      pairs += static_cast<std::int64_t>(expected.size());
      residents_seen.insert(expected.begin(), expected.end());
      if (expected.empty()) idle.insert(v);
    }
    CHECK(count == fewest);
    CHECK(visits.pairs() == pairs);
    for (std::int64_t r = 0; r < visits.resident_count(); ++r) {
      CHECK(visits.seen(r) == (residents_seen.count(r) == 1));
    }
    std::set<std::int64_t> said;
    for (const io::Range& range : visits.idle()) {
      for (std::int64_t v = range.begin; v < range.end; ++v) CHECK(said.insert(v).second);
    }
    CHECK(said == idle);
    const RollingVisits::Sums sums = visits.sums();
    CHECK(sums.visits == count);
    CHECK(sums.visitors == visits.visitor_count() - static_cast<std::int64_t>(idle.size()));
    CHECK(sums.residents == static_cast<std::int64_t>(residents_seen.size()));
    CHECK(sums.waits == places.waits);
    CHECK(sums.placeless == places.placeless);
    CHECK(sums.entries_again == demanded.again);
    CHECK(static_cast<std::int64_t>(demanded.size()) <= visits.buffered());
    result.again += demanded.again;
    if (const auto most = most_waits(order, visits.places())) {
      CHECK(places.waits == *most);
      result.tried = result.tried || *most > 0;
    }
  }
  return result;
}

std::vector<std::int64_t> shuffled(Rng& rng, const Problem& problem, Residents residents) {
  std::vector<std::int64_t> rows(
      static_cast<std::size_t>(residents == Residents::keys ? problem.seqlen_k : problem.seqlen_q));
  std::iota(rows.begin(), rows.end(), 0);
  for (std::size_t n = 1; n < rows.size(); ++n) {
    std::swap(rows[n], rows[static_cast<std::size_t>(rng.between(0, static_cast<int>(n)))]);
  }
  return rows;
}

TEST_CASE("rolling visits meet every visible pair once, in the fewest visits with the most waits",
          "[cpu][schedules]") {
  Rng rng(20261123);
  std::vector<Problem> problems;
  for (int round = 0; round < 60; ++round) {
    problems.push_back(testing::random_problem(rng, Direction::forward));
  }
  for (const char* text : {"sq=24,sk=24,d=2,mask=window_5_0", "sq=24,sk=24,d=2,mask=block_4_40_1",
                           "sq=20,sk=30,d=2,mask=pairs_20_3", "sq=7,sk=12,d=2,mask=causal_br",
                           "d=2,mask=cu_3x5_0x2_4x0", "sq=12,sk=7,d=2,mask=causal_br"}) {
    problems.push_back(Problem::parse(text));
  }
  int tried = 0;
  std::int64_t again = 0;
  for (const Problem& problem : problems) {
    for (const Residents residents : {Residents::queries, Residents::keys}) {
      // Without room for two, bands are walked through without a list.
      const std::int64_t length = rng.between(1, 9),
                         room = rng.between(0, 1) * rng.between(1, 6) + 1;
      INFO(problem.to_string() << (residents == Residents::keys ? " keys " : " queries ") << length
                               << ", room for " << room);
      tried += check(problem, residents, length, room).tried ? 1 : 0;
      const std::vector<std::int64_t> rows = shuffled(rng, problem, residents);
      tried += check(problem, residents, length, room, rows).tried ? 1 : 0;
      const Found found = check(problem, residents, length, room, rows, rng.between(1, 4));
      tried += found.tried ? 1 : 0;
      again += found.again;
    }
  }
  CHECK(tried > 0);
  CHECK(again > 0);
}

TEST_CASE("a band of w rows is met in as few visits as it has lengths", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=100,sk=100,d=2,mask=window_11_0");
  const AbiProblem form(problem, 1);
  const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
  // 12 keys: 3 of 4, 2 of 6 to 11, one of 12; the first queries see 1 to 11.
  const auto visits = [&](std::int64_t length) {
    return RollingVisits(rule, {100, 100}, Residents::keys, length, 1).sums().visits;
  };
  CHECK(visits(4) == 89 * 3 + 4 * 1 + 4 * 2 + 3 * 3);
  CHECK(visits(6) == 89 * 2 + 6 * 1 + 5 * 2);
  CHECK(visits(12) == 100);
}

TEST_CASE("the only visitor waits, and no length is too great", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1,sk=10,d=2");
  const AbiProblem form(problem, 1);
  const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
  const auto sums = RollingVisits(rule, {1, 10}, Residents::keys, 3, 1).sums();
  CHECK(sums.visits == 4);
  CHECK(sums.waits == 3);
  CHECK(sums.placeless == 0);
  const Problem band = Problem::parse("sq=10,sk=10,d=2,mask=window_2_0");
  constexpr auto kLongest = std::numeric_limits<std::int64_t>::max();
  check(band, Residents::keys, kLongest, 1);
  check(band, Residents::queries, kLongest, 3);
}

// Says when it enters and leaves.
struct Noted {
  explicit Noted(std::vector<std::string>* to) : notes(*to) {}
  void enter(io::Range row) {
    at = row.begin;
    notes.push_back("+" + std::to_string(at));
  }
  void enter_again(io::Range row) {
    at = row.begin;
    notes.push_back("*" + std::to_string(at));
  }
  void leave() const { notes.push_back("-" + std::to_string(at)); }

  std::vector<std::string>& notes;
  std::int64_t at = -1;
};

TEST_CASE("a rolling buffer: rows enter and leave in order, one for one", "[cpu][schedules]") {
  std::vector<std::string> notes;
  {
    RollingBuffer<Noted> buffer(2, 5, &notes);
    buffer.roll_to(0);
    CHECK(buffer[1].at == 1);
    buffer.roll_to(2);
    CHECK(buffer[2].at == 2);
    CHECK(buffer[3].at == 3);
    buffer.finish();
  }
  CHECK(notes ==
        std::vector<std::string>{"+0", "+1", "-0", "+2", "-1", "+3", "-2", "+4", "-3", "-4"});
  notes.clear();
  RollingBuffer<Noted> rows(0, 0, &notes);
  rows.finish();
  CHECK(notes.empty());
}

TEST_CASE("a buffer on demand: rows enter and leave as told, each at least once",
          "[cpu][schedules]") {
  std::vector<std::string> notes;
  RollingBuffer<Noted> buffer(2, 5, &notes);
  buffer.move({{0, RowMove::kNobody, 3}, {1, RowMove::kNobody, 1}});
  CHECK(buffer[3].at == 3);
  buffer.move({{0, 3, 2}});
  CHECK(buffer[1].at == 1);
  CHECK(buffer[2].at == 2);
  buffer.move({{1, 1, 3, true}});
  CHECK(buffer[3].at == 3);
  buffer.finish_moves();
  CHECK(notes == std::vector<std::string>{"+3", "+1", "-3", "+2", "-1", "*3", "-2", "-3", "+0",
                                          "-0", "+4", "-4"});
}

}  // namespace
}  // namespace attest::schedules
