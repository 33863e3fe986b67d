// Words that the schedules move on masks against the bounds that know the mask.
#include "proptest/testing/pattern_bounds.hpp"

#include <cstdio>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/dense/products.hpp"
#include "io/bounds/patterns/pattern.hpp"
#include "io/bounds/testing/smallest_degrees.hpp"
#include "io/bounds/weights/weighted_backward.hpp"
#include "io/bounds/weights/weighted_pattern.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"
#include "proptest/testing/random_masks.hpp"
#include "schedules/register.hpp"

namespace attest::proptest {
namespace {

using testing::BoundsAt, testing::Sees;

Sees random_pattern(Rng& rng, std::int64_t rows, std::int64_t columns) {
  switch (rng.between(0, 4)) {
    case 0:
      return testing::random_blocks(rng, rows, columns, 1, rng.between(1, 60));
    case 1:
      return testing::random_blocks(rng, rows, columns, rng.between(2, 9), rng.between(5, 80));
    case 2: {  // a band, and keys that every row sees
      const std::int64_t width = rng.between(0, 5), shared = rng.between(0, 3);
      return [=](std::int64_t i, std::int64_t j) {
        return j < shared || (j - i <= width && i - j <= width);
      };
    }
    case 3: {  // components whose rows and keys lie scattered
      const std::int64_t parts = rng.between(2, 6);
      return [=](std::int64_t i, std::int64_t j) { return i * 7 % parts == j * 5 % parts; };
    }
    default: {  // a few full rows among rows with one key or none
      const std::int64_t every = rng.between(2, 5);
      return [=](std::int64_t i, std::int64_t j) {
        return i % every == 0 || (i % every == 1 && j == i % columns);
      };
    }
  }
}

Problem random_problem(Rng& rng) {
  const auto text = [&rng](const char* key, std::int64_t most) {
    return key + std::to_string(rng.between(1, most));
  };
  Problem problem =
      Problem::parse(text("sq=", 60) + text(",sk=", 60) + text(",d=", 12) + text(",dv=", 12) +
                     text(",b=", 2) + (rng.between(0, 2) == 0 ? ",hq=4,hkv=2" : ""));
  problem.mask.boolean = testing::mask_of(problem.seqlen_q, problem.seqlen_k,
                                          random_pattern(rng, problem.seqlen_q, problem.seqlen_k));
  return problem;
}

std::string random_schedule(Rng& rng, const io::ScheduleFamily& family) {
  std::string text = family.name();
  char separator = ':';
  for (const io::ScheduleParameter& parameter : family.parameters()) {
    if (!parameter.choices.empty()) continue;
    text += separator + parameter.name + "=" + std::to_string(rng.between(1, 30));
    separator = ',';
  }
  return text;
}

// Random masks and schedules: none is below a bound by pattern, which the smallest degrees in place
// of all others would show.
void check_none_below(Rng& rng, Direction direction, int masks) {
  int cases = 0, greatest = 0, above = 0;
  for (int trial = 0; trial < masks; ++trial) {
    const Problem problem = random_problem(rng);
    const AbiProblem form(problem, 1);
    const io::PatternDegrees degrees = io::pattern_degrees(problem);
    io::PatternDegrees wrong = degrees;
    for (auto& component : wrong.components) {
      component = io::testing::with_smallest_degrees(component);
    }
    const BoundsAt right = testing::bounds_at(direction, degrees),
                   others = testing::bounds_at(direction, wrong);
    for (const auto& family : dense_schedules().families()) {
      if (family->direction() != direction) continue;
      const auto schedule = dense_schedules().make(random_schedule(rng, *family), *form.get(), {});
      const io::Traffic traffic = schedule->closed_form();
      const std::int64_t words = traffic.total_words().value();
      const std::int64_t fast_words = traffic.peak.words.value();
      if (fast_words == 0) continue;
      const io::KernelClass kernel = class_of(*family, *schedule, problem);
      const auto bounds = right(kernel, fast_words);
      INFO(family->name() << " on " << problem.to_string() << " in " << fast_words << " words");
      for (const io::Bound& bound :
           testing::all_bounds(direction, degrees.extent, right, kernel, fast_words)) {
        INFO(bound.to_string());
        if (bound.is_lower_bound()) CHECK(bound.words <= words);
      }
      ++cases;
      const auto by_size =
          io::greatest(testing::bounds_by_size(direction, degrees.extent, kernel, fast_words));
      const auto by_pattern = io::greatest(bounds);
      if (!by_pattern) continue;  // weights are given: no bound but the compulsory one
      REQUIRE(by_size);
      if (by_pattern->words > by_size->words) ++greatest;
      if (io::greatest(others(kernel, fast_words))->words > words) ++above;
    }
  }
  std::printf("%d schedules on masks, the bound by pattern is the greatest in %d\n", cases,
              greatest);
  CHECK(cases > 5 * masks);
  CHECK(greatest > 0);
  CHECK(above > 0);
}

TEST_CASE("no schedule is below a bound by pattern", "[schedules][bounds]") {
  Rng rng(20261122);
  check_none_below(rng, Direction::forward, attest::testing::is_nightly() ? 150 : 20);
}

TEST_CASE("no backward schedule is below a bound by pattern", "[schedules][bounds]") {
  Rng rng(20261123);
  check_none_below(rng, Direction::backward, attest::testing::is_nightly() ? 60 : 30);
}

// Sizes of fast memory in words; a search for each takes seconds.
std::vector<std::int64_t> memories() {
  if (attest::testing::is_nightly()) return {1024, 1536, 2048, 4096};
  return {1024, 4096};
}

// Random blocks, whose weights are searched once for the tests below.
struct WeighedBlocks {
  explicit WeighedBlocks(const char* text)
      : problem(Problem::parse(text)), degrees(io::pattern_degrees(problem)) {}
  Problem problem;
  io::PatternDegrees degrees;
};

const WeighedBlocks& weighed_blocks() {
  static const WeighedBlocks blocks("sq=500,sk=512,d=8,mask=block_16_25_1");
  return blocks;
}

// Blocks that the diagonal cuts: parts count all pairs, the whole counts the visible pairs.
const WeighedBlocks& weighed_causal_blocks() {
  static const WeighedBlocks blocks("sq=260,sk=260,d=8,mask=causal_br+block_16_50_1");
  return blocks;
}

// No schedule is below the bounds that know how dense parts are; with a limit that does not hold
// they would be above them.
TEST_CASE("no schedule is below the bounds by weights", "[schedules][bounds]") {
  const Direction direction = GENERATE(Direction::forward, Direction::backward);
  const bool forward = direction == Direction::forward;
  const bool causal = GENERATE(false, true);
  if (!attest::testing::is_nightly() && causal == forward) return;  // each once, for time
  const WeighedBlocks& blocks = causal ? weighed_causal_blocks() : weighed_blocks();
  const Problem& problem = blocks.problem;
  const io::PatternDegrees& degrees = blocks.degrees;
  const AbiProblem form(problem, 1);
  const io::ClassGrid& grid = *degrees.dense_parts->grid();
  io::PartWeights wrong =
      *degrees.dense_parts->weights(forward ? io::kForwardParts : io::kBackwardParts);
  for (io::PartLimit& limit : wrong.limits) limit.most /= causal ? 8 : 4;
  for (const std::int64_t fast_words : memories()) {
    const io::BestSchedule found = io::best_schedule(all_schedules(), direction, *form.get(),
                                                     io::FastMemory::of_words(fast_words));
    const std::int64_t words = found.best().traffic.total_words().value();
    const io::Bound bound = forward ? io::theorem_a_weighted(degrees, {}, fast_words)
                                    : io::theorem_c_weighted(degrees, {}, fast_words);
    INFO(bound.to_string() << ", best " << words);
    CHECK(bound.is_lower_bound());
    CHECK(bound.words <= words);
    CHECK((forward
               ? io::weighted_words(io::weighted_pairs(grid, wrong), degrees.extent, {}, fast_words)
               : io::weighted_backward_words(io::WeightedProducts(grid, wrong, 8), 1, {},
                                             fast_words)) > words);
  }
}

// The same of schedules that visit every pair once with whole rows, in other orders of keys.
TEST_CASE("no single pass is below the bound by weights", "[schedules][bounds]") {
  const Problem& problem = weighed_blocks().problem;
  const io::PatternDegrees& degrees = weighed_blocks().degrees;
  const AbiProblem form(problem, 1);
  io::PartWeights wrong = *degrees.dense_parts->weights(io::kBackwardParts);
  for (io::PartLimit& limit : wrong.limits) limit.most /= 4;
  const io::WeightedProducts products(*degrees.dense_parts->grid(), wrong, 8);
  int above = 0;
  for (const std::int64_t fast_words : memories()) {
    for (const char* text : {"key_stationary", "rolling_keys:bq=1,order=grouped",
                             "rolling_keys:bq=1,order=gapped", "rolling_queries_bwd:bk=1"}) {
      const auto schedule =
          all_schedules().make(text, *form.get(), io::FastMemory::of_words(fast_words));
      const io::KernelClass kernel =
          class_of(all_schedules().find(io::ScheduleSpec::parse(text).name), *schedule, problem);
      const std::int64_t words = schedule->closed_form().total_words().value();
      io::Bound weighted = io::theorem_c_weighted(degrees, kernel, fast_words);
      const auto single_pass = [&] {
        return io::backward_single_pass(degrees.extent, kernel, fast_words, {weighted});
      };
      INFO(text << " moves " << words << " in " << fast_words);
      REQUIRE(single_pass().is_lower_bound());
      CHECK(single_pass().words > weighted.words);
      CHECK(single_pass().words <= words);
      weighted.words = io::weighted_backward_words(products, 1, kernel, fast_words);
      if (single_pass().words > words) ++above;
    }
  }
  CHECK(above > 0);
}

// Bounds measured on patterns of pairs hold for the masks that have the same pairs.
TEST_CASE("bands as patterns of pairs have the bounds of bands", "[schedules][bounds]") {
  const auto bounds_of = [](const char* mask) {
    const io::PatternDegrees degrees =
        io::pattern_degrees(Problem::parse(std::string("sq=4096,d=64,mask=") + mask));
    std::vector<std::int64_t> words;
    for (const std::int64_t fast_words : {1024, 65536}) {
      words.push_back(io::greatest(io::forward_bounds(degrees.extent, {}, fast_words))->words);
      words.push_back(io::greatest(io::pattern_bounds(degrees, {}, fast_words))->words);
    }
    return words;
  };
  CHECK(bounds_of("causal_br") == bounds_of("dilated_inf_0_1"));
  CHECK(bounds_of("window_32_32") == bounds_of("dilated_32_32_1"));
  CHECK_FALSE(bounds_of("window_32_32") == bounds_of("dilated_32_33_1"));
}

// Statements about sparse Q and K would be above what schedules move on a mask.
TEST_CASE("orders for sparse inputs do not hold for masks", "[schedules][bounds]") {
  double before = 0;
  for (const std::int64_t length : {4096, 16384, 65536}) {
    const Problem problem =
        Problem::parse("sq=" + std::to_string(length) + ",d=64,mask=window_1_1");
    const AbiProblem form(problem, 1);
    const auto words = static_cast<double>(
        dense_schedules()
            .make("flash2:bq=7,bk=1", *form.get(), io::FastMemory::of_words(1024))
            ->closed_form()
            .total_words()
            .value());
    const double order =
        io::sparse_attention_order({3 * length * 64, 64, length * 64, io::extent_of(problem).pairs},
                                   {}, 1024)
            .leading;
    CHECK(order / words > 1.5 * before);  // it grows faster than any constant allows
    before = order / words;
  }
  CHECK(before > 1);
}

}  // namespace
}  // namespace attest::proptest
