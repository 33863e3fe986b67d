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

struct Line {
  std::string schedule;
  int claimed;
};

// One plot, and a claim for each schedule.
void measure(const Laboratory& lab, const std::string& name, const std::string& title,
             const std::string& variable, std::int64_t fast_words, const std::vector<Line>& lines,
             const std::vector<std::pair<std::int64_t, Problem>>& problems, Findings& findings) {
  Plot plot{name, title, variable, "words moved", {}};
  for (const Line& line : lines) {
    Curve curve{line.schedule, Curve::Kind::measured, {}};
    for (const auto& [x, problem] : problems) {
      const auto counted = count_words(lab.schedules, line.schedule, problem, fast_words);
      if (!counted) continue;
      curve.points.emplace_back(static_cast<double>(x), static_cast<double>(counted->words));
    }
    const Exponent fitted = fit_exponent(curve.points);
    findings.claims.push_back(
        {fmt::format("{}: words grow as {} to the {}", line.schedule, variable, line.claimed),
         "Dao et al. 2022, Theorem 2; Saha and Ye 2024, Theorem 3.5",
         fmt::format("{}: exponent {}", title, fitted.to_string()),
         outcome_of(fitted, line.claimed)});
    plot.curves.push_back(std::move(curve));
  }
  Curve bound{"lower bound", Curve::Kind::bound, {}};
  for (const auto& [x, problem] : problems) {
    const std::int64_t words = lower_bound(io::Direction::forward, problem, fast_words);
    if (words > 0) bound.points.emplace_back(static_cast<double>(x), static_cast<double>(words));
  }
  plot.curves.push_back(std::move(bound));
  findings.plots.push_back(std::move(plot));
}

Findings run(const Laboratory& lab) {
  const std::int64_t d = lab.head_dim_or(64);
  const bool smoke = lab.effort == Effort::smoke;
  Findings findings;
  const std::int64_t large = lab.fast_words.value_or(4 * d * d), small = d * d / 16;
  for (const std::int64_t fast_words : {large, small}) {
    std::vector<std::pair<std::int64_t, Problem>> problems;
    for (std::int64_t n = 1024; n <= lab.seqlen_or(16384, 65536); n *= 2) {
      problems.emplace_back(n, square_problem(n, d));
    }
    const bool fits = fast_words >= d * d;
    measure(lab, fits ? "io_against_n_large" : "io_against_n_small",
            fmt::format("forward, d = {}, M = {}", d, fast_words), "N", fast_words,
            fits ? std::vector<Line>{{"flash1", 2}, {"flash2_row", 2}}
                 : std::vector<Line>{{"square_tiled", 2}, {"rank1_tiled", 2}},
            problems, findings);
  }
  const std::int64_t seqlen = lab.seqlen_or(16384, 65536);
  const auto over_d = [&](std::int64_t first, std::int64_t last) {
    std::vector<std::pair<std::int64_t, Problem>> problems;
    for (std::int64_t dim = first; dim <= last; dim *= 2) {
      problems.emplace_back(dim, square_problem(seqlen, dim));
      const std::int64_t between = dim + dim / 2;
      if (!smoke && between <= last)
        problems.emplace_back(between, square_problem(seqlen, between));
    }
    return problems;
  };
  constexpr std::int64_t kLarge = 65536, kSmall = 256;
  measure(lab, "io_against_d_large", fmt::format("forward, N = {}, M = {}", seqlen, kLarge), "d",
          kLarge, {{"flash1", 2}, {"flash2_row", 2}}, over_d(32, 256), findings);
  measure(lab, "io_against_d_small", fmt::format("forward, N = {}, M = {}", seqlen, kSmall), "d",
          kSmall, {{"square_tiled", 1}, {"rank1_tiled", 1}}, over_d(32, 512), findings);
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
