#include "sparse/kernels/block_tiles.hpp"

namespace attest::sparse {

using cpu::Batch;

std::vector<Task> BlockTiles::query_tasks() const {
  std::vector<Task> tasks;
  for (std::int64_t b = 0; b < problem_.batch; ++b) {
    const Batch batch = cpu::batch_of(problem_, b);
    for (std::int64_t tile = 0; tile < queries_.tiles(batch.q_length); ++tile) {
      const Rows queries = queries_.tile(tile, batch.q_length);
      if (queries.count == 0) continue;
      std::int64_t work = 0;
      for_keys(batch, tile, [&](Rows keys) { work += queries.count * keys.count; });
      for (std::int64_t head = 0; head < problem_.num_heads_q; ++head) {
        tasks.push_back({b, head, tile, work});
      }
    }
  }
  return tasks;
}

std::vector<Task> BlockTiles::key_tasks() const {
  std::vector<Task> tasks;
  for (std::int64_t b = 0; b < problem_.batch; ++b) {
    const Batch batch = cpu::batch_of(problem_, b);
    for (std::int64_t tile = 0; tile < keys_.tiles(batch.k_length); ++tile) {
      const Rows stored = keys_.tile(tile, batch.k_length);
      if (stored.count == 0) continue;
      std::int64_t work = 0;
      for_queries(batch, tile, [&](Rows queries) { work += queries.count * stored.count; });
      for (std::int64_t head = 0; head < problem_.num_heads_kv; ++head) {
        tasks.push_back({b, head, tile, work});
      }
    }
  }
  return tasks;
}

}  // namespace attest::sparse
