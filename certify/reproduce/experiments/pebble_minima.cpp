// The pebble game played to the end on tiny attention: exact minima, bounds, schedules.
#include <fmt/format.h>

#include <algorithm>

#include "certify/reproduce/counted.hpp"
#include "io/pebble/any_order.hpp"
#include "io/pebble/attention_dag.hpp"
#include "io/pebble/minimum.hpp"
#include "io/schedule/best_schedule.hpp"

namespace attest::certify {
namespace {

struct Instance {
  std::int32_t q, k, d;
  std::int32_t most_words;
};

// The best schedule's words without LSE, which the game does not ask for.
std::optional<std::int64_t> best_words(const Laboratory& lab, const Problem& problem,
                                       std::int64_t fast_words) {
  const AbiProblem form(problem, 1);
  try {
    return io::best_schedule(lab.schedules, Direction::forward, *form.get(),
                             io::FastMemory::of_words(fast_words))
               .best()
               .traffic.total_words()
               .value() -
           problem.seqlen_q;
  } catch (const InvalidProblem&) {
    return std::nullopt;
  }
}

Findings run(const Laboratory& lab) {
  constexpr std::int64_t kMostPositions = 4'000'000, kFewPositions = 200'000;
  std::vector<Instance> instances{{2, 2, 1, 6}, {3, 2, 1, 6}};
  if (lab.effort == Effort::fast) instances.insert(instances.end(), {{2, 3, 1, 6}, {4, 2, 1, 6}});
  const std::int64_t most = lab.effort == Effort::fast ? kMostPositions : kFewPositions;
  Table table{
      "pebble_minima",
      "least reads and writes of forward attention, d_k = d_v = d",
      {"q x k, d", "M", "exact minimum, any order", "exact minimum, chains by R1-R4, M + 1 pebbles",
       "greatest lower bound", "best schedule (O only)"},
      {}};
  int compared = 0, sound = 0, reached = 0, scheduled = 0;
  Plot plot{"pebble_game",
            "least words of forward attention on tiny instances (q x k, d = 1)",
            "words of fast memory M",
            "words moved",
            {},
            Plot::Scale::linear,
            Plot::Scale::linear};
  for (const Instance& one : instances) {
    const std::string name = fmt::format("{} x {}", one.q, one.k);
    Curve minimum{name + ", exact minimum", Curve::Kind::measured, {}},
        schedule{name + ", best schedule", Curve::Kind::measured, {}},
        below{name + ", lower bound", Curve::Kind::bound, {}};
    const io::AttentionShape shape{one.q, one.k, one.d, one.d, {}};
    const io::StepSystem any = io::any_order_forward(shape, io::OneKeyRow::copied);
    const io::StepSystem chains = io::steps_of(io::forward_dag(shape, {}));
    const Problem problem = Problem::parse(fmt::format("sq={},sk={},d={}", one.q, one.k, one.d));
    for (std::int32_t fast_words = 3; fast_words <= one.most_words; ++fast_words) {
      const io::Minimum least = io::least_traffic(any, fast_words, most);
      const io::Minimum chained = io::least_traffic(chains, fast_words + 1, most);
      const std::int64_t bound = lower_bound(Direction::forward, problem, fast_words);
      const auto best = best_words(lab, problem, fast_words);
      const auto text = [](const io::Minimum& found) {
        if (found.certainty == io::Minimum::Certainty::impossible) return std::string("none");
        return (found.certainty == io::Minimum::Certainty::at_least ? ">= " : "") +
               std::to_string(found.words);
      };
      const auto x = static_cast<double>(fast_words);
      below.points.emplace_back(x, static_cast<double>(bound));
      if (best) schedule.points.emplace_back(x, static_cast<double>(*best));
      if (least.certainty == io::Minimum::Certainty::exact) {
        minimum.points.emplace_back(x, static_cast<double>(least.words));
        ++compared;
        sound += bound <= least.words && (!best || least.words <= *best) ? 1 : 0;
        reached += bound == least.words ? 1 : 0;
        scheduled += best && *best == least.words ? 1 : 0;
      }
      table.rows.push_back({fmt::format("{} x {}, {}", one.q, one.k, one.d),
                            std::to_string(fast_words), text(least), text(chained),
                            std::to_string(bound), best ? std::to_string(*best) : "none"});
    }
    for (Curve* curve : {&minimum, &schedule, &below}) plot.curves.push_back(std::move(*curve));
  }
  Findings findings;
  findings.claims.push_back(
      {"the red-blue pebble game bounds the words of attention",
       "Hong and Kung 1981; Saha and Ye 2024; Li et al. 2024",
       fmt::format("{} exact minima in the weakest class (sums in any order, results in place, "
                   "free recomputation): {} lie between the bound and the best schedule, {} equal "
                   "the bound, {} the best schedule",
                   compared, sound, reached, scheduled),
       compared > 0 && sound == compared ? Outcome::reproduced : Outcome::not_reproduced});
  findings.plots.push_back(std::move(plot));
  findings.tables.push_back(std::move(table));
  return findings;
}

}  // namespace

Experiment pebble_minima_experiment() {
  return {"pebble_minima", "exact minima of the pebble game", {}, run, 9};
}

}  // namespace attest::certify
