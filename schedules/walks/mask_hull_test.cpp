#include "schedules/walks/mask_hull.hpp"

#include <algorithm>
#include <string>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "cpu/testing/judged_call.hpp"
#include "schedules/bands/held_pairs.hpp"
#include "schedules/bands/held_scores.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"
#include "schedules/walks/band.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

// A problem with a mask, and its first batch entry.
struct Masked {
  Problem problem;
  AbiProblem form{problem, 1};
  ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
  Sequence sequence = problem.sequences().front();

  explicit Masked(const std::string& text) : problem(Problem::parse(text)) {}

  bool sees(std::int64_t i, std::int64_t j) const { return problem.mask.visible(sequence, i, j); }
  io::Range seen(std::int64_t i) const {
    io::Range range;
    for (std::int64_t j = 0; j < problem.seqlen_k; ++j) {
      if (sees(i, j)) range = {range.count() > 0 ? range.begin : j, j + 1};
    }
    return range;
  }
};

const char* const kMasks[] = {"blockband_4_1",
                              "blockband_3x5_0",
                              "documents_9x7_14x5_9x18",
                              "documents_9x20_1x4_22x6",
                              "dilated_6_2_2",
                              "block_4_8_3",
                              "pairs_2_1",
                              "window_3_1+pairs_30_2",
                              "blockband_5_2,b=2"};

template <class Body>
void on_masks(const Body& body) {
  int with_hull = 0;
  for (const char* mask : kMasks) {
    const Masked masked(std::string("sq=32,sk=30,d=2,mask=") + mask);
    INFO(masked.problem.to_string());
    const auto hull = MaskHull::of(masked.rule);
    if (!hull) continue;
    ++with_hull;
    body(masked, *hull);
  }
  CHECK(with_hull > 4);
}

TEST_CASE("hulls hold every visible pair, and their ends do not fall", "[cpu][schedules]") {
  on_masks([](const Masked& masked, const MaskHull& hull) {
    for (std::int64_t i = 0; i < masked.problem.seqlen_q; ++i) {
      const io::Range band = hull.band(i), seen = masked.seen(i);
      INFO(i << " sees " << seen.begin << " to " << seen.end << ", band " << band.begin << " to "
             << band.end);
      CHECK((seen.count() == 0 || (band.begin <= seen.begin && seen.end <= band.end)));
      CHECK(band.count() >= 0);
      CHECK(hull.most_keys() >= band.count());
      if (i == 0) continue;
      const io::Range before = hull.band(i - 1);
      CHECK(before.begin <= band.begin);
      CHECK(before.end <= band.end);
      if (band.count() > 0 && before.count() > 0) CHECK(before.end >= band.begin);
    }
  });
}

// Where neighbours share a key nothing but later first keys and earlier last ones widens a band.
TEST_CASE("hulls of bands of blocks are no wider than these", "[cpu][schedules]") {
  const Masked masked("sq=32,sk=32,d=2,mask=blockband_4_1");
  const auto hull = MaskHull::of(masked.rule);
  REQUIRE(hull);
  for (std::int64_t i = 0; i < 32; ++i) CHECK(hull->band(i) == masked.seen(i));
}

TEST_CASE("hulls of most pairs, and of more than are listed, are none", "[cpu][schedules]") {
  CHECK_FALSE(MaskHull::of(Masked("sq=32,sk=32,d=2,mask=pairs_50_1").rule));
  CHECK_FALSE(MaskHull::of(Masked("sq=32,sk=32,d=2,mask=window_1_1").rule));
  CHECK_FALSE(MaskHull::of(Masked("sq=4097,sk=4096,d=2,mask=blockband_16_0").rule));
  CHECK(MaskHull::of(Masked("sq=4096,sk=4096,d=2,mask=blockband_16_0").rule));
}

TEST_CASE("bands of hulls, pair by pair", "[cpu][schedules]") {
  Rng rng(9);
  on_masks([&](const Masked& masked, const MaskHull& hull) {
    ScoreRule rule = masked.rule;
    rule.hull = &hull;
    for (int round = 0; round < 30; ++round) {
      const std::int64_t q = rng.between(0, 31), k = rng.between(0, 29);
      const io::Range queries{q, rng.between(q, 32)}, keys{k, rng.between(k + 1, 30)};
      const auto in = [&](std::int64_t i) { return overlap(hull.band(i), keys).count(); };
      std::int64_t pairs = 0, begun = 0, ended = 0, first = -1, last = -1;
      for (std::int64_t i = queries.begin; i < queries.end; ++i) {
        pairs += in(i);
        begun += hull.band(i).begin < keys.begin ? 1 : 0;
        ended += hull.band(i).end <= keys.end ? 1 : 0;
        if (in(i) == 0) continue;
        first = first < 0 ? i : first;
        last = i;
      }
      CHECK(band_pairs(rule, queries, keys) == pairs);
      CHECK(begun_before(rule, queries, keys.begin) == begun);
      CHECK(ended_by(rule, queries, keys.end) == ended);
      const io::Range seeing = queries_of(rule, queries, keys);
      CHECK((pairs == 0 || (seeing.begin == first && seeing.end == last + 1)));
    }
  });
}

// In blocks that do not divide those of the mask: words against their closed form, outputs against
// the definition.
TEST_CASE("schedules that hold pairs of hulls", "[cpu][schedules]") {
  Rng rng(10);
  const auto check = [&](const char* mask, const auto& schedule_of) {
    const Problem problem = Problem::parse(std::string("sq=32,sk=30,d=3,dv=2,mask=") + mask);
    Call call(problem, rng.bits64(), {Memory::spelled, 1, 1, Dlse::absent});
    INFO(problem.to_string());
    schedule_of(call);
  };
  for (const char* mask : kMasks) {
    for (int round = 0; round < 10; ++round) {
      check(mask, [&](Call& call) {
        const HeldScores schedule{rng.between(1, 9), rng.between(1, 40)};
        testing::check_counts(BoundSchedule<HeldScores>(schedule, *call.form.get()),
                              call.forward_arguments());
        const auto expected = cpu::testing::naive_forward(call);
        CHECK(cpu::testing::worst_ratio(call.O.view(), expected.O) <= 1);
        CHECK(cpu::testing::worst_ratio(call.LSE.view(), expected.LSE) <= 1);
      });
      check(mask, [&](Call& call) {
        BoundSchedule<Flash2>({4, 4}, *call.form.get()).run(call.forward_arguments());
        const HeldPairs schedule{rng.between(1, 9), rng.between(1, 40), rng.between(1, 9),
                                 rng.between(1, 40)};
        testing::check_counts(BoundSchedule<HeldPairs>(schedule, *call.form.get()),
                              call.backward_arguments());
        const auto expected = cpu::testing::naive_backward(call);
        CHECK(cpu::testing::worst_ratio(call.dQ.view(), expected.dQ) <= 1);
        CHECK(cpu::testing::worst_ratio(call.dK.view(), expected.dK) <= 1);
        CHECK(cpu::testing::worst_ratio(call.dV.view(), expected.dV) <= 1);
      });
    }
  }
}

// Found once for entries that are alike, anew for others: key lengths of their own, or sequences.
TEST_CASE("hulls of batch entries that differ", "[cpu][schedules]") {
  for (const char* text : {"b=2,sq=32,sk=30,d=3,mask=blockband_5_2+lengths_30_7",
                           "b=3,sq=9,sk=30,d=3,mask=blockband_4_0+lengths_0_30_12",
                           "d=3,mask=cu_12x12_20x12_5x12+blockband_3_0"}) {
    INFO(text);
    const Problem problem = Problem::parse(text);
    Call call(problem, 4, {Memory::spelled, 1, 1, Dlse::absent});
    testing::check_counts(*dense_schedules().make("held_scores:bq=3,held=9", *call.form.get(), {}),
                          call.forward_arguments());
    const auto expected = cpu::testing::naive_forward(call);
    CHECK(cpu::testing::worst_ratio(call.O.view(), expected.O) <= 1);
    BoundSchedule<Flash2>({4, 4}, *call.form.get()).run(call.forward_arguments());
    testing::check_counts(
        *dense_schedules().make("held_pairs:bk=3,held=9,gk=4,gheld=7", *call.form.get(), {}),
        call.backward_arguments());
    const auto gradients = cpu::testing::naive_backward(call);
    CHECK(cpu::testing::worst_ratio(call.dQ.view(), gradients.dQ) <= 1);
    CHECK(cpu::testing::worst_ratio(call.dK.view(), gradients.dK) <= 1);
    CHECK(cpu::testing::worst_ratio(call.dV.view(), gradients.dV) <= 1);
  }
}

// As of the window with as many keys; before, all pairs of the mask's rows were held.
TEST_CASE("bands of blocks are held as windows are", "[cpu][schedules]") {
  const auto words = [](const char* schedule, const char* mask) {
    const Problem problem = Problem::parse(std::string("sq=1024,d=64,mask=") + mask);
    const AbiProblem form(problem, 1);
    return dense_schedules()
        .make(schedule, *form.get(), io::FastMemory::of_words(1024))
        ->closed_form()
        .total_words()
        .value();
  };
  for (const char* schedule : {"held_scores", "held_pairs"}) {
    INFO(schedule);
    CHECK(10 * words(schedule, "blockband_8_2") <= 11 * words(schedule, "window_20_19"));
  }
}

}  // namespace
}  // namespace attest::schedules
