#include "certify/plan/pairs/pair_levels.hpp"

#include <algorithm>

#include "certify/plan/pairs/score_levels.hpp"
#include "core/dtype/dtype.hpp"
#include "proptest/judge/claims.hpp"

namespace attest::certify {
namespace {

constexpr const auto& kDtypes = proptest::kDTypesOfCampaigns;

std::vector<const char*> names_of_dtypes() {
  std::vector<const char*> names;
  for (const DType dtype : kDtypes) names.push_back(facts(dtype).name.data());
  return names;
}

std::vector<const char*> names_of_score_levels() {
  std::vector<const char*> names;
  for (const ScoreLevel& level : score_levels()) names.push_back(level.name.c_str());
  return names;
}

std::size_t mask_of(const Pattern& mask) {
  const bool window = mask.banded() && (mask.left_bounded() || mask.window_right != 0);
  if (mask.packed()) return mask.boolean ? kPackedBoolean : window ? kPackedWindow : kPacked;
  if (mask.boolean) return window ? kWindowBoolean : kBoolean;
  if (!mask.key_lengths.empty()) return window ? kWindowLengths : kLengths;
  if (!mask.banded()) return kNone;
  if (window) return mask.offset ? kOffsetWindow : kWindow;
  return mask.align == CausalAlign::top_left ? kTopLeft : kBottomRight;
}

std::size_t sizes_of(const Problem& p) {
  constexpr std::int64_t kTile = 16;
  if (p.seqlen_q == 1 && p.seqlen_k > 1) return kOneQuery;
  if (p.seqlen_k == 1 && p.seqlen_q > 1) return kOneKey;
  if (p.seqlen_q != p.seqlen_k) return p.seqlen_q < p.seqlen_k ? kFewerQueries : kMoreQueries;
  return p.seqlen_q % kTile == 0 ? kEven : kRagged;
}

std::size_t memory_of(const Problem& p) {
  if (p.strides != Strides::packed) return kStrided;
  return p.layout == Layout::bshd ? kBshd : p.layout == Layout::bhsd ? kBhsd : kThd;
}

// The last level whose demands it meets: later ones demand more.
std::size_t scores_of(const Problem& p) {
  std::size_t level = score_levels().size() - 1;
  while (!score_levels()[level].lies_in(p)) --level;
  return level;
}

}  // namespace

const std::array<FactorWords, kFactors>& factors() {
  static const std::array<FactorWords, kFactors> all{{
      {"mask",
       {"none", "causal_tl", "causal_br", "window", "lengths", "packed", "boolean",
        "window_lengths", "window_boolean", "packed_window", "packed_boolean", "offset_window"}},
      {"dtype", names_of_dtypes()},
      {"heads", {"equal", "grouped"}},
      {"layout", {"bshd", "bhsd", "thd", "strided"}},
      {"sizes", {"even", "ragged", "fewer_queries", "more_queries", "one_query", "one_key"}},
      {"dv", {"equal", "other"}},
      {"scores", names_of_score_levels()},
      {"batch", {"one", "several"}},
      {"direction", {"forward", "backward", "loss_gradient"}},
  }};
  return all;
}

bool is_packed(std::size_t mask) {
  return mask == kPacked || mask == kPackedWindow || mask == kPackedBoolean;
}

Levels levels_of(const Problem& p, Direction direction) {
  const auto dtype = std::find(kDtypes.begin(), kDtypes.end(), p.dtype) - kDtypes.begin();
  return {mask_of(p.mask),
          static_cast<std::size_t>(dtype),
          p.num_heads_q == p.num_heads_kv ? std::size_t{0} : std::size_t{1},
          memory_of(p),
          sizes_of(p),
          p.head_dim_qk == p.head_dim_v ? std::size_t{0} : std::size_t{1},
          scores_of(p),
          p.batch == 1 ? std::size_t{0} : std::size_t{1},
          static_cast<std::size_t>(direction)};
}

}  // namespace attest::certify
