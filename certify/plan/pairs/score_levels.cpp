#include "certify/plan/pairs/score_levels.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "core/features/score_features.hpp"

namespace attest::certify {
namespace {

// Kind of the page size, as the table of features spells it: one key, an odd number, or even and up
// to 16 or more; "" without pages.
std::string_view page_kind(const Problem& p) {
  constexpr std::int64_t kUsual = 16;
  const std::int64_t size = p.paged_kv.page_size;
  if (size == 0) return "";
  const auto pages =
      std::find_if(score_features().begin(), score_features().end(),
                   [](const ScoreFeature& feature) { return feature.claim == ATTEST_PAGED_KV; });
  return pages->kinds[size == 1 ? 0 : size % 2 == 1 ? 1 : size <= kUsual ? 2 : 3];
}

// A mask of heads that lacks each axis.
std::string drawn_head_mask(Rng& rng) {
  constexpr std::array<const char*, 6> kAxes{"bhqk", "hqk", "bqk", "bhk", "bhq", "bk"};
  const std::string axes = kAxes[static_cast<std::size_t>(rng.between(0, 5))];  // drawn first
  return axes + "_70_" + std::to_string(rng.between(1, 9));
}

// A bias that lacks each axis, in the tensors' type or in float32.
std::string drawn_bias(Rng& rng, bool with_holes) {
  constexpr std::array<const char*, 6> kAxes{"hqk", "bhqk", "bqk", "bhk", "bhq", "k"};
  const std::string axes = kAxes[static_cast<std::size_t>(rng.between(0, 5))];
  const std::int64_t single = rng.between(0, 2);
  return axes + (single == 0 ? "_f32" : "") + (with_holes ? "_holes_7" : "_drawn_7");
}

}  // namespace

void ScoreLevel::give(Problem& p, Rng& rng) const {
  if (scale) p.softmax_scale = *scale;
  for (const ScoreFeature& feature : score_features()) {
    if ((features & feature.claim) == 0) continue;
    feature.parse(p, kind == nullptr ? feature.example : kind);
  }
  if ((features & ATTEST_BIAS) != 0) p.bias = Bias::parse(drawn_bias(rng, holes));
  if ((features & ATTEST_HEAD_MASK) != 0) p.head_mask = HeadMask::parse(drawn_head_mask(rng));
  if ((features & ATTEST_QUERY_LENGTHS) != 0) {
    p.query_lengths.seed = static_cast<std::uint64_t>(rng.between(1, 9));
  }
}

bool ScoreLevel::lies_in(const Problem& p) const {
  if (kind != nullptr && page_kind(p) != kind) return false;
  if (scale && (!p.softmax_scale || (*scale < 0 && p.scale() >= 0))) return false;
  const auto held = [&](const ScoreFeature& feature) {
    return (features & feature.claim) == 0 || feature.present(p);
  };
  return (!holes || p.bias.kind == Bias::Kind::holes) &&
         std::all_of(score_features().begin(), score_features().end(), held);
}

const std::vector<ScoreLevel>& score_levels() {
  static const std::vector<ScoreLevel> levels = [] {
    constexpr double kScale = 0.3, kNegativeScale = -0.25;
    std::vector<ScoreLevel> all{{"plain", {}}, {"scaled", kScale}, {"negative", kNegativeScale}};
    const std::span<const ScoreFeature> features = score_features();
    for (const ScoreFeature& one : features) {
      if (one.kinds.empty()) all.push_back({one.word, {}, one.claim});
    }
    for (const ScoreFeature& one : features) {
      if (one.additive) continue;
      all.push_back({"negative_" + std::string(one.word), kNegativeScale, one.claim});
    }
    // Where keys lie has no part in how scores are formed. Which pairs are visible has one beside
    // the scores: in sinks and biases.
    for (std::size_t a = 0; a < features.size(); ++a) {
      for (std::size_t b = a + 1; b < features.size() && !features[b].in_storage; ++b) {
        if (features[a].in_scores && features[b].in_mask) continue;
        all.push_back({features[a].word + ("_" + std::string(features[b].word)),
                       {},
                       features[a].claim | features[b].claim});
      }
    }
    all.push_back({"bias_holes", {}, ATTEST_BIAS, true});
    for (const ScoreFeature& one : features) {
      for (const char* kind : one.kinds) {
        const std::string size(kind, std::strcspn(kind, "_"));
        all.push_back({one.word + ("_" + size), {}, one.claim, false, kind});
      }
    }
    return all;
  }();
  return levels;
}

}  // namespace attest::certify
