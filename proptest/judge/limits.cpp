#include "proptest/judge/limits.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attest::proptest {
namespace {

attest_limits limits_of(const attest_description& d) {
  return d.limits == nullptr ? attest_limits{} : *d.limits;
}

bool claims(const attest_description& d, std::uint32_t feature) {
  return (d.features & feature) != 0;
}

Range range_of(const attest_extents& extents) {
  Range range;
  range.least = std::max<std::int64_t>(extents.least, 0);
  if (extents.most > 0) range.most = extents.most;
  range.multiple = std::max<std::int64_t>(extents.multiple, 1);
  return range;
}

Range head_dims_of(const attest_description& d) {
  const Range plain = range_of({1, d.max_head_dim, d.head_dim_multiple});
  return common(plain, range_of(limits_of(d).head_dim));
}

std::string beyond_range(const char* what, const Range& range, std::int64_t value) {
  const auto text = [what](const char* relation, std::int64_t limit) {
    return what + std::string(relation) + std::to_string(limit);
  };
  if (value < range.least) return text(" below ", range.least);
  if (value > range.most) return text(" above ", range.most);
  return value % range.multiple == 0 ? "" : text(" not a multiple of ", range.multiple);
}

// Both alignments are one where every sequence has as many queries as keys.
bool alignments_agree(const Problem& problem) {
  const std::vector<Sequence> sequences = problem.sequences();
  return std::all_of(sequences.begin(), sequences.end(),
                     [](const Sequence& s) { return s.q_length == s.visible_keys; });
}

std::string beyond_alignment(std::uint32_t only, const Problem& problem) {
  const bool top_left = problem.mask.align == CausalAlign::top_left;
  const std::uint32_t excluding = top_left ? ATTEST_ONLY_BOTTOM_RIGHT : ATTEST_ONLY_TOP_LEFT;
  if ((only & excluding) == 0) return "";
  const std::string end = top_left ? " aligned to the top left" : " aligned to the bottom right";
  if (problem.mask.banded()) return "windows" + end;
  return problem.alibi == Alibi::none || alignments_agree(problem) ? "" : "ALiBi" + end;
}

double only_scale(const attest_limits& limits, const Problem& problem) {
  if (limits.softmax_scale != 0) return limits.softmax_scale;
  return 1.0 / std::sqrt(static_cast<double>(problem.head_dim_qk));
}

void fit_heads(std::int64_t most, Problem& p) {
  if (most <= 0 || p.num_heads_q <= most) return;
  const std::int64_t group = p.group_size();
  p.num_heads_kv = std::min(p.num_heads_kv, most);
  p.num_heads_q = p.num_heads_kv * std::min(group, most / p.num_heads_kv);
}

void fit_lengths(const attest_description& d, Problem& p) {
  const Range queries = claimed_queries(d), keys = claimed_keys(d);
  if (queries.empty() || keys.empty()) return;
  const std::int64_t q = p.seqlen_q, k = p.seqlen_k;
  p.seqlen_q = queries.nearest(q);
  p.seqlen_k = keys.nearest(k);
  if (q < k && p.seqlen_q >= p.seqlen_k) p.seqlen_k = keys.nearest(p.seqlen_q + 1);
  if (q > k && p.seqlen_q <= p.seqlen_k) p.seqlen_q = queries.nearest(p.seqlen_k + 1);
}

}  // namespace

bool Range::empty() const { return most / multiple * multiple < std::max<std::int64_t>(least, 1); }

bool Range::contains(std::int64_t value) const {
  return value >= least && value <= most && value % multiple == 0;
}

std::int64_t Range::nearest(std::int64_t value) const {
  const auto up = [this](std::int64_t x) {
    return x / multiple * multiple + (x % multiple == 0 ? 0 : multiple);
  };
  return std::clamp(up(value), up(least), most / multiple * multiple);
}

Range common(const Range& a, const Range& b) {
  return {std::max(a.least, b.least), std::min(a.most, b.most), std::lcm(a.multiple, b.multiple)};
}

Range claimed_queries(const attest_description& d) {
  const attest_limits limits = limits_of(d);
  const Range queries = range_of(limits.seqlen_q);
  if (claims(d, ATTEST_CROSS_LENGTHS)) return queries;
  return common(queries, range_of(limits.seqlen_k));
}

Range claimed_keys(const attest_description& d) {
  return claims(d, ATTEST_CROSS_LENGTHS) ? range_of(limits_of(d).seqlen_k) : claimed_queries(d);
}

std::vector<std::int64_t> listed_head_dims(const attest_description& d) {
  std::vector<std::int64_t> dims;
  if (d.limits == nullptr) return dims;
  const Range range = head_dims_of(d);
  for (const std::int64_t dim : d.limits->head_dims) {
    if (dim == 0) break;
    if (range.contains(dim)) dims.push_back(dim);
  }
  return dims;
}

bool claims_head_dim(const attest_description& d, std::int64_t head_dim) {
  if (d.limits == nullptr || d.limits->head_dims[0] == 0) return head_dims_of(d).contains(head_dim);
  const std::vector<std::int64_t> listed = listed_head_dims(d);
  return std::find(listed.begin(), listed.end(), head_dim) != listed.end();
}

std::int64_t nearest_head_dim(const attest_description& d, std::int64_t wanted) {
  const std::vector<std::int64_t> listed = listed_head_dims(d);
  if (listed.empty()) {
    const Range range = head_dims_of(d);
    return range.empty() ? wanted : range.nearest(wanted);
  }
  std::int64_t above = *std::max_element(listed.begin(), listed.end());
  for (const std::int64_t dim : listed) {
    if (dim >= wanted) above = std::min(above, dim);
  }
  return above;
}

std::optional<std::int64_t> other_head_dim(const attest_description& d, std::int64_t head_dim) {
  for (const std::int64_t dim : listed_head_dims(d)) {
    if (dim != head_dim) return dim;
  }
  const std::int64_t multiple = head_dims_of(d).multiple;
  for (const std::int64_t dim : {head_dim + multiple, head_dim - multiple}) {
    if (claims_head_dim(d, dim)) return dim;
  }
  return std::nullopt;
}

std::string beyond_limits(const attest_description& d, const Problem& p, bool loss_gradient) {
  if (d.limits == nullptr) return "";
  const attest_limits& limits = *d.limits;
  for (const std::string& text :
       {beyond_range("seqlen_q", range_of(limits.seqlen_q), p.seqlen_q),
        beyond_range("seqlen_k", range_of(limits.seqlen_k), p.seqlen_k),
        beyond_range("head_dim", range_of(limits.head_dim), p.head_dim_qk),
        beyond_range("head_dim", range_of(limits.head_dim), p.head_dim_v)}) {
    if (!text.empty()) return text;
  }
  for (const std::int64_t dim : {p.head_dim_qk, p.head_dim_v}) {
    if (!claims_head_dim(d, dim)) return "head_dim " + std::to_string(dim);
  }
  if (loss_gradient) return "";
  if (limits.most_heads_q > 0 && p.num_heads_q > limits.most_heads_q) {
    return "num_heads_q above " + std::to_string(limits.most_heads_q);
  }
  if (limits.most_batch > 0 && p.batch > limits.most_batch) {
    return "batch above " + std::to_string(limits.most_batch);
  }
  if ((limits.only & ATTEST_ONLY_ONE_SCALE) != 0 && p.scale() != only_scale(limits, p)) {
    return "another softmax_scale";
  }
  if ((limits.only & ATTEST_ONLY_CAUSAL) != 0 && p.mask.window_right != 0) {
    return "masks that are not causal";
  }
  return beyond_alignment(limits.only, p);
}

void fit_sizes(const attest_description& d, Problem& p) {
  const attest_limits limits = limits_of(d);
  p.head_dim_qk = nearest_head_dim(d, p.head_dim_qk);
  p.head_dim_v = nearest_head_dim(d, p.head_dim_v);
  if (d.limits == nullptr) return;
  if (limits.most_batch > 0) p.batch = std::min(p.batch, limits.most_batch);
  fit_heads(limits.most_heads_q, p);
  fit_lengths(d, p);
  if ((limits.only & ATTEST_ONLY_ONE_SCALE) == 0) return;
  p.softmax_scale.reset();
  if (limits.softmax_scale != 0) p.softmax_scale = limits.softmax_scale;
}

void fit_longest(const Range& range, std::vector<std::int64_t>& lengths) {
  const auto longest = std::max_element(lengths.begin(), lengths.end());
  if (longest == lengths.end() || range.empty()) return;
  const std::int64_t most = range.nearest(*longest);
  for (std::int64_t& length : lengths) length = std::min(length, most);
  *longest = most;
}

void fit_window(const attest_description& d, Problem& p) {
  const std::uint32_t only = limits_of(d).only;
  Pattern& mask = p.mask;
  if ((only & ATTEST_ONLY_CAUSAL) != 0 && mask.window_right != 0) {
    const bool windows = claims(d, ATTEST_WINDOW);
    mask.set_window(windows && mask.left_bounded() ? mask.window_left : Pattern::kUnbounded, 0);
    const auto causal = [&](CausalAlign align) {
      return claims(
          d, align == CausalAlign::top_left ? ATTEST_CAUSAL_TOP_LEFT : ATTEST_CAUSAL_BOTTOM_RIGHT);
    };
    if (!mask.left_bounded() && !causal(mask.align)) {
      const CausalAlign other =
          mask.align == CausalAlign::top_left ? CausalAlign::bottom_right : CausalAlign::top_left;
      if (causal(other)) mask.align = other;
    }
    // No causal mask is claimed, but windows are: one that hides no earlier key.
    if (!mask.left_bounded() && !causal(mask.align)) mask.window_left = p.seqlen_q + p.seqlen_k;
  }
  if (!mask.banded()) return;
  if ((only & ATTEST_ONLY_TOP_LEFT) != 0) mask.align = CausalAlign::top_left;
  if ((only & ATTEST_ONLY_BOTTOM_RIGHT) != 0) mask.align = CausalAlign::bottom_right;
}

Problem within_limits(const attest_description& d, Problem problem) {
  fit_sizes(d, problem);
  fit_window(d, problem);
  return problem;
}

}  // namespace attest::proptest
