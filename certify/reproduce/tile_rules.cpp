// What the papers' tile rules need, and Saha and Ye's exponentials without a maximum.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/forward_call.hpp"

namespace attest::certify {
namespace {

// FlashAttention, Algorithm 1, line 1: B_c = ceil(M / 4d), B_r = min(B_c, d).
std::int64_t paper_peak(const Laboratory& lab, std::int64_t fast_words, std::int64_t d,
                        std::int64_t seqlen) {
  const std::int64_t block_k = (fast_words + 4 * d - 1) / (4 * d);
  const std::string text = fmt::format("flash1:bq={},bk={}", std::min(block_k, d), block_k);
  const Problem problem = square_problem(seqlen, d);
  const AbiProblem form(problem, 1);
  return lab.schedules.make(text, *form.get(), io::FastMemory{})->closed_form().peak.words.value();
}

void tile_need(const Laboratory& lab, Findings& findings) {
  constexpr int kLow = -6, kHigh = 5;
  const int steps = lab.effort == Effort::smoke ? 2 : 8;
  Plot plot{
      "tile_rule", "words FlashAttention's tile rule needs, over M", "M / d^2", "peak / M", {}};
  Table table{"tile_rule",
              "what FlashAttention's tile rule needs",
              {"d", "largest peak/M for M >= d^2/4", "at M/d^2", "peak/M at d^2/64",
               "peak <= M from M/d^2"},
              {}};
  double worst = 0, model_dims = 0, earliest = 0, latest = 0;
  int sizes = 0, fitted = 0;  // of the rule that fits
  for (const std::int64_t d : {16, 32, 64, 128, 256}) {
    Curve curve{fmt::format("d = {}", d), Curve::Kind::measured, {}};
    double most = 0, most_at = 0, fits_from = 0, first = 0;
    for (const std::int64_t fast_words : fast_memory_grid(d, kLow, kHigh, steps)) {
      const double theta = static_cast<double>(fast_words) / static_cast<double>(d * d);
      const std::int64_t seqlen = std::max<std::int64_t>(4 * fast_words / d, 64);  // no tile is cut
      const double need = static_cast<double>(paper_peak(lab, fast_words, d, seqlen)) /
                          static_cast<double>(fast_words);
      curve.points.emplace_back(theta, need);
      if (fast_words >= 5 * d + 2) {  // below, no key fits
        const Problem problem = square_problem(seqlen, d);
        ++sizes;
        fitted += count_words(lab.schedules, "flash1:rule=fit", problem, fast_words) ? 1 : 0;
      }
      if (curve.points.size() == 1) first = need;
      if (need > 1) fits_from = 0;
      if (need <= 1 && fits_from == 0) fits_from = theta;
      if (theta >= 0.25 && need > most) {
        most = need;
        most_at = theta;
      }
    }
    worst = std::max({worst, most, first});
    if (d >= 64) model_dims = std::max(model_dims, most);
    earliest = earliest == 0 ? fits_from : std::min(earliest, fits_from);
    latest = std::max(latest, fits_from);
    table.rows.push_back({std::to_string(d), fmt::format("{:.3f}", most),
                          fmt::format("{:.3g}", most_at), fmt::format("{:.3f}", first),
                          fmt::format("{:.3g}", fits_from)});
    plot.curves.push_back(std::move(curve));
  }
  findings.claims.push_back(
      {"blocks of B_c = ceil(M / 4d) keys and B_r = min(B_c, d) queries fit in a fast memory of M",
       "Dao et al. 2022, Algorithm 1, line 1",
       fmt::format("they need up to {:.3f} M for d >= 64 and M >= d^2/4, up to {:.3f} M over all "
                   "sizes tried, and always fit only from {:.3g} to {:.3g} d^2 on; B_c = "
                   "floor(M / (5d + 2)) fits at {} of the {} sizes with a key or more",
                   model_dims, worst, earliest, latest, fitted, sizes),
       worst <= 1                      ? Outcome::reproduced
       : latest > 0 && fitted == sizes ? Outcome::corrected
                                       : Outcome::not_reproduced});
  findings.plots.push_back(std::move(plot));
  findings.tables.push_back(std::move(table));
}

// Whether every element of O is a number, for scores of at most +-`largest`.
bool all_finite(const Laboratory& lab, const std::string& variant, double largest) {
  const auto one = [](auto, auto, auto, std::int64_t c) { return c == 0 ? 1.0 : 0.0; };
  const auto score = [largest](auto, std::int64_t row, auto, std::int64_t c) {
    if (c != 0) return 0.0;
    return row % 2 == 0 ? largest : -largest;
  };
  const auto value = [](auto, std::int64_t row, auto, auto) { return static_cast<double>(row); };
  const Problem problem = Problem::parse("sq=8,d=4,scale=1");
  const ForwardCall call(problem, 1, one, score, value);
  const auto schedule =
      lab.schedules.make("square_tiled:b=4,variant=" + variant, call.problem(), io::FastMemory{});
  schedule->count(io::FastMemory{}, call.args());
  for (std::int64_t row = 0; row < problem.seqlen_q; ++row) {
    for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
      if (!std::isfinite(call.O()(0, row, 0, c))) return false;
    }
  }
  return true;
}

// The largest whole score without an overflow, up to `most`.
int largest_score(const Laboratory& lab, const std::string& variant, int most) {
  int score = 0;
  while (score < most && all_finite(lab, variant, score + 1)) ++score;
  return score;
}

void overflow(const Laboratory& lab, Findings& findings) {
  constexpr int kMost = 1000;
  const int paper = largest_score(lab, "paper", kMost),
            stable = largest_score(lab, "stable", kMost);
  const auto text = [&](int score) {
    return score == kMost ? fmt::format("no overflow up to {}", kMost)
                          : fmt::format("finite up to {}", score);
  };
  findings.claims.push_back(
      {"Algorithm 1 computes attention for every input", "Saha and Ye 2024, Algorithm 1",
       fmt::format("exp(S) is stored without a maximum subtracted; with whole scores in float32 "
                   "the paper's form is {}, the stable form with as many words but 2 q has {}",
                   text(paper), text(stable)),
       paper == kMost ? Outcome::reproduced : Outcome::corrected});
  findings.tables.push_back({"overflow",
                             "largest whole score with finite results, float32",
                             {"form", "score"},
                             {{"paper", text(paper)}, {"stable", text(stable)}}});
}

Findings run(const Laboratory& lab) {
  Findings findings;
  tile_need(lab, findings);
  overflow(lab, findings);
  return findings;
}

}  // namespace

Experiment tile_rules_experiment() {
  return {"tile_rules", "the papers' tile rules and exponentials", {}, run};
}

}  // namespace attest::certify
