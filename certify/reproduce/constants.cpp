// What stands before N^2: the best schedules, the papers' own tiles and the bounds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/fit.hpp"
#include "io/best_schedule.hpp"

namespace attest::certify {
namespace {

std::int64_t best_words(const Laboratory& lab, io::Direction direction, const Problem& problem,
                        std::int64_t fast_words) {
  const AbiProblem form(problem, 1);
  return io::best_schedule(lab.schedules, direction, *form.get(),
                           io::FastMemory::of_words(fast_words))
      .best()
      .traffic.total_words()
      .value();
}

// The papers' own tiles, whatever they need: B_c = ceil(M / 4d), B_r = min(B_c, d) and
// B = floor(sqrt(M / 4)).
std::string flash_tiles(std::int64_t fast_words, std::int64_t d) {
  const std::int64_t block_k = (fast_words + 4 * d - 1) / (4 * d);
  return fmt::format("flash1:bq={},bk={}", std::min(block_k, d), block_k);
}

std::string square_tiles(std::int64_t fast_words) {
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(fast_words) / 4));
  return fmt::format("square_tiled:b={},variant=paper", std::max<std::int64_t>(side, 1));
}

std::int64_t words_of(const Laboratory& lab, const std::string& text, const Problem& problem) {
  const AbiProblem form(problem, 1);
  return lab.schedules.make(text, *form.get(), io::FastMemory{})
      ->closed_form()
      .total_words()
      .value();
}

struct Ratios {
  double forward = 0, forward_at = 0, backward = 0, gain = 0;
};

Ratios tabulate(const Laboratory& lab, std::int64_t seqlen, std::int64_t d, Findings& findings) {
  const Problem problem = square_problem(seqlen, d);
  const double pairs = static_cast<double>(seqlen) * static_cast<double>(seqlen);
  const auto title = [&](const char* what) {
    return fmt::format("{} words over N^2, N = {}, d = {}", what, seqlen, d);
  };
  Plot forward{"forward_constants",
               title("forward"),
               "M / d^2",
               "words / N^2",
               {{"best known", Curve::Kind::measured, {}},
                {"FlashAttention's tiles", Curve::Kind::measured, {}},
                {"Saha and Ye's tiles", Curve::Kind::measured, {}},
                {"lower bound", Curve::Kind::bound, {}}}};
  Plot backward{
      "backward_constants",
      title("backward"),
      "M / d^2",
      "words / N^2",
      {{"best known", Curve::Kind::measured, {}}, {"lower bound", Curve::Kind::bound, {}}}};
  Table table{"constants",
              title("forward and backward"),
              {"M/d^2", "forward best", "forward bound", "ratio", "FlashAttention", "Saha and Ye",
               "backward best", "backward bound", "ratio"},
              {}};
  Ratios ratios;
  constexpr int kLow = -6, kHigh = 6;
  const int steps = lab.effort == Effort::smoke ? 1 : 2;
  for (const std::int64_t fast_words : fast_memory_grid(d, kLow, kHigh, steps)) {
    const double theta = static_cast<double>(fast_words) / static_cast<double>(d * d);
    const auto per_pair = [&](std::int64_t words) { return static_cast<double>(words) / pairs; };
    const double best = per_pair(best_words(lab, io::Direction::forward, problem, fast_words));
    const double bound = per_pair(lower_bound(io::Direction::forward, problem, fast_words));
    const double flash = per_pair(words_of(lab, flash_tiles(fast_words, d), problem));
    const double square = per_pair(words_of(lab, square_tiles(fast_words), problem));
    const double back = per_pair(best_words(lab, io::Direction::backward, problem, fast_words));
    const double back_bound = per_pair(lower_bound(io::Direction::backward, problem, fast_words));
    const std::vector<double> curves{best, flash, square, bound};
    for (std::size_t k = 0; k < curves.size(); ++k) {
      forward.curves[k].points.emplace_back(theta, curves[k]);
    }
    backward.curves[0].points.emplace_back(theta, back);
    backward.curves[1].points.emplace_back(theta, back_bound);
    if (best / bound > ratios.forward) ratios.forward_at = theta;
    ratios.forward = std::max(ratios.forward, best / bound);
    ratios.backward = std::max(ratios.backward, back / back_bound);
    ratios.gain = std::max(ratios.gain, std::min(flash, square) / best);
    const auto text = [](double value) { return fmt::format("{:.4g}", value); };
    table.rows.push_back({text(theta), text(best), text(bound), text(best / bound), text(flash),
                          text(square), text(back), text(back_bound), text(back / back_bound)});
  }
  findings.plots = {std::move(forward), std::move(backward)};
  findings.tables = {std::move(table)};
  return ratios;
}

// A ratio that is bounded by a constant does not grow with N: the interval of its exponent does not
// lie above 0.
Outcome bounded(const Exponent& grows) {
  return grows.low <= 0 ? Outcome::reproduced : Outcome::not_reproduced;
}

Findings run(const Laboratory& lab) {
  const std::int64_t d = lab.head_dim_or(64), seqlen = lab.seqlen_or(16384, 65536);
  Findings findings;
  Ratios ratios;
  std::vector<std::pair<double, double>> forward, backward;
  for (std::int64_t n = std::max<std::int64_t>(seqlen / 16, 16); n <= seqlen; n *= 2) {
    ratios = tabulate(lab, n, d, findings);
    forward.emplace_back(static_cast<double>(n), ratios.forward);
    backward.emplace_back(static_cast<double>(n), ratios.backward);
  }
  const Exponent forward_grows = fit_exponent(forward), backward_grows = fit_exponent(backward);
  const auto growth = [&](const Exponent& grows) {
    return fmt::format("; from N = {:.0f} to {:.0f} it changes as N to the {}",
                       forward.front().first, forward.back().first, grows.to_string());
  };
  findings.claims = {
      {"the forward bound is tight for every M, up to a constant",
       "Saha and Ye 2024, upper and lower bound of min(N^2 d / sqrt(M), N^2 d^2 / M)",
       fmt::format("best known over bound: at most {:.3f}, at M = {:.3g} d^2", ratios.forward,
                   ratios.forward_at) +
           growth(forward_grows),
       bounded(forward_grows)},
      {"the backward bound is tight for every M, up to a constant", "Li et al. 2024, Theorem 1.1",
       fmt::format("best known over bound: at most {:.3f}", ratios.backward) +
           growth(backward_grows),
       bounded(backward_grows)},
      {"the papers' tiles move the fewest words there are", "what optimal might be taken to mean",
       fmt::format("the best known moves up to {:.2f} times fewer words than the better of the "
                   "two papers' tiles: they are optimal up to a constant only",
                   ratios.gain),
       ratios.gain > 1 ? Outcome::corrected : Outcome::reproduced}};
  return findings;
}

}  // namespace

Experiment constants_experiment() {
  return {"constants", "constants of schedules and bounds", {"seqlen", "head-dim"}, run};
}

}  // namespace attest::certify
