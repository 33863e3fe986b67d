#include "certify/reproduce/claims/io_against_fast_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/fit.hpp"
#include "core/error.hpp"
#include "io/schedule/schedule_count.hpp"

namespace attest::certify {
namespace {

constexpr double kLargeCache = -1, kSmallCache = -0.5;
// Fits in units of d^2: the large cache up to where the words that are moved once begin to count.
constexpr double kLeast = 1.0 / 64, kMost = 16;
// The papers' range ends where a whole operand fits, M = N d; the fit ends before that.
constexpr std::int64_t kOfOperand = 4;
// The least N over d with three sizes to fit, d^2 to N d / 4 = 4 d^2.
constexpr std::int64_t kLeastRows = 16;

using Points = std::vector<std::pair<double, double>>;

struct Counts {
  std::map<std::string, Points> schedules, bounds;
  Points greatest;         // of the lower bounds for kernels that declare nothing
  double least_ratio = 0;  // words over the greatest lower bound, over all schedules and sizes
  int compared = 0;
};

Counts count_all(const Laboratory& lab, const IoSubject& subject, const Problem& problem,
                 std::int64_t head_dim) {
  constexpr int kLow = -6, kHigh = 6;
  Counts counts;
  const int steps = lab.effort == Effort::smoke ? 1 : 2;
  for (const std::int64_t fast_words : fast_memory_grid(head_dim, kLow, kHigh, steps)) {
    const auto x = static_cast<double>(fast_words);
    if (const std::int64_t words = lower_bound(subject.direction, problem, fast_words); words > 0) {
      counts.greatest.emplace_back(x, static_cast<double>(words));
    }
    io::KernelClass once = io::plain_class(problem);
    once.evaluation = io::Evaluation::once;
    for (const io::Bound& bound : io::bounds_of(subject.direction, problem, once, fast_words)) {
      const bool words = bound.form == io::Form::words;
      const double value = words ? static_cast<double>(bound.words) : bound.leading;
      if (!bound.applies() || value <= 0) continue;
      const std::string name = bound.is_lower_bound() ? bound.name : bound.name + ", no bound";
      counts.bounds[name].emplace_back(x, value);
    }
    for (const auto& family : lab.schedules.families()) {
      if (family->direction() != subject.direction) continue;
      const auto counted = count_words(lab.schedules, family->name(), problem, fast_words);
      if (!counted) continue;
      counts.schedules[family->name()].emplace_back(x, static_cast<double>(counted->words));
      const auto lower =
          io::greatest(io::bounds_of(subject.direction, problem, counted->kernel, fast_words));
      if (!lower || lower->words <= 0) continue;
      const double ratio = static_cast<double>(counted->words) / static_cast<double>(lower->words);
      counts.least_ratio = counts.compared == 0 ? ratio : std::min(counts.least_ratio, ratio);
      ++counts.compared;
    }
  }
  return counts;
}

Points within(const Points& points, double low, double high) {
  Points inside;
  for (const auto& point : points) {
    if (point.first >= low && point.first <= high) inside.push_back(point);
  }
  return inside;
}

// The claimed exponent is the nearest multiple of a half, and the interval excludes its neighbours.
Outcome outcome_of(const Exponent& fitted, double claimed) {
  const bool nearest = std::lround(2 * fitted.value) == std::lround(2 * claimed);
  return nearest && !fitted.contains(claimed - 0.5) && !fitted.contains(claimed + 0.5)
             ? Outcome::reproduced
             : Outcome::not_reproduced;
}

Claim exponent_claim(const Counts& counts, const IoSubject& subject, double claimed,
                     const Problem& problem, Table& table) {
  const bool large = claimed == kLargeCache;
  const auto d = static_cast<double>(problem.head_dim_qk);
  const double square = d * d;
  const double most =
      std::min(kMost, static_cast<double>(problem.seqlen_k) / (kOfOperand * d));  // of d^2
  const CitedClaim& stated = large ? subject.large : subject.small;
  Claim claim{stated.text, stated.source, "exponent of M", Outcome::reproduced};
  // The papers' own; the others of a case lie beside it.
  const Rivals& papers = subject.rivals.front();
  for (const std::string& name : large ? papers.large : papers.small) {
    const Points points = large ? within(counts.schedules.at(name), square, most * square)
                                : within(counts.schedules.at(name), kLeast * square, square);
    const Exponent fitted = fit_exponent(points);
    claim.measured += fmt::format(" {} {}", name, fitted.to_string());
    claim.outcome = std::max(claim.outcome, outcome_of(fitted, claimed));
    table.rows.push_back({name, large ? fmt::format("d^2 to {:g} d^2", most) : "d^2/64 to d^2",
                          std::to_string(fitted.points), fmt::format("{:.4f}", fitted.value),
                          fmt::format("{:.4f}", fitted.low), fmt::format("{:.4f}", fitted.high),
                          fmt::format("{}", claimed)});
  }
  return claim;
}

// The fewest words of some schedules, with the tiles that suit them best or with the papers'.
WordsAt fewest(const Laboratory& lab, const Problem& problem, const std::vector<std::string>& names,
               Tiles tiles) {
  return [&lab, problem, names, tiles](std::int64_t fast_words) -> std::optional<std::int64_t> {
    const AbiProblem form(problem, 1);
    std::optional<std::int64_t> least;
    for (const std::string& name : names) {
      if (tiles == Tiles::papers) {
        const auto schedule = lab.schedules.make(paper_tiles(name, fast_words, problem.head_dim_qk),
                                                 *form.get(), io::FastMemory{});
        const std::int64_t words = schedule->closed_form().total_words().value();
        least = std::min(least.value_or(words), words);
      } else if (const auto counted = count_words(lab.schedules, name, problem, fast_words)) {
        least = std::min(least.value_or(counted->words), counted->words);
      }
    }
    return least;
  };
}

// Tells whether the cases meet at d^2 itself, at another multiple of it, or elsewhere.
Outcome meeting_of(const Crossing& met, double square, const Exponent& grows) {
  if (static_cast<double>(met.first) <= square && square <= static_cast<double>(met.last)) {
    return Outcome::reproduced;
  }
  const bool as_square = std::lround(grows.value) == 2 && !grows.contains(1) && !grows.contains(3);
  return as_square ? Outcome::corrected : Outcome::not_reproduced;
}

Claim crossover_claim(const Laboratory& lab, const IoSubject& subject, std::int64_t seqlen,
                      Table& table) {
  Claim claim{"the two cases meet at M = d^2", subject.meeting_source, "", Outcome::reproduced};
  const bool smoke = lab.effort == Effort::smoke;
  const std::vector<std::int64_t> dims = smoke ? std::vector<std::int64_t>{32, 48, 64, 96}
                                               : std::vector<std::int64_t>{32, 64, 96, 128, 256};
  constexpr int kLow = -3, kHigh = 3;
  const int steps = smoke ? 8 : 16;
  for (const Rivals& rivals : subject.rivals) {
    Points points;
    Crossing met;
    for (const std::int64_t d : dims) {
      const Problem problem = square_problem(seqlen, d);
      const auto found = crossing(fast_memory_grid(d, kLow, kHigh, steps),
                                  fewest(lab, problem, rivals.small, rivals.tiles),
                                  fewest(lab, problem, rivals.large, rivals.tiles));
      if (!found) continue;
      met = *found;
      points.emplace_back(static_cast<double>(d), static_cast<double>(met.last));
      const auto square = static_cast<double>(d * d);
      table.rows.push_back({rivals.whose, std::to_string(d), std::to_string(met.first),
                            fmt::format("{:.3f}", static_cast<double>(met.first) / square),
                            std::to_string(met.last),
                            fmt::format("{:.3f}", static_cast<double>(met.last) / square)});
    }
    if (points.size() < dims.size()) {
      claim.measured += fmt::format("{}: no crossing between d^2/8 and 8 d^2. ", rivals.whose);
      claim.outcome = Outcome::not_reproduced;
      continue;
    }
    const auto square = static_cast<double>(dims.back() * dims.back());
    const Exponent grows = fit_exponent(points);
    const std::string at_times =
        met.first == met.last
            ? ""
            : fmt::format(" (at times from {:.2f})", static_cast<double>(met.first) / square);
    claim.measured +=
        fmt::format("{}: from {:.2f} d^2 on{}, growing as d to the {}. ", rivals.whose,
                    static_cast<double>(met.last) / square, at_times, grows.to_string());
    claim.outcome = std::max(claim.outcome, meeting_of(met, square, grows));
  }
  claim.measured += fmt::format("d = {}, in steps of 2 to the 1/{}", dims.back(), steps);
  return claim;
}

// One plot of what the claims speak of, one of every schedule and bound.
std::vector<Plot> plots_of(const IoSubject& subject, const Counts& counts, const Problem& problem) {
  const std::string sizes = fmt::format("N = {}, d = {}", problem.seqlen_q, problem.head_dim_qk);
  Plot some{
      subject.name, subject.title + ", " + sizes, "words of fast memory M", "words moved", {}};
  some.mark_x = static_cast<double>(problem.head_dim_qk * problem.head_dim_qk);
  some.mark = "M = d^2";
  Plot all = some;
  all.name += "_all";
  all.title = "every schedule and bound: " + all.title;
  const auto compared = [&](const std::string& name) {
    const auto has = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    return std::any_of(subject.rivals.begin(), subject.rivals.end(), [&](const Rivals& rivals) {
      return has(rivals.small) || has(rivals.large);
    });
  };
  for (const auto& [name, points] : counts.schedules) {
    all.curves.push_back({name, Curve::Kind::measured, points});
    if (compared(name)) some.curves.push_back(all.curves.back());
  }
  for (const auto& [name, points] : counts.bounds) {
    all.curves.push_back({name, Curve::Kind::bound, points});
  }
  some.curves.push_back({"greatest lower bound", Curve::Kind::bound, counts.greatest});
  return {std::move(some), std::move(all)};
}

Findings run(const Laboratory& lab, const IoSubject& subject) {
  const std::int64_t head_dim = lab.head_dim_or(64);
  const std::int64_t seqlen = lab.seqlen_or(16384, 65536);
  if (seqlen < kLeastRows * head_dim) {
    throw InvalidProblem(fmt::format(
        "--seqlen {} with --head-dim {}: the papers speak of d^2 <= M <= N d, of which only from "
        "N = {} d on enough is left to fit an exponent",
        seqlen, head_dim, kLeastRows));
  }
  const Problem problem = square_problem(seqlen, head_dim);
  const Counts counts = count_all(lab, subject, problem, head_dim);
  Findings findings;
  findings.plots = plots_of(subject, counts, problem);
  Table fits{subject.name + "_exponents",
             "fitted exponents; counts have no noise: the interval says how straight the line is",
             {"schedule", "range of M", "points", "exponent", "low", "high", "claimed"},
             {}};
  Table meetings{subject.name + "_crossover",
                 "where the large-cache schedule moves no more words",
                 {"schedules", "d", "first M", "M/d^2", "always from M", "M/d^2"},
                 {}};
  findings.claims.push_back(exponent_claim(counts, subject, kLargeCache, problem, fits));
  findings.claims.push_back(exponent_claim(counts, subject, kSmallCache, problem, fits));
  findings.claims.push_back(crossover_claim(lab, subject, seqlen, meetings));
  findings.claims.push_back(
      {subject.bound.text, subject.bound.source,
       fmt::format("{} counts, the least {:.3f} times the greatest lower bound that is proved for "
                   "what the schedule declares{}",
                   counts.compared, counts.least_ratio, subject.bound_note),
       counts.compared > 0 && counts.least_ratio >= 1 ? Outcome::reproduced
                                                      : Outcome::not_reproduced});
  findings.tables = {std::move(fits), std::move(meetings)};
  return findings;
}

}  // namespace

Experiment io_against_fast_memory(IoSubject subject, int place) {
  Experiment experiment{
      subject.name, subject.title, {{"seqlen", 256, 1 << 24}, {"head-dim", 16, 4096}}, {}, place};
  experiment.run = [subject = std::move(subject)](const Laboratory& lab) {
    return run(lab, subject);
  };
  return experiment;
}

}  // namespace attest::certify
