// Fast memory that the papers' tile rules need, and Saha and Ye's exponentials without a maximum.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/forward_call.hpp"

namespace attest::certify {
namespace {

// Need of the rule of FlashAttention's Algorithm 1, line 1, for all M from d to 16 d^2.
struct Need {
  double most = 0, most_from_quarter = 0;  // peak / M at worst; from d^2/4 on
  std::int64_t most_at = 0;                // its M
  std::int64_t fits_from = 0;              // the least M from which on it always fits
};

// B_c = ceil(M / 4d) is the same for 4d sizes: the smallest of them is the worst.
Need need_of(const Laboratory& lab, const std::string& schedule, std::int64_t d, Curve& curve) {
  Need need;
  const auto square = static_cast<double>(d * d);
  for (std::int64_t block_k = 1; block_k <= 4 * d; ++block_k) {
    const std::int64_t least = std::max(4 * d * (block_k - 1) + 1, d), most = 4 * d * block_k;
    const Problem problem = square_problem(std::max(block_k, d), d);  // no tile is cut
    const AbiProblem form(problem, 1);
    const std::int64_t peak =
        lab.schedules.make(paper_tiles(schedule, least, d), *form.get(), io::FastMemory{})
            ->closed_form()
            .peak.words.value();
    const double ratio = static_cast<double>(peak) / static_cast<double>(least);
    curve.points.emplace_back(static_cast<double>(least) / square, ratio);
    if (ratio > need.most) {
      need.most = ratio;
      need.most_at = least;
    }
    if (4 * least >= d * d) need.most_from_quarter = std::max(need.most_from_quarter, ratio);
    if (peak > least) need.fits_from = std::min(most, peak - 1) + 1;
  }
  return need;
}

// Sizes from one key on at which B_c = floor(M / (5d + 2)), B_r = min(B_c, d) fits, and all.
std::pair<int, int> fits_of_other_rule(const Laboratory& lab, std::int64_t d) {
  constexpr int kLow = -6, kHigh = 5, kSteps = 4;
  int sizes = 0, fit = 0;
  for (const std::int64_t fast_words : fast_memory_grid(d, kLow, kHigh, kSteps)) {
    if (fast_words < 5 * d + 2) continue;
    const Problem problem = square_problem(4 * fast_words / d, d);
    ++sizes;
    fit += count_words(lab.schedules, "flash1:rule=fit", problem, fast_words) ? 1 : 0;
  }
  return {fit, sizes};
}

void tile_need(const Laboratory& lab, Findings& findings) {
  Plot plot{"tile_rule",
            "words FlashAttention's tile rule needs, over M",
            "M / d^2",
            "peak / M",
            {},
            Plot::Scale::logarithmic,
            Plot::Scale::linear};
  Table table{
      "tile_rule_needs",
      "what FlashAttention's tile rule needs, M from d to 16 d^2",
      {"d", "largest peak/M", "at M", "largest for M >= d^2/4", "always fits from M", "over d^2"},
      {}};
  double worst = 0, model_dims = 0, backward = 0, earliest = 0, latest = 0;
  int sizes = 0, fitted = 0;
  for (const std::int64_t d : {16, 32, 64, 128, 256}) {
    Curve curve{fmt::format("d = {}", d), Curve::Kind::measured, {}};
    const Need need = need_of(lab, "flash1", d, curve);
    Curve ignored;
    backward = std::max(backward, need_of(lab, "flash1_bwd", d, ignored).most_from_quarter);
    const double from = static_cast<double>(need.fits_from) / static_cast<double>(d * d);
    worst = std::max(worst, need.most);
    if (d >= 64) model_dims = std::max(model_dims, need.most_from_quarter);
    earliest = earliest == 0 ? from : std::min(earliest, from);
    latest = std::max(latest, from);
    const auto [fit, all] = fits_of_other_rule(lab, d);
    fitted += fit;
    sizes += all;
    table.rows.push_back({std::to_string(d), fmt::format("{:.3f}", need.most),
                          std::to_string(need.most_at),
                          fmt::format("{:.3f}", need.most_from_quarter),
                          std::to_string(need.fits_from), fmt::format("{:.3f}", from)});
    plot.curves.push_back(std::move(curve));
  }
  findings.claims.push_back(
      {"blocks of B_c = ceil(M / 4d) keys and B_r = min(B_c, d) queries fit in a fast memory of M",
       "Dao et al. 2022, Algorithm 1, line 1",
       fmt::format(
           "they need up to {:.3f} M for d >= 64 and M >= d^2/4, up to {:.3f} M for all "
           "M >= d, and always fit only from {:.2f} d^2 (d = 256) or {:.2f} d^2 (d = 16) "
           "on; B_c = floor(M / (5d + 2)) fits at {} of {} sizes. Backward (Algorithm 4) the "
           "same blocks need up to {:.3f} M for M >= d^2/4",
           model_dims, worst, earliest, latest, fitted, sizes, backward),
       worst <= 1        ? Outcome::reproduced
       : fitted == sizes ? Outcome::corrected
                         : Outcome::not_reproduced});
  findings.plots.push_back(std::move(plot));
  findings.tables.push_back(std::move(table));
}

// Tells whether one query that sees one key of that score has a finite result.
bool finite(const Laboratory& lab, const std::string& variant, double score) {
  const auto one = [](auto...) { return 1.0; };
  const auto key = [score](auto...) { return score; };
  const ForwardCall call(Problem::parse("sq=1,d=1,scale=1"), 1, one, key, one);
  const auto schedule =
      lab.schedules.make("square_tiled:b=1,variant=" + variant, call.problem(), io::FastMemory{});
  schedule->count(io::FastMemory{}, call.args());
  return std::isfinite(call.O()(0, 0, 0, 0));
}

// The largest whole score with a finite result, up to `most`.
int largest_score(const Laboratory& lab, const std::string& variant, int most) {
  int score = 0;
  while (score < most && finite(lab, variant, score + 1)) ++score;
  return score;
}

void overflow(const Laboratory& lab, Findings& findings) {
  constexpr int kMost = 1000;
  const int paper = largest_score(lab, "paper", kMost),
            stable = largest_score(lab, "stable", kMost);
  const auto text = [&](int score) {
    return score == kMost ? fmt::format("up to {} (the most tried)", kMost)
                          : fmt::format("up to {}", score);
  };
  constexpr std::int64_t kRows = 1024, kHeadDim = 64, kFastWords = 4096;
  const auto words = [&](const std::string& variant) {
    const auto counted = count_words(lab.schedules, "square_tiled:b=32,variant=" + variant,
                                     square_problem(kRows, kHeadDim), kFastWords);
    return counted ? counted->words : 0;
  };
  findings.claims.push_back(
      {"exp(S) can be stored as it is", "Saha and Ye 2024, Algorithm 1, which subtracts no maximum",
       fmt::format("whole scores with finite results in float32: {} as printed, {} with a running "
                   "maximum; {} and {} words at N = {}, d = {}, M = {}",
                   text(paper), text(stable), words("paper"), words("stable"), kRows, kHeadDim,
                   kFastWords),
       paper == kMost    ? Outcome::reproduced
       : stable == kMost ? Outcome::corrected
                         : Outcome::not_reproduced});
}

Findings run(const Laboratory& lab) {
  Findings findings;
  tile_need(lab, findings);
  overflow(lab, findings);
  return findings;
}

}  // namespace

Experiment tile_rules_experiment() {
  return {"tile_rules", "the papers' tile rules and exponentials", {}, run, 6};
}

}  // namespace attest::certify
