#include "certify/worker/library/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "proptest/judge/claims.hpp"
#include "proptest/judge/limits.hpp"

namespace attest::certify::worker {
namespace {

using proptest::Range;

bool claims(const attest_description& d, std::uint32_t feature) {
  return (d.features & feature) != 0;
}

bool has_only(const attest_description& d, std::uint32_t bit) {
  return (d.limits->only & bit) != 0;
}

std::string bad_struct(const attest_limits& limits) {
  if (limits.struct_size != sizeof limits) {
    return fmt::format(
        "attest_limits.struct_size is {}; it must be sizeof(attest_limits), {} with this "
        "attest_kernel.h; rebuild with it",
        limits.struct_size, sizeof limits);
  }
  constexpr std::uint32_t kKnown = (std::uint32_t{ATTEST_ONLY_ONE_SCALE} << 1) - 1;
  if ((limits.only & ~kKnown) == 0) return "";
  return fmt::format("limits.only is {:#x}; unknown bits {:#x}, this program knows {:#x}",
                     limits.only, limits.only & ~kKnown, kKnown);
}

std::string bad_extents(const char* field, const attest_extents& extents) {
  // Larger ones meet nothing that is ever asked, and their products overflow.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t value : {extents.least, extents.most, extents.multiple}) {
    if (value >= 0 && value <= kMost) continue;
    return fmt::format("limits.{} has {}; it must be from 0 (any) to {}", field, value, kMost);
  }
  const Range range{extents.least, extents.most > 0 ? extents.most : kMost,
                    std::max<std::int64_t>(extents.multiple, 1)};
  if (!range.empty()) return "";
  return fmt::format(
      "limits.{} is from {} to {} in multiples of {}: there is none; make `most` larger", field,
      extents.least, extents.most, range.multiple);
}

std::string bad_head_dims(const attest_description& d) {
  const auto& dims = d.limits->head_dims;
  const auto* const end = std::find(std::begin(dims), std::end(dims), 0);
  for (const auto* dim = std::begin(dims); dim != std::end(dims); ++dim) {
    if (*dim < 0) return fmt::format("limits.head_dims has {}; it must be positive", *dim);
    if (dim > end && *dim != 0) {
      return fmt::format("limits.head_dims has {} after a 0, which ends it", *dim);
    }
  }
  for (const auto* dim = std::begin(dims); dim != end; ++dim) {
    if (proptest::claims_head_dim(d, *dim)) continue;
    return fmt::format(
        "limits.head_dims has {}, which max_head_dim, head_dim_multiple or limits.head_dim leave "
        "out; drop one of them",
        *dim);
  }
  return "";
}

std::string bad_scale(const attest_description& d) {
  const double scale = d.limits->softmax_scale;
  if (!has_only(d, ATTEST_ONLY_ONE_SCALE)) {
    if (scale == 0) return "";
    return fmt::format("limits.softmax_scale is {} without ATTEST_ONLY_ONE_SCALE; set it, too",
                       scale);
  }
  using Float = std::numeric_limits<float>;
  const bool wide = d.dtypes == 1u << ATTEST_F64;
  const double magnitude = std::abs(scale);
  const bool normal =
      wide || scale == 0 || (magnitude >= Float::min() && magnitude <= Float::max());
  if (!std::isfinite(scale) || !normal) {
    return fmt::format("limits.softmax_scale is {}; it must be a normal number of float32", scale);
  }
  if (scale < 0 && !claims(d, ATTEST_ANY_SCALE)) {
    return fmt::format("limits.softmax_scale is {} without ATTEST_ANY_SCALE; claim it", scale);
  }
  if (scale >= 0 && claims(d, ATTEST_ANY_SCALE)) {
    return "ATTEST_ANY_SCALE is claimed, but limits.only has ATTEST_ONLY_ONE_SCALE; drop one";
  }
  return "";
}

// A claim that no problem inside the limits has.
std::string excluded(const attest_description& d) {
  const auto drop = [](const std::string& claim, const std::string& limit) {
    return claim + " is claimed, but " + limit + "; drop one";
  };
  const attest_limits& limits = *d.limits;
  const bool top_left = has_only(d, ATTEST_ONLY_TOP_LEFT),
             bottom_right = has_only(d, ATTEST_ONLY_BOTTOM_RIGHT);
  if (top_left && bottom_right) {
    return "limits.only has ATTEST_ONLY_TOP_LEFT and ATTEST_ONLY_BOTTOM_RIGHT; drop one";
  }
  if (top_left && claims(d, ATTEST_CAUSAL_BOTTOM_RIGHT)) {
    return drop("ATTEST_CAUSAL_BOTTOM_RIGHT", "limits.only has ATTEST_ONLY_TOP_LEFT");
  }
  if (bottom_right && claims(d, ATTEST_CAUSAL_TOP_LEFT)) {
    return drop("ATTEST_CAUSAL_TOP_LEFT", "limits.only has ATTEST_ONLY_BOTTOM_RIGHT");
  }
  constexpr std::uint32_t kBands =
      ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_WINDOW;
  if (has_only(d, ATTEST_ONLY_CAUSAL) && !claims(d, kBands)) {
    return "limits.only has ATTEST_ONLY_CAUSAL, but no causal mask is claimed; claim "
           "ATTEST_CAUSAL_BOTTOM_RIGHT, ATTEST_CAUSAL_TOP_LEFT or ATTEST_WINDOW";
  }
  const std::int64_t dim = proptest::nearest_head_dim(d, 1);
  if (claims(d, ATTEST_HEAD_DIM_V) && !proptest::other_head_dim(d, dim)) {
    return drop("ATTEST_HEAD_DIM_V", fmt::format("{} is the only head_dim", dim));
  }
  if (claims(d, ATTEST_GQA) && limits.most_heads_q == 1) {
    return drop("ATTEST_GQA", "limits.most_heads_q is 1");
  }
  const attest_extents &q = limits.seqlen_q, &k = limits.seqlen_k;
  const bool one_length = q.most > 0 && q.least == q.most && k.least == q.most && k.most == q.most;
  if (claims(d, ATTEST_CROSS_LENGTHS) && one_length) {
    return drop("ATTEST_CROSS_LENGTHS", fmt::format("{} is the only length", q.most));
  }
  const bool apart = !claims(d, ATTEST_CROSS_LENGTHS) && proptest::claimed_queries(d).empty();
  if (apart) {
    return "limits.seqlen_q and limits.seqlen_k have no length in common; claim "
           "ATTEST_CROSS_LENGTHS";
  }
  return "";
}

std::string nothing_left(const attest_description& d) {
  const std::pair<std::uint32_t, Direction> directions[] = {
      {ATTEST_FORWARD, Direction::forward},
      {ATTEST_BACKWARD, Direction::backward},
      {ATTEST_LOSS_GRADIENT, Direction::loss_gradient}};
  for (const auto& [bit, direction] : directions) {
    if ((d.directions & bit) == 0 || proptest::plainest_problem(d, direction)) continue;
    return fmt::format(
        "limits leave no problem of direction {:#x} that the features allow; make them wider", bit);
  }
  return "";
}

}  // namespace

std::string limits_objection(const attest_description& d) {
  if (d.limits == nullptr) return "";
  const attest_limits& limits = *d.limits;
  if (const std::string text = bad_struct(limits); !text.empty()) return "description." + text;
  for (const std::string& text :
       {bad_extents("seqlen_q", limits.seqlen_q), bad_extents("seqlen_k", limits.seqlen_k),
        bad_extents("head_dim", limits.head_dim),
        bad_extents("most_heads_q", {0, limits.most_heads_q, 0}),
        bad_extents("most_batch", {0, limits.most_batch, 0})}) {
    if (!text.empty()) return "description." + text;
  }
  for (const auto objection : {bad_head_dims, bad_scale, excluded, nothing_left}) {
    if (const std::string text = objection(d); !text.empty()) return "description: " + text;
  }
  return "";
}

}  // namespace attest::certify::worker
