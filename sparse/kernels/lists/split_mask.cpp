#include "sparse/kernels/lists/split_mask.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/mask/sparsity/blocks_of.hpp"
#include "sparse/kernels/row_tasks.hpp"

namespace attest::sparse {
namespace {

PairSplit split_of(const attest_problem& problem) {
  if (problem.mask.csr == nullptr) return {};
  return split_pairs(problem, best_tile(problem));
}

std::vector<std::uint8_t> seen_keys(const attest_problem& problem) {
  if (problem.mask.csr == nullptr) return {};
  const std::int64_t* const offsets = problem.mask.csr->by_key.offsets;
  const bool all_queries = !has_band(problem.mask) && problem.mask.cu_seqlens_q == nullptr;
  std::vector<std::uint8_t> seen(static_cast<std::size_t>(stored_keys(problem).count));
#pragma omp parallel num_threads(std::max(problem.num_threads, 1))
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const cpu::Batch batch = cpu::batch_of(problem, b);
    std::uint8_t* const of_batch = seen.data() + first_key(problem, batch);
#pragma omp for nowait
    for (std::int64_t j = 0; j < batch.keys; ++j) {
      const bool is_listed = offsets[j] < offsets[j + 1];
      of_batch[j] = is_listed && (all_queries || queries_of(problem, batch, j).count > 0) ? 1 : 0;
    }
  }
  return seen;
}

attest_problem with_lists(attest_problem problem, const attest_block_mask* blocks,
                          const attest_csr_mask* csr) {
  if (problem.mask.csr == nullptr) return problem;
  problem.mask.blocks = blocks;
  problem.mask.csr = csr;
  return problem;
}

}  // namespace

SplitMask::SplitMask(const attest_problem& problem, bool by_key)
    : problem_(problem),
      by_key_(by_key),
      seen_(seen_keys(problem)),
      split_(split_of(problem)),
      tiles_by_key_(transposed(split_.tiles, blocks_of(problem.seqlen_k, split_.tile))),
      singles_by_key_(by_key ? transposed(split_.singles, problem.seqlen_k) : OwnedLists{}),
      block_mask_{sizeof block_mask_, split_.tile, split_.tile, split_.tiles.view(),
                  tiles_by_key_.view()},
      csr_mask_{sizeof csr_mask_, split_.singles.view(), singles_by_key_.view()},
      tile_problem_(with_lists(problem, &block_mask_, nullptr)),
      single_problem_(with_lists(problem, nullptr, &csr_mask_)),
      tiles_(tile_problem_) {}

RowList SplitMask::single_keys(const cpu::Batch& batch, std::int64_t i) const {
  return has_singles() ? keys_of(single_problem_, batch, i) : RowList{};
}

RowList SplitMask::single_queries(const cpu::Batch& batch, std::int64_t j) const {
  return has_singles() ? queries_of(single_problem_, batch, j) : RowList{};
}

void SplitMask::hide(Rows queries, Rows keys, std::int64_t lanes, float* S) const {
  if (split_.words.empty()) return;  // all tiles are whole, or there is no CSR mask
  const auto line = static_cast<std::size_t>(queries.first / split_.tile);
  const auto first = split_.tiles.indices.begin();
  const auto listed =
      std::lower_bound(first + split_.tiles.offsets[line], first + split_.tiles.offsets[line + 1],
                       keys.first / split_.tile);
  const std::int64_t at = split_.words_at[static_cast<std::size_t>(listed - first)];
  if (at == PairSplit::kWhole) return;
  const std::uint64_t* const words = split_.words.data() + at;
  const std::uint64_t all = first_bits(keys.count);
  for (std::int64_t r = 0; r < queries.count; ++r) {
    for (std::uint64_t absent = ~words[r] & all; absent != 0; absent &= absent - 1) {
      S[std::countr_zero(absent) * lanes + r] = -std::numeric_limits<float>::infinity();
    }
  }
}

cpu::RowsView SplitMask::seen_rows(const cpu::Batch& batch, Rows keys, const SequenceRows& rows,
                                   float* tile) const {
  const auto seen = [&](std::int64_t r) { return is_seen(batch, keys.first + r); };
  std::int64_t first_hidden = 0;
  while (first_hidden < keys.count && seen(first_hidden)) ++first_hidden;
  if (first_hidden == keys.count) return {rows[keys.first], rows.stride};
  std::fill_n(tile, keys.count * rows.columns, 0.0f);
  for (std::int64_t r = 0; r < keys.count; ++r) {
    if (seen(r)) std::copy_n(rows[keys.first + r], rows.columns, tile + r * rows.columns);
  }
  return {tile, rows.columns};
}

std::vector<Task> SplitMask::query_tasks() const {
  std::vector<Task> tasks;
  for (std::int64_t b = 0; b < tile_problem_.batch; ++b) {
    const cpu::Batch batch = cpu::batch_of(tile_problem_, b);
    for (std::int64_t tile = 0; tile < tiles_.queries().tiles(batch.q_length); ++tile) {
      const Rows queries = tiles_.queries().tile(tile, batch.q_length);
      std::int64_t met = 0;
      tiles_.for_keys(batch, tile, [&](Rows keys) { met += queries.count * keys.count; });
      append_tasks(
          {b, 0, tile, queries, met, is_split() && met == 0}, tile_problem_.num_heads_q,
          [&](std::int64_t i) { return single_keys(batch, i).count; }, tasks);
    }
  }
  return tasks;
}

std::vector<Task> SplitMask::key_tasks() const {
  std::vector<Task> tasks;
  for (std::int64_t b = 0; b < tile_problem_.batch; ++b) {
    const cpu::Batch batch = cpu::batch_of(tile_problem_, b);
    for (std::int64_t tile = 0; tile < tiles_.keys().tiles(batch.k_length); ++tile) {
      const Rows keys = tiles_.keys().tile(tile, batch.k_length);
      std::int64_t met = 0;
      tiles_.for_queries(batch, tile, [&](Rows queries) { met += queries.count * keys.count; });
      append_tasks(
          {b, 0, tile, keys, met / kPairsPerVisible, is_split() && met == 0},
          tile_problem_.num_heads_kv,
          [&](std::int64_t j) {
            return by_key_ && j < batch.keys ? single_queries(batch, j).count : 0;
          },
          tasks);
    }
  }
  return tasks;
}

}  // namespace attest::sparse
