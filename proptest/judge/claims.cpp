#include "proptest/judge/claims.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/features/pages.hpp"
#include "core/features/score_features.hpp"
#include "proptest/judge/limits.hpp"

namespace attest::proptest {
namespace {

// Names what the loss of Li et al. does not have.
std::string beyond_the_loss(const Problem& p) {
  if (p.batch != 1 || p.num_heads_q != 1 || p.num_heads_kv != 1) {
    return "loss gradient of several heads";
  }
  if (p.seqlen_q != p.seqlen_k) return "loss gradient with seqlen_q != seqlen_k";
  if (p.head_dim_qk != p.head_dim_v) return "loss gradient with head_dim_v != head_dim_qk";
  if (p.seqlen_q == 0) return "loss gradient of no rows";
  const Pattern& mask = p.mask;
  if (mask.banded() || mask.packed() || mask.boolean || !mask.key_lengths.empty()) {
    return "loss gradient with a mask";
  }
  std::string names;
  bool any = false;
  for (const ScoreFeature& feature : score_features()) {
    names += (names.empty() ? "" : " or ") + std::string(feature.name);
    any = any || feature.present(p);
  }
  if (any) return "loss gradient with " + names;
  if (p.softmax_scale) return "loss gradient with a softmax scale (it is part of X)";
  if (p.num_splits != 0) return "loss gradient with a number of splits";
  return "";
}

bool cross_lengths(const Problem& p) {
  if (p.seqlen_q != p.seqlen_k) return true;
  const std::vector<Sequence> sequences = p.sequences();
  return std::any_of(sequences.begin(), sequences.end(),
                     [](const Sequence& s) { return s.q_length != s.k_length; });
}

// Tells whether a mask of heads and the bias hide from some head's query i all keys that the mask
// leaves.
bool hidden_from_head(const Problem& p, const Sequence& sequence, std::int64_t i) {
  const bool none = p.bias.kind == Bias::Kind::none || p.bias.kind == Bias::Kind::drawn;
  if (none && p.head_mask.kind == HeadMask::Kind::none) return false;
  const KeyRange range = p.mask.band(sequence, i);
  for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
    bool any = false;
    for (std::int64_t j = range.begin; j < range.end && !any; ++j) {
      any = p.mask.visible(sequence, i, j) && p.shows(sequence.number, h, i, j);
    }
    if (!any) return true;
  }
  return false;
}

}  // namespace

std::string rows_without_a_key(const Problem& p) {
  const Pattern& mask = p.mask;
  for (const Sequence& sequence : p.sequences()) {
    if (sequence.q_length == 0 || sequence.visible_keys == 0) return "zero-length sequences";
    for (std::int64_t i = 0; i < sequence.queries(); ++i) {
      const KeyRange range = mask.band(sequence, i);
      bool any = !mask.boolean && range.begin < range.end;
      for (std::int64_t j = range.begin; mask.boolean && j < range.end && !any; ++j) {
        any = mask.visible(sequence, i, j);
      }
      if (!any || hidden_from_head(p, sequence, i)) return "rows without a visible key";
    }
  }
  return "";
}

std::string unclaimed(const attest_description& d, const Problem& p, Direction direction) {
  const auto lacks = [&](std::uint32_t feature) { return (d.features & feature) == 0; };
  if ((d.directions & abi(direction)) == 0) return std::string(words(direction));
  const bool loss = direction == Direction::loss_gradient;
  if (std::string beyond = loss ? beyond_the_loss(p) : ""; !beyond.empty()) return beyond;
  if ((d.dtypes & (1u << abi(p.dtype))) == 0) return "dtype " + std::string(name(p.dtype));
  if (d.max_head_dim > 0 && std::max(p.head_dim_qk, p.head_dim_v) > d.max_head_dim) {
    return "head_dim above " + std::to_string(d.max_head_dim);
  }
  if (d.head_dim_multiple > 1 &&
      (p.head_dim_qk % d.head_dim_multiple != 0 || p.head_dim_v % d.head_dim_multiple != 0)) {
    return "head_dim not a multiple of " + std::to_string(d.head_dim_multiple);
  }
  const Pattern& mask = p.mask;
  const bool causal = !mask.left_bounded() && mask.window_right == 0;
  if (causal && mask.align == CausalAlign::top_left && lacks(ATTEST_CAUSAL_TOP_LEFT)) {
    return "causal top-left";
  }
  if (causal && mask.align == CausalAlign::bottom_right && lacks(ATTEST_CAUSAL_BOTTOM_RIGHT)) {
    return "causal bottom-right";
  }
  if (mask.banded() && !causal && lacks(ATTEST_WINDOW)) return "window";
  if (mask.offset && lacks(ATTEST_OFFSET_WINDOW)) return "window with an end past the aligned key";
  if (!mask.key_lengths.empty() && lacks(ATTEST_KEY_LENGTHS)) return "key lengths";
  if (mask.packed() && lacks(ATTEST_PACKED_SEQUENCES)) return "packed sequences";
  if (mask.boolean && mask_form(mask.sparsity(), d.features) == 0) {
    return mask.sparsity() != nullptr ? "sparsity pattern" : "boolean mask";
  }
  if (p.num_heads_q != p.num_heads_kv && lacks(ATTEST_GQA)) return "grouped-query heads";
  if (p.head_dim_qk != p.head_dim_v && lacks(ATTEST_HEAD_DIM_V)) return "head_dim_v != head_dim_qk";
  for (const ScoreFeature& feature : score_features()) {
    if (feature.present(p) && lacks(feature.claim)) return feature.name;
  }
  if (is_paged(p) && direction != Direction::forward) return "backward with paged K and V";
  if (p.num_splits != 0 && lacks(ATTEST_SPLIT_INVARIANT)) return "a number of splits";
  if (p.scale() <= 0 && lacks(ATTEST_ANY_SCALE)) return "softmax_scale <= 0";
  if (cross_lengths(p) && lacks(ATTEST_CROSS_LENGTHS)) return "seqlen_q != seqlen_k";
  const bool odd_strides = p.strides == Strides::transposed || p.strides == Strides::interleaved ||
                           p.strides == Strides::broadcast;
  if (odd_strides && lacks(ATTEST_ANY_STRIDES)) return "strides " + std::string(name(p.strides));
  if (p.strides == Strides::huge && d.device == ATTEST_CUDA) return kHugeOnDevice;
  if (std::string beyond = beyond_limits(d, p, loss); !beyond.empty()) return beyond;
  return lacks(ATTEST_EMPTY_ROWS) ? rows_without_a_key(p) : "";
}

std::vector<DType> claimed_dtypes(const attest_description& description) {
  std::vector<DType> dtypes;
  for (const DType dtype : kDTypesOfCampaigns) {
    if ((description.dtypes & (1u << abi(dtype))) != 0) dtypes.push_back(dtype);
  }
  if (dtypes.empty()) throw InvalidProblem("kernel claims no dtype known here");
  return dtypes;
}

std::optional<Problem> plainest_problem(const attest_description& d, Direction direction) {
  constexpr std::int64_t kLength = 16;
  for (const DType dtype : kDTypesOfCampaigns) {
    for (const std::int64_t keys : {kLength, 2 * kLength}) {
      Problem p;
      p.dtype = dtype;
      p.seqlen_q = kLength;
      p.seqlen_k = keys;
      p.head_dim_qk = p.head_dim_v = kLength;
      if (direction == Direction::loss_gradient) {
        fit_sizes(d, p);
        p.softmax_scale.reset();
      } else {
        p = within_limits(d, p);
      }
      if (unclaimed(d, p, direction).empty()) return p;
    }
  }
  return std::nullopt;
}

}  // namespace attest::proptest
