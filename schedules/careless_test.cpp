// flash2 as careless authors would write it, each against the check that must notice.
#include <limits>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/kernel_call.hpp"
#include "cpu/testing/judged_call.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/engine/family.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

enum class Mistake {
  none,
  forgets_store,        // of the last block of O
  forgets_fill,         // of O: sums onto undefined words
  forgets_mask,         // scores are not finished
  reads_keys_twice,     // words that the closed form does not know
  keeps_keys,           // K stays while V is there
  keeps_queries,        // a tile of the caller is live when a parallel block begins
  says_unlike_is_alike  // the first key tile does more than the others
};

struct Careless {
  using Head = ForwardHead;
  static constexpr const char* kName = "careless";
  static std::vector<Parameter<Careless>> parameters() {
    return {{"bq", &Careless::block_q, Extent::queries}, {"bk", &Careless::block_k, Extent::keys}};
  }
  std::int64_t block_q, block_k;
  Mistake mistake = Mistake::none;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    if (mistake == Mistake::keeps_queries) {
      const auto Q = machine.load(head.Q, "Q");
      return all_blocks(machine, head);
    }
    all_blocks(machine, head);
  }

  template <io::Machine M>
  void all_blocks(M& machine, const ForwardHead& head) const {
    machine.parallel_tiles(all_rows(head.Q), block_q,
                           [&](auto& block, io::Range queries) { attend(block, head, queries); });
  }

  template <io::Machine M>
  void attend(M& machine, const ForwardHead& head, io::Range queries) const {
    const auto Q = machine.load(head.Q.block(queries), "Q");
    auto O = machine.scratch(queries.count(), head.V.columns(), "O");
    auto m = machine.scratch(queries.count(), 1, "m");
    auto l = machine.scratch(queries.count(), 1, "l");
    if (mistake != Mistake::forgets_fill) machine.compute(Fill{0}, O);
    machine.compute(StartRows{}, m, l);
    machine.for_tiles(all_rows(head.K), block_k, [&](io::Range keys) {
      auto S = machine.scratch(queries.count(), keys.count(), "S");
      if (mistake == Mistake::keeps_keys) {
        const auto K = machine.load(head.K.block(keys), "K");
        weigh(machine, head, Q, K, S, queries, keys);
        update_softmax(machine, S, m, l, O);
        return add_values(machine, head, S, O, keys);
      }
      {
        const auto K = machine.load(head.K.block(keys), "K");
        weigh(machine, head, Q, K, S, queries, keys);
      }
      update_softmax(machine, S, m, l, O);
      if (mistake == Mistake::reads_keys_twice) {
        const auto again = machine.load(head.K.block(keys), "K");
      }
      if (mistake == Mistake::says_unlike_is_alike && keys.begin == 0) {
        const auto again = machine.load(head.K.block(keys), "K");
      }
      add_values(machine, head, S, O, keys);
    });
    machine.compute(FinishRows{}, O, m, l);
    const bool last = queries.end == head.Q.rows();
    if (mistake != Mistake::forgets_store || !last) machine.store(O, head.O.block(queries));
    machine.store(m, head.LSE.block(queries));
  }

  template <class M, class Queries, class Keys, class Tile>
  void weigh(M& machine, const ForwardHead& head, const Queries& Q, const Keys& K, Tile& S,
             io::Range queries, io::Range keys) const {
    machine.compute(Fill{0}, S);
    machine.compute(Product{Form::second_transposed}, S, Q, K);
    if (mistake != Mistake::forgets_mask) {
      machine.compute(FinishScores{head.rule, queries.begin, keys.begin}, S);
    }
  }

  template <class M, class Tile>
  static void add_values(M& machine, const ForwardHead& head, Tile& S, Tile& O, io::Range keys) {
    const auto V = machine.load(head.V.block(keys), "V");
    machine.compute(Product{}, O, S, V);
  }

  io::Traffic cost(const ForwardHead& head) const { return Flash2{block_q, block_k}.cost(head); }
};

struct Outcome {
  double ratio;  // worst error / bound of O
  io::Traffic counted, dry, closed_form;

  bool outputs_right() const { return ratio <= 1; }
  bool counts_right() const { return counted == closed_form && dry == closed_form; }
};

Outcome run(Mistake mistake, const std::string& mask = "none", io::FastMemory capacity = {}) {
  const Problem problem = Problem::parse("hq=2,sq=13,sk=11,d=4,dv=3,mask=" + mask);
  Call call(problem, 3, {Memory::spelled, 1, 1, Dlse::absent});
  const attest_forward_args args = call.forward_arguments();
  const BoundSchedule<Careless> schedule({5, 4, mistake}, *call.form.get());
  const io::Traffic counted = schedule.count(capacity, args).traffic();
  return {cpu::testing::worst_ratio(call.O.view(), cpu::testing::naive_forward(call).O), counted,
          schedule.dry_count(capacity).traffic(), schedule.closed_form()};
}

TEST_CASE("a careful schedule passes the checks that careless ones fail", "[cpu][schedules]") {
  CHECK(run(Mistake::none).outputs_right());
  CHECK(run(Mistake::none).counts_right());
  CHECK_FALSE(run(Mistake::forgets_store).outputs_right());
  CHECK_FALSE(run(Mistake::forgets_store).counts_right());
  CHECK_FALSE(run(Mistake::forgets_fill).outputs_right());
  CHECK_FALSE(run(Mistake::forgets_mask).outputs_right());  // the scale is not applied either
  CHECK_FALSE(run(Mistake::reads_keys_twice).counts_right());
  CHECK(run(Mistake::reads_keys_twice).outputs_right());
  CHECK_FALSE(run(Mistake::keeps_keys).counts_right());
  const Outcome unlike = run(Mistake::says_unlike_is_alike);
  CHECK(unlike.counted != unlike.dry);
  CHECK_THROWS_AS(run(Mistake::keeps_queries), InternalError);
}

TEST_CASE("the closed form of tiles that nobody sees is not that of all tiles",
          "[cpu][schedules]") {
  CHECK(run(Mistake::none, "causal_tl").outputs_right());
  CHECK_FALSE(run(Mistake::none, "causal_tl").counts_right());  // it visits masked tiles
}

TEST_CASE("what overflows fast memory is refused", "[cpu][schedules]") {
  const std::int64_t peak = run(Mistake::none).closed_form.peak.words.value();
  CHECK_NOTHROW(run(Mistake::none, "none", io::FastMemory::of_words(peak)));
  CHECK_THROWS_WITH(run(Mistake::keeps_keys, "none", io::FastMemory::of_words(peak)),
                    "tile 'row maximum' needs 1 words, but 81 of 81 are live");
}

}  // namespace
}  // namespace attest::schedules
