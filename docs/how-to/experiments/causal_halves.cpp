// A causal mask halves the words that FlashAttention-2 moves.
#include <cmath>
#include <string>

#include "certify/reproduce/counted.hpp"

namespace attest::certify {
namespace {

Findings run(const Laboratory& lab) {
  constexpr std::int64_t kHeadDim = 64, kFastWords = 16384;
  Curve curve{"causal over full", Curve::Kind::measured, {}};
  for (std::int64_t seqlen = 1024; seqlen <= lab.seqlen_or(4096, 65536); seqlen *= 2) {
    const std::string sizes = "sq=" + std::to_string(seqlen) + ",d=" + std::to_string(kHeadDim);
    const auto full = count_words(lab.schedules, "flash2", Problem::parse(sizes), kFastWords);
    const auto causal =
        count_words(lab.schedules, "flash2", Problem::parse(sizes + ",mask=causal_br"), kFastWords);
    if (!full || !causal) continue;
    curve.points.emplace_back(static_cast<double>(seqlen), static_cast<double>(causal->words) /
                                                               static_cast<double>(full->words));
  }
  // Halved up to what the diagonal adds, when the last ratio rounds to a half in tenths.
  const double last = curve.points.empty() ? 1 : curve.points.back().second;
  Findings findings;
  findings.claims.push_back(
      {"a causal mask halves the words of FlashAttention-2", "Dao 2023, section 3.1.1",
       "causal over full at the longest sequence: " + std::to_string(last),
       std::lround(10 * last) == 5 ? Outcome::reproduced : Outcome::not_reproduced});
  findings.plots.push_back(
      {"causal_halves", "words with a causal mask over words without", "N", "ratio", {curve}});
  return findings;
}

}  // namespace

Experiment causal_halves_experiment() {
  return {"causal_halves", "words under a causal mask", {{"seqlen", 1024, 1 << 20}}, run};
}

}  // namespace attest::certify
