// Schedules over lists as careless authors would write them, each against the check that must
// notice.
#include <string>

#include "core/testing/catch.hpp"
#include "cpu/testing/judged_call.hpp"
#include "schedules/dense/flash1.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/testing/random_cases.hpp"
#include "schedules/walks/tile_map.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

enum class Mistake {
  none,
  skips_ragged_tile,     // the last tile of keys, when it is cut
  forgets_index_words,   // walks the tiles without reading a list
  forgets_bits,          // of partial tiles
  reads_wrong_transpose  // the list of query block t for key block t
};

// BlockFlash1, so that lists are transposed ones.
struct Careless {
  using Head = ForwardHead;
  static constexpr const char* kName = "careless";
  static std::vector<Parameter<Careless>> parameters() {
    return {{"b", &Careless::block, Extent::any}};
  }
  std::int64_t block;
  Mistake mistake = Mistake::none;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto m_slow = machine.workspace(q, 1, "m"), l_slow = machine.workspace(q, 1, "l");
    machine.parallel_tiles(io::Range{0, q}, block, [&](auto& fresh, io::Range queries) {
      store_empty_rows(fresh, head.O.block(queries), m_slow.block(queries), head.V.columns());
      auto l = fresh.scratch(queries.count(), 1, "l");
      fresh.compute(Fill{0}, l);
      fresh.store(l, l_slow.block(queries));
    });
    const auto add = [&](io::Range queries, io::Range keys) {
      const bool ragged = keys.count() < block;
      if (mistake == Mistake::skips_ragged_tile && ragged) return;
      add_tile(machine, head, m_slow, l_slow, queries, keys);
    };
    if (mistake == Mistake::forgets_index_words) {
      const TileMap map(head.rule, q, k, block, block, Stay::keys);
      for (const io::Range& keys : map.blocks()) {
        map.open(machine, keys).for_each([&](const auto& tile) { add(tile.queries, keys); });
      }
      return;
    }
    const bool wrong = mistake == Mistake::reads_wrong_transpose;
    const TileList list(head.rule, q, k, block, block, wrong ? Stay::queries : Stay::keys);
    machine.for_tiles(list.blocks(), block, [&](io::Range keys) {
      const ListedTiles tiles(machine, list, keys);
      const auto visit = [&](const TileList::Entry& tile) {
        add(wrong ? tile.keys : tile.queries, keys);
      };
      if (mistake == Mistake::forgets_bits) {
        tiles.for_each_index(visit);
      } else {
        tiles.for_each(visit);
      }
    });
  }

  template <class M>
  static void add_tile(M& machine, const ForwardHead& head, const io::MutableSlowMatrix& m_slow,
                       const io::MutableSlowMatrix& l_slow, io::Range queries, io::Range keys) {
    const auto K = machine.load(head.K.block(keys), "K");
    const auto V = machine.load(head.V.block(keys), "V");
    const auto Q = machine.load(head.Q.block(queries), "Q");
    auto O = machine.scratch(queries.count(), head.V.columns(), "O");
    auto m = machine.scratch(queries.count(), 1, "m");
    auto l = machine.scratch(queries.count(), 1, "l");
    machine.load_into(O, head.O.block(queries));
    machine.load_into(m, m_slow.block(queries));
    machine.load_into(l, l_slow.block(queries));
    auto S = machine.scratch(queries.count(), keys.count(), "S");
    compute_scores(machine, S, Q, K, head.rule, queries, keys);
    auto word = machine.scratch(1, 1, "row maximum");
    machine.compute(UpdateNormalized{}, S, m, l, O, word);
    machine.compute(Product{}, O, S, V);
    machine.store(O, head.O.block(queries));
    machine.store(m, m_slow.block(queries));
    machine.store(l, l_slow.block(queries));
  }

  // K and V are read for every tile, so that a tile is the same whoever walks.
  io::Traffic cost(const ForwardHead& head) const {
    const HeadShape s = shape_of(head);
    const WalkSums sums =
        TileList::sums_of(head.rule, s.q.value(), s.k.value(), block, block, Stay::keys);
    io::Traffic traffic = BlockFlash1{block, block}.cost(head);
    traffic.reads += s.in((s.dk + s.dv) * sums.tile_keys);
    const io::Words once = (s.dk + s.dv) * sums.keys;
    return {{traffic.reads.words - once, traffic.reads.bytes - once * s.width},
            traffic.writes,
            traffic.peak};
  }
};

struct Outcome {
  double ratio;  // worst error / bound of O
  io::Traffic counted, closed_form;

  bool outputs_right() const { return ratio <= 1; }
  bool counts_right() const { return counted == closed_form; }
};

Outcome run(Mistake mistake, const std::string& mask) {
  const Problem problem = Problem::parse("sq=13,sk=13,d=4,dv=3,mask=" + mask);
  Call call(problem, 3, {Memory::spelled, 1, 1, Dlse::absent});
  const BoundSchedule<Careless> schedule({4, mistake}, *call.form.get());
  const io::Traffic counted = schedule.count({}, call.forward_arguments()).traffic();
  return {worst_ratio(call.O.view(), cpu::testing::naive_forward(call).O), counted,
          schedule.closed_form()};
}

constexpr const char* kAligned = "block_4_40_3";    // blocks are tiles
constexpr const char* kUnaligned = "block_3_40_3";  // most tiles are partial

TEST_CASE("careless walks of lists are noticed", "[sparse][schedules]") {
  for (const char* mask : {kAligned, kUnaligned}) {
    INFO(mask);
    CHECK(run(Mistake::none, mask).outputs_right());
    CHECK(run(Mistake::none, mask).counts_right());
    CHECK_FALSE(run(Mistake::skips_ragged_tile, mask).outputs_right());
    CHECK_FALSE(run(Mistake::skips_ragged_tile, mask).counts_right());
    CHECK(run(Mistake::forgets_index_words, mask).outputs_right());
    CHECK_FALSE(run(Mistake::forgets_index_words, mask).counts_right());
    CHECK_FALSE(run(Mistake::reads_wrong_transpose, mask).outputs_right());
  }
  CHECK_FALSE(run(Mistake::forgets_bits, kUnaligned).counts_right());
  CHECK(run(Mistake::forgets_bits, kAligned).counts_right());  // there are none
}

}  // namespace
}  // namespace attest::schedules
