#include "certify/testing/outside_claims.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace attest::certify::testing {
namespace {

using Texts = std::vector<std::string>;

std::string first_of(const Texts& texts) {
  const auto found =
      std::find_if(texts.begin(), texts.end(), [](const auto& text) { return !text.empty(); });
  return found == texts.end() ? "" : *found;
}

std::string when(bool outside, const std::string& text) { return outside ? text : ""; }

bool claimed(const attest_description& d, std::uint32_t feature) {
  return (d.features & feature) != 0;
}

// ---- sequences and what they see ----

struct Part {
  std::int64_t queries, keys, existing, asked;  // keys and queries that exist
};

std::vector<Part> parts_of(const attest_problem& p) {
  std::vector<Part> parts;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    Part part{p.seqlen_q, p.seqlen_k, p.seqlen_k, 0};
    if (p.mask.cu_seqlens_q != nullptr) {
      part.queries = p.mask.cu_seqlens_q[b + 1] - p.mask.cu_seqlens_q[b];
      part.keys = part.existing = p.mask.cu_seqlens_k[b + 1] - p.mask.cu_seqlens_k[b];
    }
    if (p.mask.key_lengths != nullptr) part.existing = p.mask.key_lengths[b];
    part.asked = p.mask.query_lengths != nullptr ? p.mask.query_lengths[b] : part.queries;
    parts.push_back(part);
  }
  return parts;
}

bool listed(const attest_lists& lists, std::int64_t line, std::int64_t index) {
  return std::find(lists.indices + lists.offsets[line], lists.indices + lists.offsets[line + 1],
                   index) != lists.indices + lists.offsets[line + 1];
}

bool pair_visible(const attest_problem& p, std::int64_t i, std::int64_t j) {
  const attest_mask& m = p.mask;
  if (m.boolean != nullptr && m.boolean[i * p.seqlen_k + j] == 0) return false;
  if (m.csr != nullptr && !listed(m.csr->by_query, i, j)) return false;
  if (m.blocks != nullptr &&
      !listed(m.blocks->by_query, i / m.blocks->block_q, j / m.blocks->block_k)) {
    return false;
  }
  if (m.nm == nullptr) return true;
  const std::int64_t groups = (p.seqlen_k + m.nm->group - 1) / m.nm->group;
  const std::uint8_t* const kept = m.nm->offsets + (i * groups + j / m.nm->group) * m.nm->kept;
  return std::find(kept, kept + m.nm->kept, j % m.nm->group) != kept + m.nm->kept;
}

bool left_bounded(const attest_mask& m) {
  return m.window_ends != nullptr ? m.window_ends->left_unbounded == 0 : m.window_left >= 0;
}

bool right_bounded(const attest_mask& m) {
  return m.window_ends != nullptr ? m.window_ends->right_unbounded == 0 : m.window_right >= 0;
}

bool visible(const attest_problem& p, const Part& part, std::int64_t i, std::int64_t j) {
  const std::int64_t aligned = p.mask.align == ATTEST_TOP_LEFT ? i : i + part.existing - part.asked;
  if (left_bounded(p.mask) && j - aligned < -p.mask.window_left) return false;
  if (right_bounded(p.mask) && j - aligned > p.mask.window_right) return false;
  return pair_visible(p, i, j);
}

std::string rows_without_keys(const attest_problem& p) {
  if (p.seqlen_q == 0 || p.seqlen_k == 0) return "an extent of 0";
  for (const Part& part : parts_of(p)) {
    if (part.queries == 0 || part.existing == 0) return "a sequence of length zero";
    for (std::int64_t i = 0; i < part.asked; ++i) {
      bool any = false;
      for (std::int64_t j = 0; j < part.existing && !any; ++j) any = visible(p, part, i, j);
      if (!any) return "a row without a visible key";
    }
  }
  return "";
}

// ---- the problem ----

std::string outside_mask(const attest_description& d, const attest_problem& p) {
  const attest_mask& m = p.mask;
  const bool banded = left_bounded(m) || right_bounded(m);
  const bool causal = !left_bounded(m) && m.window_right == 0;
  const bool top_left = m.align == ATTEST_TOP_LEFT;
  const auto needs = [&](bool given, std::uint32_t feature, const char* text) {
    return when(given && !claimed(d, feature), text);
  };
  return first_of({needs(causal && top_left, ATTEST_CAUSAL_TOP_LEFT, "causal, top left"),
                   needs(causal && !top_left, ATTEST_CAUSAL_BOTTOM_RIGHT, "causal, bottom right"),
                   needs(banded && !causal, ATTEST_WINDOW, "a window"),
                   needs(m.window_ends != nullptr, ATTEST_OFFSET_WINDOW, "ends of a window"),
                   needs(m.query_lengths != nullptr, ATTEST_QUERY_LENGTHS, "query lengths"),
                   needs(m.per_head != nullptr, ATTEST_HEAD_MASK, "a mask of heads"),
                   needs(m.key_lengths != nullptr, ATTEST_KEY_LENGTHS, "key lengths"),
                   needs(m.cu_seqlens_q != nullptr, ATTEST_PACKED_SEQUENCES, "packed sequences"),
                   needs(m.boolean != nullptr, ATTEST_BOOLEAN_MASK, "a boolean mask"),
                   needs(m.blocks != nullptr, ATTEST_BLOCK_MASK, "a block mask"),
                   needs(m.csr != nullptr, ATTEST_CSR_MASK, "a CSR mask"),
                   needs(m.nm != nullptr, ATTEST_NM_MASK, "an N:M mask")});
}

std::string outside_extents(const char* what, const attest_extents& extents, std::int64_t value) {
  const bool good = value >= extents.least && (extents.most == 0 || value <= extents.most) &&
                    (extents.multiple == 0 || value % extents.multiple == 0);
  return when(!good, what + std::string(" of ") + std::to_string(value));
}

std::string outside_head_dim(const attest_description& d, std::int64_t dim) {
  bool good = (d.max_head_dim == 0 || dim <= d.max_head_dim) &&
              (d.head_dim_multiple == 0 || dim % d.head_dim_multiple == 0);
  if (d.limits != nullptr && d.limits->head_dims[0] != 0) {
    const auto& dims = d.limits->head_dims;
    good = good && std::find(std::begin(dims), std::end(dims), dim) != std::end(dims);
  }
  const std::string text = when(!good, "a head dimension of " + std::to_string(dim));
  return d.limits == nullptr
             ? text
             : first_of({text, outside_extents("head_dim", d.limits->head_dim, dim)});
}

std::string outside_set(const attest_limits& limits, const attest_problem& p) {
  const bool banded = left_bounded(p.mask) || right_bounded(p.mask);
  const auto only = [&](std::uint32_t bit) { return (limits.only & bit) != 0; };
  const std::vector<Part> parts = parts_of(p);
  const bool one_alignment = std::all_of(
      parts.begin(), parts.end(), [](const Part& part) { return part.queries == part.existing; });
  const bool aligned = banded || (p.alibi_slopes != nullptr && !one_alignment);
  const double scale = limits.softmax_scale != 0
                           ? limits.softmax_scale
                           : 1 / std::sqrt(static_cast<double>(p.head_dim_qk));
  return first_of(
      {when(only(ATTEST_ONLY_CAUSAL) && p.mask.window_right != 0, "no causal mask"),
       when(only(ATTEST_ONLY_TOP_LEFT) && aligned && p.mask.align != ATTEST_TOP_LEFT,
            "alignment to the bottom right"),
       when(only(ATTEST_ONLY_BOTTOM_RIGHT) && aligned && p.mask.align != ATTEST_BOTTOM_RIGHT,
            "alignment to the top left"),
       when(only(ATTEST_ONLY_ONE_SCALE) && p.softmax_scale != scale, "another scale"),
       when(limits.most_heads_q > 0 && p.num_heads_q > limits.most_heads_q, "more heads"),
       when(limits.most_batch > 0 && p.batch > limits.most_batch, "a larger batch")});
}

std::string outside_lengths(const attest_description& d, const attest_problem& p) {
  if (d.limits == nullptr) return "";
  return first_of({outside_extents("seqlen_q", d.limits->seqlen_q, p.seqlen_q),
                   outside_extents("seqlen_k", d.limits->seqlen_k, p.seqlen_k)});
}

// Entries of the block table name pages that there are.
std::string outside_pages(const attest_problem& p) {
  if (p.paged_kv == nullptr) return "";
  const attest_paged_kv& paged = *p.paged_kv;
  const std::int32_t *const begin = paged.block_table, *const end =
                                                           begin + p.batch * paged.max_pages;
  return when(std::any_of(begin, end, [&](auto page) { return page < 0 || page >= paged.pages; }),
              "a page that there is not");
}

std::string outside_problem(const attest_description& d, const attest_problem& p) {
  const std::vector<Part> parts = parts_of(p);
  const bool cross = std::any_of(parts.begin(), parts.end(),
                                 [](const Part& part) { return part.queries != part.keys; });
  const auto needs = [&](bool given, std::uint32_t feature, const char* text) {
    return when(given && !claimed(d, feature), text);
  };
  return first_of({when((d.dtypes >> p.dtype & 1U) == 0, "a dtype"),
                   when(p.num_threads < 1, "no thread"), outside_head_dim(d, p.head_dim_qk),
                   outside_head_dim(d, p.head_dim_v), outside_mask(d, p),
                   needs(p.num_heads_q != p.num_heads_kv, ATTEST_GQA, "grouped heads"),
                   needs(p.head_dim_qk != p.head_dim_v, ATTEST_HEAD_DIM_V, "another head_dim_v"),
                   needs(p.softcap != 0, ATTEST_SOFTCAP, "a softcap"),
                   needs(p.alibi_slopes != nullptr, ATTEST_ALIBI, "ALiBi"),
                   needs(p.sinks != nullptr, ATTEST_SINKS, "sinks"),
                   needs(p.paged_kv != nullptr, ATTEST_PAGED_KV, "pages"), outside_pages(p),
                   needs(p.num_splits != 0, ATTEST_SPLIT_INVARIANT, "a number of splits"),
                   needs(p.softmax_scale <= 0, ATTEST_ANY_SCALE, "a scale that is not positive"),
                   needs(cross || p.seqlen_q != p.seqlen_k, ATTEST_CROSS_LENGTHS, "other lengths"),
                   claimed(d, ATTEST_EMPTY_ROWS) ? "" : rows_without_keys(p), outside_lengths(d, p),
                   d.limits == nullptr ? "" : outside_set(*d.limits, p)});
}

// ---- tensors ----

bool overlaps(const attest_tensor& t) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, extent
  for (std::int32_t axis = 0; axis < t.ndim; ++axis) {
    if (t.shape[axis] == 0) return false;
    if (t.shape[axis] > 1) axes.emplace_back(t.strides[axis], t.shape[axis]);
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t span = 1;
  for (const auto& [stride, extent] : axes) {
    if (stride < span) return true;
    span += stride * (extent - 1);
  }
  return false;
}

enum class Use : std::uint8_t { input, output };

std::string outside_tensor(const attest_description& d, const char* name, const attest_tensor* t,
                           Use use) {
  if (t == nullptr) return "";
  const std::string where = std::string(" of ") + name;
  const bool any = claimed(d, ATTEST_ANY_STRIDES);
  const std::int64_t innermost = t->strides[t->ndim - 1];
  const auto address = reinterpret_cast<std::uintptr_t>(t->data) + t->byte_offset;
  return first_of(
      {when(std::any_of(t->strides, t->strides + t->ndim, [](auto stride) { return stride < 0; }),
            "a negative stride" + where),
       when(!any && innermost != 1, "an innermost stride of " + std::to_string(innermost) + where),
       when((!any || use == Use::output) && overlaps(*t), "elements in one place" + where),
       when(address % 64 != 0, "an address" + where)});
}

std::string outside_direction(const attest_description& d, std::uint32_t bit) {
  return when((d.directions & bit) == 0, "a direction");
}

}  // namespace

std::string outside_claims(const attest_description& d, const attest_forward_args& x) {
  return first_of({outside_direction(d, ATTEST_FORWARD), outside_problem(d, *x.problem),
                   when(x.LSE != nullptr && !claimed(d, ATTEST_LSE), "LSE"),
                   outside_tensor(d, "Q", x.Q, Use::input), outside_tensor(d, "K", x.K, Use::input),
                   outside_tensor(d, "V", x.V, Use::input),
                   outside_tensor(d, "O", x.O, Use::output),
                   outside_tensor(d, "LSE", x.LSE, Use::output)});
}

std::string outside_claims(const attest_description& d, const attest_backward_args& x) {
  return first_of(
      {outside_direction(d, ATTEST_BACKWARD), outside_problem(d, *x.problem),
       when(x.problem->paged_kv != nullptr, "backward with pages"),
       when((x.LSE != nullptr) != claimed(d, ATTEST_LSE), "LSE"),
       when(x.dLSE != nullptr && !claimed(d, ATTEST_DLSE), "dLSE"),
       outside_tensor(d, "Q", x.Q, Use::input), outside_tensor(d, "K", x.K, Use::input),
       outside_tensor(d, "V", x.V, Use::input), outside_tensor(d, "O", x.O, Use::input),
       outside_tensor(d, "LSE", x.LSE, Use::input), outside_tensor(d, "dO", x.dO, Use::input),
       outside_tensor(d, "dLSE", x.dLSE, Use::input), outside_tensor(d, "dQ", x.dQ, Use::output),
       outside_tensor(d, "dK", x.dK, Use::output), outside_tensor(d, "dV", x.dV, Use::output)});
}

std::string outside_claims(const attest_description& d, const attest_loss_args& x) {
  const attest_problem& p = *x.problem;
  Texts texts{outside_direction(d, ATTEST_LOSS_GRADIENT),
              when((d.dtypes >> p.dtype & 1U) == 0, "a dtype"),
              outside_head_dim(d, p.head_dim_qk),
              outside_lengths(d, p),
              when(p.batch != 1 || p.num_heads_q != 1 || p.num_heads_kv != 1, "several heads"),
              when(p.seqlen_q != p.seqlen_k || p.head_dim_qk != p.head_dim_v, "other extents"),
              when(x.dY != nullptr && !claimed(d, ATTEST_LOSS_DY), "dY")};
  for (const attest_tensor* t : {x.A1, x.A2, x.A3, x.E, x.X, x.Y}) {
    texts.push_back(outside_tensor(d, "an input", t, Use::input));
  }
  for (const attest_tensor* t : {x.dX, x.dY}) {
    texts.push_back(outside_tensor(d, "an output", t, Use::output));
  }
  return first_of(texts);
}

}  // namespace attest::certify::testing
