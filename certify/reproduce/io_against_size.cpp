// I/O against N and against d, in fast memories on both sides of d^2.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/fit.hpp"

namespace attest::certify {
namespace {

// The claimed exponent is the nearest whole one and the only one in reach of the interval.
Outcome outcome_of(const Exponent& fitted, int claimed) {
  const bool nearest = std::lround(fitted.value) == claimed;
  return nearest && !fitted.contains(claimed - 1) && !fitted.contains(claimed + 1)
             ? Outcome::reproduced
             : Outcome::not_reproduced;
}

enum class CacheSide : std::uint8_t { large, small };

struct Line {
  std::string schedule;
  int claimed;  // exponent
};

const char* source_of(const std::string& schedule) {
  if (schedule == "flash1") return "Dao et al. 2022, Theorem 2";
  if (schedule == "square_tiled") return "Saha and Ye 2024, Theorem 3.5";
  return "docs/theory/schedules.md";
}

struct Sweep {
  std::string name, title, variable;
  std::int64_t fast_words;
  std::vector<Line> lines;
  std::vector<std::pair<std::int64_t, Problem>> problems;
};

// One plot, and a claim for each schedule.
void measure(const Laboratory& lab, const Sweep& sweep, Findings& findings) {
  Plot plot{sweep.name, sweep.title, sweep.variable, "words moved", {}};
  for (const Line& line : sweep.lines) {
    Curve curve{line.schedule, Curve::Kind::measured, {}};
    for (const auto& [x, problem] : sweep.problems) {
      const auto counted = count_words(lab.schedules, line.schedule, problem, sweep.fast_words);
      if (!counted) continue;
      curve.points.emplace_back(static_cast<double>(x), static_cast<double>(counted->words));
    }
    const Exponent fitted = fit_exponent(curve.points);
    findings.claims.push_back(
        {fmt::format("{}: words grow as {} to the {}", line.schedule, sweep.variable, line.claimed),
         source_of(line.schedule), fmt::format("{}: exponent {}", sweep.title, fitted.to_string()),
         outcome_of(fitted, line.claimed)});
    plot.curves.push_back(std::move(curve));
  }
  Curve bound{"greatest lower bound", Curve::Kind::bound, {}};
  for (const auto& [x, problem] : sweep.problems) {
    const std::int64_t words = lower_bound(io::Direction::forward, problem, sweep.fast_words);
    if (words > 0) bound.points.emplace_back(static_cast<double>(x), static_cast<double>(words));
  }
  plot.curves.push_back(std::move(bound));
  findings.plots.push_back(std::move(plot));
}

const std::vector<std::string>& schedules_of(double theta) {
  static const std::vector<std::string> large{"flash1", "flash2_row"},
      small{"square_tiled", "rank1_tiled"};
  return theta < 1 ? small : large;
}

void against_n(const Laboratory& lab, std::int64_t fast_words, std::int64_t d, Findings& findings) {
  Sweep sweep{fmt::format("io_against_n_{}", fast_words),
              fmt::format("forward, d = {}, M = {}", d, fast_words),
              "N",
              fast_words,
              {},
              {}};
  const double theta = static_cast<double>(fast_words) / static_cast<double>(d * d);
  for (const std::string& name : schedules_of(theta)) sweep.lines.push_back({name, 2});
  for (std::int64_t n = 1024; n <= lab.seqlen_or(16384, 65536); n *= 2) {
    sweep.problems.emplace_back(n, square_problem(n, d));
  }
  measure(lab, sweep, findings);
}

// Head dimensions on one side of the square root of M: 2 where all of them are in the large cache.
void against_d(const Laboratory& lab, std::int64_t fast_words, CacheSide side, Findings& findings) {
  const bool large = side == CacheSide::large;
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(fast_words)));
  const std::int64_t seqlen = lab.seqlen_or(16384, 65536);
  Sweep sweep{fmt::format("io_against_d_{}", fast_words),
              fmt::format("forward, N = {}, M = {}", seqlen, fast_words),
              "d",
              fast_words,
              {},
              {}};
  for (const std::string& name : schedules_of(large ? 1 : 0)) {
    sweep.lines.push_back({name, large ? 2 : 1});
  }
  constexpr std::int64_t kOctaves = 8, kSteps = 2;
  const std::int64_t least = large ? root / kOctaves : root, most = large ? root : kOctaves * root;
  for (int k = 0;; ++k) {
    const std::int64_t d = std::llround(static_cast<double>(std::max<std::int64_t>(least, 1)) *
                                        std::exp2(static_cast<double>(k) / kSteps));
    if (d > most) break;
    sweep.problems.emplace_back(d, square_problem(seqlen, d));
  }
  measure(lab, sweep, findings);
}

Findings run(const Laboratory& lab) {
  constexpr std::int64_t kLarge = 65536, kSmall = 256;
  const std::int64_t d = lab.head_dim_or(64);
  Findings findings;
  if (lab.fast_words) {
    against_n(lab, *lab.fast_words, d, findings);
    const bool large = *lab.fast_words >= d * d;
    against_d(lab, *lab.fast_words, large ? CacheSide::large : CacheSide::small, findings);
    return findings;
  }
  against_n(lab, 4 * d * d, d, findings);
  against_n(lab, std::max<std::int64_t>(d * d / 16, 1), d, findings);
  against_d(lab, kLarge, CacheSide::large, findings);
  against_d(lab, kSmall, CacheSide::small, findings);
  return findings;
}

}  // namespace

Experiment size_io_experiment() {
  return {"size_io",
          "I/O against sequence length and head dimension",
          {"seqlen", "head-dim", "fast-words"},
          run};
}

}  // namespace attest::certify
