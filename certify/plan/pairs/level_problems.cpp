#include "certify/plan/pairs/level_problems.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "certify/plan/pairs/score_levels.hpp"
#include "core/dtype/dtype.hpp"
#include "proptest/judge/claims.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/values/kept_keys.hpp"

namespace attest::certify {
namespace {

// Head dimensions (of Q and K, of V) that the kernel takes; nothing when it takes no other for V.
std::optional<std::pair<std::int64_t, std::int64_t>> head_dims(const attest_description& d,
                                                               std::size_t level,
                                                               std::int64_t wanted) {
  const std::int64_t dim = proptest::nearest_head_dim(d, wanted);
  if (level == 0) return std::pair(dim, dim);
  const std::optional<std::int64_t> other = proptest::other_head_dim(d, dim);
  return other ? std::optional(std::pair(dim, *other)) : std::nullopt;
}

// A mask of pairs in a form that the kernel claims.
std::string pairs_text(std::uint32_t features, Rng& rng) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  const std::int64_t percent = rng.between(60, 90), seed = rng.between(0, 1000);
  const std::string drawn = "_" + text(percent) + "_" + text(seed);
  if ((features & ATTEST_BOOLEAN_MASK) != 0) return "random" + drawn;
  if ((features & ATTEST_CSR_MASK) != 0) return "pairs" + drawn;
  if ((features & ATTEST_BLOCK_MASK) != 0) return "block_8x8" + drawn;
  return "nm_3_4_" + text(seed);
}

// A window in which every query sees a key, of fewer keys than there are where they are many.
std::string window_text(std::int64_t rows, std::int64_t keys, Rng& rng) {
  const std::int64_t left = rng.between(2, 5), right = rng.between(1, 4);
  return "window_" + std::to_string(left) + "_" +
         std::to_string(std::max<std::int64_t>(rows - keys, 0) + right);
}

// A window that lies to the right of the aligned key, to its left, or has one end.
std::string offset_window_text(Rng& rng) {
  constexpr std::array<const char*, 6> kWindows{"window_-1_4",    "window_5_-1",
                                                "window_inf_-1",  "window_-1_inf",
                                                "window_tl_4_-2", "window_tl_-2_6"};
  return kWindows[static_cast<std::size_t>(rng.between(0, 5))];
}

// One sequence of p's lengths, and where the batch is larger one half as long.
std::string packed_text(const Problem& p) {
  const auto sequence = [](std::int64_t q, std::int64_t k) {
    return "_" + std::to_string(q) + "x" + std::to_string(k);
  };
  return "cu" + sequence(p.seqlen_q, p.seqlen_k) +
         (p.batch == 1 ? "" : sequence((p.seqlen_q + 1) / 2, (p.seqlen_k + 1) / 2));
}

// A mask of the level for the sizes of `p`.
std::string mask_text(std::uint32_t features, std::size_t level, const Problem& p, Rng& rng) {
  const std::int64_t rows = p.seqlen_q, keys = p.seqlen_k;
  switch (level) {
    case kTopLeft:
      return "causal_tl";
    case kBottomRight:
      return "causal_br";
    case kWindow:
      return window_text(rows, keys, rng);
    case kOffsetWindow:
      return offset_window_text(rng);
    case kLengths:
    case kWindowLengths: {
      const std::int64_t length = rng.between(1, keys);
      const std::string lengths = (p.batch == 1 ? "lengths" : "lengths_" + std::to_string(keys)) +
                                  "_" + std::to_string(length);
      return level == kLengths ? lengths : lengths + "+" + window_text(rows, length, rng);
    }
    case kPacked:
      return packed_text(p);
    case kPackedWindow:
      return packed_text(p) + "+" + window_text(rows, keys, rng);
    case kPackedBoolean:
      return packed_text(p) + "+" + pairs_text(features, rng);
    case kBoolean:
      return pairs_text(features, rng);
    case kWindowBoolean: {
      const std::string window = window_text(rows, keys, rng);
      return window + "+" + pairs_text(features, rng);
    }
    default:
      return "none";
  }
}

// The mask that a text spells. Tens of thousands of level sets ask for the same few: each is parsed
// once.
const Pattern& parsed_mask(const std::string& text, std::int64_t rows, std::int64_t keys) {
  thread_local std::map<std::tuple<std::string, std::int64_t, std::int64_t>, Pattern> known;
  constexpr std::size_t kMost = 4096;
  const std::tuple key(text, rows, keys);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  if (known.size() >= kMost) known.clear();
  return known.emplace(key, Pattern::parse(text, rows, keys)).first->second;
}

// Tells whether every problem of the levels has a feature that the kernel does not claim.
bool lacks_features(const attest_description& d, const Levels& levels) {
  if ((score_levels()[levels[kScores]].features & ~d.features) != 0) return true;
  return levels[kHeads] != 0 && (d.features & ATTEST_GQA) == 0;
}

}  // namespace

std::optional<Problem> problem_of(const attest_description& d, const Levels& levels, Rng& rng) {
  const auto direction = static_cast<Direction>(levels[kDirection]);
  const bool packed = is_packed(levels[kMask]), loss = direction == Direction::loss_gradient;
  if (levels[kLayout] != kStrided && (levels[kLayout] == kThd) != packed) return std::nullopt;
  if (lacks_features(d, levels)) return std::nullopt;
  constexpr std::array<std::int64_t, 3> kWidths{8, 16, 24};
  const auto dims =
      head_dims(d, levels[kValueDim], kWidths[static_cast<std::size_t>(rng.between(0, 2))]);
  if (!dims) return std::nullopt;
  if (loss && (levels[kScores] != 0 || levels[kMask] != kNone || levels[kBatch] != 0)) {
    return std::nullopt;
  }
  const ScoreLevel& scores = score_levels()[levels[kScores]];
  Problem p;
  scores.give(p, rng);
  p.dtype = proptest::kDTypesOfCampaigns[levels[kDtype]];
  std::tie(p.head_dim_qk, p.head_dim_v) = *dims;
  const std::int64_t tiles = rng.between(1, 2), odd = rng.between(1, 15);
  constexpr std::int64_t kTile = 16;
  const std::int64_t longer = kTile * tiles + odd;
  switch (levels[kSizes]) {
    case kEven:
      p.seqlen_q = p.seqlen_k = kTile * tiles;
      break;
    case kRagged:
      p.seqlen_q = p.seqlen_k = longer;
      break;
    case kFewerQueries:
      p.seqlen_q = std::max<std::int64_t>(odd, 2);
      p.seqlen_k = longer;
      break;
    case kOneQuery:
      p.seqlen_q = 1;
      p.seqlen_k = longer;
      break;
    case kOneKey:
      p.seqlen_q = longer;
      p.seqlen_k = 1;
      break;
    default:
      p.seqlen_q = longer;
      p.seqlen_k = std::max<std::int64_t>(odd, 2);
      break;
  }
  if (!loss) {
    p.batch = levels[kBatch] == 0 ? 1 : 2;
    p.num_heads_kv = rng.between(1, 2);
  }
  p.num_heads_q = p.num_heads_kv * (levels[kHeads] == 0 ? 1 : rng.between(2, 3));
  p.layout = packed ? Layout::thd : levels[kLayout] == kBhsd ? Layout::bhsd : Layout::bshd;
  if (levels[kLayout] == kStrided) {
    constexpr std::array<Strides, 4> kChoices{Strides::padded, Strides::huge, Strides::transposed,
                                              Strides::interleaved};
    const std::int64_t last = (d.features & ATTEST_ANY_STRIDES) != 0 ? 3 : 1;
    p.strides = kChoices[static_cast<std::size_t>(rng.between(0, last))];
  }
  proptest::fit_sizes(d, p);
  if (loss) p.softmax_scale.reset();
  const std::string mask = mask_text(d.features, levels[kMask], p, rng);
  p.mask = parsed_mask(mask, p.seqlen_q, p.seqlen_k);
  proptest::fit_window(d, p);
  proptest::keep_a_key_in_each_row(d, p);
  const bool moved =
      !scores.lies_in(p) || (d.limits != nullptr && levels_of(p, direction) != levels);
  if (moved || !proptest::unclaimed(d, p, direction).empty()) return std::nullopt;
  return p;
}

}  // namespace attest::certify
