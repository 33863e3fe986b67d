#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "core/moved_words.hpp"
#include "cpu/kernels/tiles/query_rows.hpp"
#include "cpu/kernels/tiles/score_panel.hpp"

/// Sums of a panel past which tiles of keys stream (Dao 2023, Algorithm 1), and the steps of the
/// forward pass but for their order.
namespace attest::cpu {

/// A panel with its sums: the running maximum m and sum l of each lane, and O, which has a row of
/// lanes for each column; with few queries a row for each query.
struct PanelSums {
  QueryRows rows;
  QueryPanel panel;
  float *Qt, *O, *m, *l;

  std::int64_t row_stride(std::int64_t dv) const { return panel.is_few() ? dv : 1; }
  std::int64_t column_stride() const { return panel.is_few() ? 1 : panel.lanes(); }
};

/// The steps, for one batch entry; between add_values and the scores before it comes update_panel.
class PanelForward {
 public:
  PanelForward(const attest_forward_args& args, const Batch& batch, MovedWords* words);

  /// Packs Q, through `tile`, (queries, d), where it is no rows of float32; the sums become those
  /// of no key.
  void begin(const PanelSums& one, float* tile) const;

  /// O = O rescale + P V, of P(keys, lanes); of pairs of keys where V is in pairs, which few
  /// queries do not take.
  void add_values(const PanelSums& one, const RowsView& V, std::int64_t keys, const float* P,
                  const float* rescale) const;

  /// Divides O by l and stores it, through `tile`, (queries, dv), where it is no rows of float32;
  /// LSE = m + log l, -inf where no score was above -inf.
  void finish(const PanelSums& one, float* tile) const;

  /// rows(r, c) = O of lane `lane` + r in column c, for `count` lanes.
  void put_rows(const PanelSums& one, std::int64_t lane, std::int64_t count, float* rows,
                std::int64_t stride) const;

 private:
  // visit(rows of the tensors, their first lane) for the runs of one head.
  template <class Visit>
  void for_blocks(const PanelSums& one, const Visit& visit) const {
    one.rows.for_runs(
        one.panel.first(), one.panel.count(),
        [&](std::int64_t head, std::int64_t query, std::int64_t count, std::int64_t row) {
          visit(RowBlock{batch_.tensor_batch, batch_.q_begin + query, count, head},
                row - one.panel.first());
        });
  }

  const attest_forward_args& args_;
  const attest_problem& problem_;
  Batch batch_;
  WordCounter words_;
};

}  // namespace attest::cpu
