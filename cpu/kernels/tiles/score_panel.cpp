#include "cpu/kernels/tiles/score_panel.hpp"

#include <algorithm>
#include <numbers>

#include "cpu/kernels/tiles/bias.hpp"
#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"

namespace attest::cpu {
namespace {

constexpr float kLog2e = std::numbers::log2e_v<float>;

}  // namespace

QueryPanel::QueryPanel(const attest_problem& problem, const Batch& batch, const QueryRows& rows,
                       std::int64_t first, std::int64_t most)
    : rows_(rows),
      first_(first),
      count_(std::min(most, rows.count() - first)),
      lanes_(lanes_for(count_)),
      seen_{batch.keys, 0},
      seen_by_all_{0, batch.keys} {
  for (std::int64_t lane = 0; lane < count_; ++lane) {
    KeySpan& span = spans_[static_cast<std::size_t>(lane)];
    span = visible_keys(problem, batch, query(lane));
    seen_by_all_.begin = std::max(seen_by_all_.begin, span.begin);
    seen_by_all_.end = std::min(seen_by_all_.end, span.end);
    if (span.begin >= span.end) continue;
    seen_.begin = std::min(seen_.begin, span.begin);
    seen_.end = std::max(seen_.end, span.end);
  }
}

void QueryPanel::hide(std::int64_t key, std::int64_t keys, float* S) const {
  std::array<std::int32_t, kMostLanes> begin{}, end{};  // lanes without a query see nothing
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(count_); ++lane) {
    begin[lane] =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(spans_[lane].begin - key, 0, keys));
    end[lane] =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(spans_[lane].end - key, 0, keys));
  }
  hide_pairs({begin.data(), end.data()}, keys, lanes_, S);
}

PanelScores::PanelScores(const attest_problem& problem, const Batch& batch,
                         const attest_tensor* bias)
    : problem_(problem),
      batch_(batch),
      bias_(bias),
      is_plain_(bias == nullptr && !has_slope(problem) && problem.alibi_slopes == nullptr &&
                problem.mask.boolean == nullptr && problem.mask.per_head == nullptr) {}

void PanelScores::operator()(const QueryPanel& panel, const float* Qt, const RowsView& K,
                             std::int64_t key, std::int64_t keys, float* rows, float* S,
                             float* slope) const {
  const std::int64_t lanes = panel.lanes(), d = problem_.head_dim_qk;
  if (panel.is_few()) std::fill(S, S + keys * lanes, 0.0f);
  const std::int64_t columns = panel.is_few() ? panel.count() : lanes;
  const std::int64_t depth = K.in_pairs ? (d + 1) / 2 : d;
  const Product product{S,     lanes,     {K.data, K.stride, 1}, Qt, lanes, keys, columns,
                        depth, K.in_pairs};
  if (!is_plain_) {
    multiply(product, 1);
    return finish_rows(panel, key, keys, rows, S, slope);
  }
  multiply(product, static_cast<float>(problem_.softmax_scale * std::numbers::log2e));
  if (!panel.sees_all(key, keys)) panel.hide(key, keys, S);
}

// The panel turned to rows and back: what else scores depend on is written for rows.
void PanelScores::finish_rows(const QueryPanel& panel, std::int64_t key, std::int64_t keys,
                              float* rows, float* S, float* slope) const {
  float* const slopes = rows + panel.lanes() * keys;
  unpack_panel(S, panel.lanes(), panel.count(), keys, rows, keys);
  for (std::int64_t lane = 0; lane < panel.count(); ++lane) {
    const ScoreBlock block{panel.head(lane), panel.query(lane), 1, key, keys};
    float* const row = rows + lane * keys;
    finish_scores(problem_, batch_, block, row, slope == nullptr ? nullptr : slopes + lane * keys);
    if (bias_ != nullptr) add_bias(*bias_, batch_.number, block, row);
    scale_row(row, keys, kLog2e);
  }
  pack_panel(rows, keys, panel.count(), keys, panel.lanes(), S);
  if (slope == nullptr || !has_slope(problem_)) return;
  pack_panel(slopes, keys, panel.count(), keys, panel.lanes(), slope);
}

}  // namespace attest::cpu
