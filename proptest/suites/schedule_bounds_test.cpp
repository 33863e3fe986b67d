// Words that the schedules move against those that every kernel of their class must: random
// problems, masks and capacities, every registered schedule with tiles it chooses itself and with
// random ones.
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"
#include "schedules/register.hpp"

namespace attest::proptest {
namespace {

constexpr int kProblems = 250;  // for each schedule; the nightly campaign draws 16 times as many

// A size from 1 to most, small ones as often as large ones.
std::int64_t random_size(Rng& rng, std::int64_t most) {
  const double exponent = rng.uniform() * std::log(static_cast<double>(most) + 1);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::exp(exponent)));
}

Problem random_problem(Rng& rng, Direction direction) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  const std::int64_t keys = random_size(rng, 400), d = random_size(rng, 48);
  if (direction == Direction::loss_gradient) {
    return Problem::parse("sq=" + text(keys) + ",d=" + text(d));
  }
  const std::int64_t heads = rng.between(1, 2),
                     group = std::max<std::int64_t>(1, rng.between(-3, 3));
  static const char* const kMasks[] = {"none",         "none",       "none",        "causal_tl",
                                       "causal_br",    "window_9_0", "window_0_0",  "window_2_3",
                                       "random_30_17", "random_3_5", "window_40_40"};
  return Problem::parse("b=" + text(rng.between(1, 2)) + ",hq=" + text(heads * group) +
                        ",hkv=" + text(heads) + ",sq=" + text(random_size(rng, 400)) +
                        ",sk=" + text(keys) + ",d=" + text(d) +
                        ",dv=" + text(rng.between(0, 1) == 0 ? d : random_size(rng, 48)) +
                        ",mask=" + kMasks[rng.between(0, 10)]);
}

// The family's name, half of the time with random tiles.
std::string random_schedule(Rng& rng, const io::ScheduleFamily& family) {
  if (rng.between(0, 1) == 0) return family.name();
  std::string text = family.name();
  char separator = ':';
  for (const io::ScheduleParameter& parameter : family.parameters()) {
    if (!parameter.choices.empty()) continue;  // a rule chooses the tiles
    text += separator + parameter.name + "=" + std::to_string(random_size(rng, 400));
    separator = ',';
  }
  return text;
}

void check_none_below(std::uint64_t seed, int problems) {
  Rng rng(seed);
  for (const auto& family : dense_schedules().families()) {
    int cases = 0, above_compulsory = 0;
    std::optional<double> closest;
    for (int trial = 0; trial < problems; ++trial) {
      const Problem problem = random_problem(rng, family->direction());
      const AbiProblem form(problem, 1);
      const auto capacity = io::FastMemory::of_words(random_size(rng, 20000));
      const std::string text = random_schedule(rng, *family);
      std::unique_ptr<io::Schedule> schedule;
      io::Traffic traffic;
      try {
        schedule = dense_schedules().make(text, *form.get(), capacity);
        traffic = schedule->closed_form();
      } catch (const InvalidProblem&) {
        continue;  // too little fast memory, or a problem that the schedule does not take
      }
      ++cases;
      // It would run with as many words as it uses at its peak: the severest capacity.
      const std::vector<io::Bound> bounds =
          bounds_of(family->direction(), problem, class_of(*family, *schedule, problem),
                    traffic.peak.words.value());
      const std::int64_t words = traffic.total_words().value();
      for (const io::Bound& bound : bounds) {
        if (!bound.is_lower_bound() || bound.words <= words) continue;
        FAIL_CHECK(text << " on " << problem.to_string() << " in " << traffic.peak.words.value()
                        << " words moves " << words << ", below " << bound.to_string());
      }
      const auto best = io::greatest(bounds);
      if (!best || best->words == 0) continue;
      if (best->name.rfind("compulsory", 0) != 0) ++above_compulsory;
      const double ratio = static_cast<double>(words) / static_cast<double>(best->words);
      closest = std::min(closest.value_or(ratio), ratio);
    }
    std::printf("%-20s %4d cases, %4d with a bound above compulsory, least words / bound %.3f\n",
                family->name().c_str(), cases, above_compulsory, closest.value_or(0));
    CHECK(cases > problems / 4);
    if (family->kernel_class().products == io::Products::scores_given) {
      CHECK_FALSE(closest);  // no bound speaks of it
    } else if (family->direction() != Direction::loss_gradient ||
               family->kernel_class().evaluation == io::Evaluation::once) {
      CHECK(above_compulsory > problems / 100);  // loss schedules that recompute: only compulsory
    }
  }
}

TEST_CASE("no schedule is below a bound", "[schedules][bounds]") {
  check_none_below(20261121, attest::testing::is_nightly() ? kProblems : kProblems / 3);
}

TEST_CASE("no schedule is below a bound on many problems", "[.large]") {
  check_none_below(20261125, 16 * kProblems);
}

// Returns the words of the best schedule over the greatest lower bound for every kernel.
double best_over_lower(Direction direction, const Problem& problem, std::int64_t fast_words) {
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(fast_words);
  const io::BestSchedule found = best_schedule(dense_schedules(), direction, *form.get(), capacity);
  const auto spec = io::ScheduleSpec::parse(found.best().schedule);
  const io::ScheduleFamily& family = dense_schedules().find(spec.name);
  const io::ScheduleCount count =
      count_schedule(family, *family.make(spec, *form.get(), capacity), problem, capacity);
  CHECK(count.faults().empty());  // among others: dry count = closed form
  CHECK(count.counted == found.best().traffic);
  REQUIRE(count.lower_of_every);
  const double ratio = static_cast<double>(count.counted.total_words().value()) /
                       static_cast<double>(count.lower_of_every->words);
  std::printf("%-9s N = %6lld, d = %4lld, M = %6lld: %s %lld / %s %lld = %.3f\n",
              std::string(name(direction)).c_str(), static_cast<long long>(problem.seqlen_k),
              static_cast<long long>(problem.head_dim_qk), static_cast<long long>(fast_words),
              count.schedule.c_str(), static_cast<long long>(count.counted.total_words().value()),
              count.lower_of_every->name.c_str(),
              static_cast<long long>(count.lower_of_every->words), ratio);
  return ratio;
}

// The goals of the cost model, all lower-order terms counted on both sides.
TEST_CASE("best schedule over lower bound", "[schedules][bounds]") {
  const Problem forward = Problem::parse("sq=4096,sk=4096,d=64");
  for (const std::int64_t fast_words : {64, 256, 1024, 4096, 8192, 16384, 32768}) {
    const double ratio = best_over_lower(Direction::forward, forward, fast_words);
    CHECK(ratio >= 1);
    CHECK(ratio <= (fast_words == 16384 ? 1.10 : 1.40));
  }
  const Problem backward = Problem::parse("sq=65536,sk=65536,d=64");
  const double ratio = best_over_lower(Direction::backward, backward, 8 * 4096);
  CHECK(ratio >= 1);
  CHECK(ratio <= 1.20);
}

// The comparison notices a schedule that moves a little less than it must.
TEST_CASE("a schedule that leaves reads out is below a bound", "[schedules][bounds]") {
  const Problem problem = Problem::parse("sq=4096,sk=4096,d=16");
  const AbiProblem form(problem, 1);
  const auto schedule =
      dense_schedules().make("flash2_row", *form.get(), io::FastMemory::of_words(1024));
  const io::Traffic traffic = schedule->closed_form();
  const auto best = io::greatest(
      bounds_of(Direction::forward, problem, io::KernelClass{}, traffic.peak.words.value()));
  REQUIRE(best);
  CHECK(best->words <= traffic.total_words().value());
  // V not read again for every block of queries: half of what streams.
  const std::int64_t careless = traffic.total_words().value() - traffic.reads.words.value() / 2;
  CHECK(best->words > careless);
}

}  // namespace
}  // namespace attest::proptest
