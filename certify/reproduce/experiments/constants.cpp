// Constants before N^2: the best schedules, the papers' own tiles and the bounds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/fit.hpp"
#include "io/schedule/best_schedule.hpp"

namespace attest::certify {
namespace {

std::int64_t best_words(const Laboratory& lab, Direction direction, const Problem& problem,
                        std::int64_t fast_words) {
  const AbiProblem form(problem, 1);
  return io::best_schedule(lab.schedules, direction, *form.get(),
                           io::FastMemory::of_words(fast_words))
      .best()
      .traffic.total_words()
      .value();
}

std::int64_t words_of(const Laboratory& lab, const std::string& text, const Problem& problem) {
  const AbiProblem form(problem, 1);
  return lab.schedules.make(text, *form.get(), io::FastMemory{})
      ->closed_form()
      .total_words()
      .value();
}

// The largest of each over all sizes of fast memory.
struct Ratios {
  double forward = 0, forward_at = 0, backward = 0;
  double flash = 0;   // FlashAttention's tiles over the bound, M >= d^2
  double square = 0;  // Saha and Ye's tiles over the bound, M < d^2
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
  Plot backward{"backward_constants",
                title("backward"),
                "M / d^2",
                "words / N^2",
                {{"best known", Curve::Kind::measured, {}},
                 {"FlashAttention's tiles", Curve::Kind::measured, {}},
                 {"square tiles by the same rule", Curve::Kind::measured, {}},
                 {"lower bound", Curve::Kind::bound, {}}}};
  Table table{"constants",
              title("forward and backward"),
              {"M/d^2", "forward best", "forward bound", "ratio", "FlashAttention", "Saha and Ye",
               "backward best", "backward bound", "ratio", "FlashAttention", "square tiles"},
              {}};
  Ratios ratios;
  constexpr int kLow = -6, kHigh = 6;
  constexpr std::int64_t kLeastWords = 16;  // fewer hold hardly a tile of any schedule
  const int steps = lab.effort == Effort::smoke ? 1 : 2;
  for (const std::int64_t fast_words : fast_memory_grid(d, kLow, kHigh, steps)) {
    if (fast_words < kLeastWords) continue;
    const double theta = static_cast<double>(fast_words) / static_cast<double>(d * d);
    const auto per_pair = [&](std::int64_t words) { return static_cast<double>(words) / pairs; };
    const double best = per_pair(best_words(lab, Direction::forward, problem, fast_words));
    const double bound = per_pair(lower_bound(Direction::forward, problem, fast_words));
    const double flash = per_pair(words_of(lab, paper_tiles("flash1", fast_words, d), problem));
    const double square =
        per_pair(words_of(lab, paper_tiles("square_tiled", fast_words, d), problem));
    const double back = per_pair(best_words(lab, Direction::backward, problem, fast_words));
    const double back_bound = per_pair(lower_bound(Direction::backward, problem, fast_words));
    const std::vector<double> curves{best, flash, square, bound};
    for (std::size_t k = 0; k < curves.size(); ++k) {
      forward.curves[k].points.emplace_back(theta, curves[k]);
    }
    const double flash_back =
        per_pair(words_of(lab, paper_tiles("flash1_bwd", fast_words, d), problem));
    const double square_back =
        per_pair(words_of(lab, paper_tiles("square_tiled_bwd", fast_words, d), problem));
    const std::vector<double> backward_curves{back, flash_back, square_back, back_bound};
    for (std::size_t k = 0; k < backward_curves.size(); ++k) {
      backward.curves[k].points.emplace_back(theta, backward_curves[k]);
    }
    if (best / bound > ratios.forward) ratios.forward_at = theta;
    ratios.forward = std::max(ratios.forward, best / bound);
    ratios.backward = std::max(ratios.backward, back / back_bound);
    if (theta >= 1) ratios.flash = std::max(ratios.flash, flash / bound);
    if (theta < 1) ratios.square = std::max(ratios.square, square / bound);
    const auto text = [](double value) { return fmt::format("{:.4g}", value); };
    table.rows.push_back({text(theta), text(best), text(bound), text(best / bound), text(flash),
                          text(square), text(back), text(back_bound), text(back / back_bound),
                          text(flash_back), text(square_back)});
  }
  findings.plots = {std::move(forward), std::move(backward)};
  findings.tables = {std::move(table)};
  return ratios;
}

// The ratios as one size of the problem grows and the other stays.
struct Growth {
  const char* variable;
  std::vector<double> sizes;
  std::vector<Ratios> ratios;
};

Claim claim_of(const std::string& text, const std::string& source, const std::string& measured,
               const std::vector<Growth>& growths, double Ratios::*which) {
  Claim claim{text, source,
              fmt::format("{}: at most {:.3f}", measured, growths.back().ratios.back().*which),
              Outcome::reproduced};
  for (const Growth& growth : growths) {
    std::vector<std::pair<double, double>> points;
    for (std::size_t k = 0; k < growth.sizes.size(); ++k) {
      points.emplace_back(growth.sizes[k], growth.ratios[k].*which);
    }
    const Exponent grows = fit_exponent(points);
    claim.measured +=
        fmt::format("; from {0} = {1:.0f} to {2:.0f} that changes as {0} to the {3}",
                    growth.variable, growth.sizes.front(), growth.sizes.back(), grows.to_string());
    if (!grows.bounded()) claim.outcome = Outcome::not_reproduced;
  }
  return claim;
}

Findings run(const Laboratory& lab) {
  const std::int64_t d = lab.head_dim_or(64), seqlen = lab.seqlen_or(16384, 65536);
  Findings findings;
  Growth in_d{"d", {}, {}}, in_n{"N", {}, {}};
  for (const double factor : {0.5, 0.75, 1.0, 1.5, 2.0}) {
    const std::int64_t dim = std::llround(factor * static_cast<double>(d));
    in_d.ratios.push_back(tabulate(lab, seqlen, dim, findings));
    in_d.sizes.push_back(static_cast<double>(dim));
  }
  // Last, so that plots and table are those of the given size.
  for (std::int64_t n = seqlen / 16; n <= seqlen; n *= 2) {
    in_n.ratios.push_back(tabulate(lab, n, d, findings));
    in_n.sizes.push_back(static_cast<double>(n));
  }
  const std::vector<Growth> growths{std::move(in_d), std::move(in_n)};
  const Ratios& last = growths.back().ratios.back();
  const std::string both = "Saha and Ye 2024, Theorem 3.1";
  findings.claims = {
      claim_of("the forward bound is tight up to a constant", both,
               fmt::format("best known over bound, worst at M = {:.3g} d^2", last.forward_at),
               growths, &Ratios::forward),
      claim_of("for M >= d^2 FlashAttention is within a constant of the bound", both,
               "FlashAttention's own tiles over bound", growths, &Ratios::flash),
      claim_of("for M < d^2 square tiles are within a constant of the bound", both,
               "Saha and Ye's own tiles over bound", growths, &Ratios::square),
      claim_of("the backward bound is tight up to a constant", "Li et al. 2024, Theorem 1.1",
               "best known over bound", growths, &Ratios::backward)};
  return findings;
}

}  // namespace

Experiment constants_experiment() {
  return {"constants",
          "constants of schedules and bounds",
          {{"seqlen", 1024, 1 << 24}, {"head-dim", 16, 1024}},
          run,
          5};
}

}  // namespace attest::certify
