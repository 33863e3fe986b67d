// No schedule moves fewer words than a lower bound that applies to it: random problems, masks and
// capacities, every registered schedule with the tiles it chooses itself.
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "io/bounds/backward.hpp"
#include "io/bounds/forward.hpp"
#include "io/bounds/loss.hpp"

namespace attest::proptest {
namespace {

constexpr int kProblems = 2000;

const io::ScheduleRegistry& schedules() {
  static const io::ScheduleRegistry registry = [] {
    io::ScheduleRegistry all;
    register_cpu_schedules(all);
    return all;
  }();
  return registry;
}

// A size from 1 to most, small ones as often as large ones.
std::int64_t random_size(Rng& rng, std::int64_t most) {
  const double exponent = rng.uniform() * std::log(static_cast<double>(most) + 1);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::exp(exponent)));
}

Problem random_problem(Rng& rng, io::Direction direction) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  const std::int64_t keys = random_size(rng, 400), d = random_size(rng, 48);
  if (direction == io::Direction::loss_gradient) {
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

// What the schedules are known to be, beyond the plain class.
io::KernelClass class_of(const std::string& schedule, const Problem& problem) {
  static const std::set<std::string> kEvaluateTwice{"column_groups", "two_pass", "two_pass_row",
                                                    "loss_large", "loss_large_direct"};
  static const std::set<std::string> kWholeRows{"key_stationary", "two_pass", "two_pass_row"};
  io::KernelClass kernel = io::plain_class(problem);
  if (kEvaluateTwice.count(schedule) == 0) kernel.evaluation = io::Evaluation::once;
  if (kWholeRows.count(schedule) > 0) kernel.movement = io::RowMovement::whole_index;
  return kernel;
}

std::vector<io::Bound> bounds_for(io::Direction direction, const Problem& problem,
                                  const io::KernelClass& kernel, std::int64_t fast_words) {
  switch (direction) {
    case io::Direction::forward:
      return io::forward_bounds(io::extent_of(problem), kernel, fast_words);
    case io::Direction::backward:
      return io::backward_bounds(io::extent_of(problem), kernel, fast_words);
    case io::Direction::loss_gradient:
      return io::loss_bounds({problem.seqlen_q, problem.head_dim_qk}, kernel, fast_words);
  }
  throw InternalError("Direction out of range");
}

TEST_CASE("no schedule is below a bound", "[schedules][bounds]") {
  Rng rng(20261121);
  for (const auto& family : schedules().families()) {
    int cases = 0, above_compulsory = 0;
    double closest = 1e300;
    for (int trial = 0; trial < kProblems; ++trial) {
      const Problem problem = random_problem(rng, family->direction());
      const AbiProblem form(problem, 1);
      const std::int64_t capacity = random_size(rng, 20000);
      io::Traffic traffic;
      try {
        traffic =
            family->make({family->name(), {}}, *form.get(), io::FastMemory::of_words(capacity))
                ->closed_form();
      } catch (const InvalidProblem&) {
        continue;  // too little fast memory, or a problem that the schedule does not take
      }
      ++cases;
      // It would run with as many words as it uses at its peak: the severest capacity.
      const std::vector<io::Bound> bounds =
          bounds_for(family->direction(), problem, class_of(family->name(), problem),
                     traffic.peak.words.value());
      const std::int64_t words = traffic.total_words().value();
      for (const io::Bound& bound : bounds) {
        if (!bound.is_lower_bound()) continue;
        INFO(family->name() << " on " << problem.to_string() << " in " << traffic.peak.words.value()
                            << " words: " << bound.to_string());
        CHECK(bound.words <= words);
      }
      const auto best = io::greatest(bounds);
      if (!best || best->words == 0) continue;
      if (best->name.rfind("compulsory", 0) != 0) ++above_compulsory;
      closest = std::min(closest, static_cast<double>(words) / static_cast<double>(best->words));
    }
    std::printf("%-20s %4d cases, %4d with a bound above compulsory, least words / bound %.3f\n",
                family->name().c_str(), cases, above_compulsory, closest);
    CHECK(cases > kProblems / 4);
    // The loss gradient's recomputing schedules have only the compulsory bound.
    if (family->name().rfind("loss_large", 0) != 0) CHECK(above_compulsory > 20);
  }
}

// The fewest words any schedule of the direction moves, and the greatest bound.
double best_over_lower(io::Direction direction, const Problem& problem, std::int64_t fast_words) {
  const AbiProblem form(problem, 1);
  std::string name;
  io::Words best;
  for (const auto& family : schedules().families()) {
    if (family->direction() != direction) continue;
    try {
      const auto capacity = io::FastMemory::of_words(fast_words);
      const auto schedule = family->make({family->name(), {}}, *form.get(), capacity);
      const io::Words words = schedule->closed_form().total_words();
      if (name.empty() || words < best) {
        name = schedule->spec().to_string();
        best = words;
      }
    } catch (const io::CapacityExceeded&) {
      continue;
    }
  }
  REQUIRE_FALSE(name.empty());
  const auto lower = io::greatest(bounds_for(direction, problem, io::KernelClass{}, fast_words));
  REQUIRE(lower);
  const double ratio = static_cast<double>(best.value()) / static_cast<double>(lower->words);
  std::printf("%-9s M = %6lld words: %s / %s = %.3f\n", std::string(io::name(direction)).c_str(),
              static_cast<long long>(fast_words), name.c_str(), lower->name.c_str(), ratio);
  return ratio;
}

TEST_CASE("best schedule over lower bound", "[schedules][bounds]") {
  const Problem forward = Problem::parse("sq=4096,sk=4096,d=64");
  for (const std::int64_t fast_words : {64, 256, 1024, 4096, 8192, 16384, 32768}) {
    const double ratio = best_over_lower(io::Direction::forward, forward, fast_words);
    CHECK(ratio >= 1);
    CHECK(ratio <= (fast_words == 16384 ? 1.10 : 1.40));
  }
  const Problem backward = Problem::parse("sq=65536,sk=65536,d=64");
  const double ratio = best_over_lower(io::Direction::backward, backward, 8 * 4096);
  CHECK(ratio >= 1);
  CHECK(ratio <= 1.20);
}

// The comparison notices a schedule that moves a little less than it must.
TEST_CASE("a schedule that leaves reads out is below a bound", "[schedules][bounds]") {
  const Problem problem = Problem::parse("sq=4096,sk=4096,d=16");
  const AbiProblem form(problem, 1);
  const auto schedule = schedules().make("flash2_row", *form.get(), io::FastMemory::of_words(1024));
  const io::Traffic traffic = schedule->closed_form();
  const auto best = io::greatest(
      io::forward_bounds(io::extent_of(problem), io::KernelClass{}, traffic.peak.words.value()));
  REQUIRE(best);
  CHECK(best->words <= traffic.total_words().value());
  // V not read again for every block of queries: half of what streams.
  const std::int64_t careless = traffic.total_words().value() - traffic.reads.words.value() / 2;
  CHECK(best->words > careless);
}

}  // namespace
}  // namespace attest::proptest
