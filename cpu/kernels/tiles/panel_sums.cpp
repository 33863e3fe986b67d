#include "cpu/kernels/tiles/panel_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"
#include "cpu/kernels/vectors/panels.hpp"

namespace attest::cpu {

PanelForward::PanelForward(const attest_forward_args& args, const Batch& batch, MovedWords* words)
    : args_(args), problem_(*args.problem), batch_(batch), words_(words) {}

void PanelForward::begin(const PanelSums& one, float* tile) const {
  const std::int64_t d = problem_.head_dim_qk, lanes = one.panel.lanes();
  for_blocks(one, [&](const RowBlock& rows, std::int64_t lane) {
    const RowsView Q = view_rows(*args_.Q, {nullptr, 0}, rows, tile);
    transpose(Q.data, Q.stride, rows.count, d, one.Qt + lane, lanes);
    words_.read(rows.count * d);
  });
  clear_lanes(one.panel.count(), d, lanes, one.Qt);
  std::fill_n(one.O, problem_.head_dim_v * lanes, 0.0f);
  std::fill_n(one.m, lanes, -std::numeric_limits<float>::infinity());
  std::fill_n(one.l, lanes, 0.0f);
}

void PanelForward::add_values(const PanelSums& one, const RowsView& V, std::int64_t keys,
                              const float* P, const float* rescale) const {
  const std::int64_t dv = problem_.head_dim_v, lanes = one.panel.lanes(), count = one.panel.count();
  if (!one.panel.is_few()) {
    const std::int64_t depth = V.in_pairs ? (keys + 1) / 2 : keys;
    const Product product{one.O, lanes,     {V.data, 1, V.stride}, P, lanes, dv, lanes,
                          depth, V.in_pairs};
    return scale_multiply_add(product, rescale);
  }
  for (std::int64_t lane = 0; lane < count; ++lane) {
    scale_row(one.O + lane * dv, dv, rescale[lane]);
  }
  multiply_add({one.O, dv, {P, 1, lanes}, V.data, V.stride, count, dv, keys});
}

void PanelForward::put_rows(const PanelSums& one, std::int64_t lane, std::int64_t count,
                            float* rows, std::int64_t stride) const {
  const std::int64_t dv = problem_.head_dim_v;
  if (!one.panel.is_few()) {
    return unpack_panel(one.O + lane, one.panel.lanes(), count, dv, rows, stride);
  }
  for (std::int64_t r = 0; r < count; ++r) {
    std::copy_n(one.O + (lane + r) * dv, dv, rows + r * stride);
  }
}

void PanelForward::finish(const PanelSums& one, float* tile) const {
  const std::int64_t dv = problem_.head_dim_v;
  std::array<float, kMostLanes> factors{};
  for (std::int64_t lane = 0; lane < one.panel.count(); ++lane) {
    factors[static_cast<std::size_t>(lane)] = one.l[lane] == 0 ? 1.0f : 1.0f / one.l[lane];
    one.m[lane] = static_cast<float>(static_cast<double>(one.m[lane]) * std::numbers::ln2 +
                                     std::log(static_cast<double>(one.l[lane])));
  }
  add_values(one, {nullptr, 0}, 0, nullptr, factors.data());
  for_blocks(one, [&](const RowBlock& rows, std::int64_t lane) {
    if (const OutputRows O = output_rows(*args_.O, rows); O.data != nullptr) {
      put_rows(one, lane, rows.count, O.data, O.stride);
    } else {
      put_rows(one, lane, rows.count, tile, dv);
      store_rows(*args_.O, rows, tile);
    }
    words_.write(rows.count * dv);
    if (args_.LSE == nullptr) return;
    store_scalars(*args_.LSE, rows, one.m + lane);
    words_.write(rows.count);
  });
}

}  // namespace attest::cpu
