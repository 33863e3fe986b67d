#include "cpu/schedules/held_scores.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace attest::cpu {

// The keys of a band grow and shrink by one from row to row, and change how at four rows: where
// either end of the window enters or leaves the keys. The widest row is one of these, or at an end.
std::int64_t HeldScores::widest(const ScoreRule& rule, io::Range queries) {
  const attest_mask& mask = rule.problem->mask;
  const Batch& batch = rule.batch;
  const auto width = [&](std::int64_t i) {
    const KeySpan band = visible_keys(*rule.problem, batch, i);
    return band.end - band.begin;
  };
  std::int64_t most = std::max(width(queries.begin), width(queries.end - 1));
  // Wider windows have their edges outside; widths near 2^63 must not overflow.
  const std::int64_t far = batch.keys + batch.q_length + std::abs(batch.shift);
  for (const std::int64_t width_of_side : {mask.window_left, -mask.window_right}) {
    const std::int64_t side = std::clamp(width_of_side, -far, far);
    for (const std::int64_t edge : {std::int64_t{0}, batch.keys - 1}) {
      const std::int64_t row = edge + side - batch.shift;
      if (row >= queries.begin && row < queries.end) most = std::max(most, width(row));
    }
  }
  return most;
}

io::Traffic HeldScores::block_cost(const HeadShape& s, const ScoreRule& rule, io::Range queries) {
  const io::Words i = queries.count(), keys = keys_of(rule, queries).count();
  const io::Amount written = s.in(i * s.dv) + HeadShape::real(i);
  if (keys == 0) return {{}, written, HeadShape::real(i)};
  return {s.in(i * s.dk + keys * (s.dk + s.dv)), written,
          HeadShape::real(i * widest(rule, queries) + 2 * i + 1)};
}

io::Traffic HeldScores::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  io::Traffic traffic;
  for_blocks(head.rule, s.q.value(), block_q, [&](io::Range queries, io::Words count) {
    io::Traffic block = block_cost(s, head.rule, queries);
    block.reads = count * block.reads;
    block.writes = count * block.writes;
    traffic = then(traffic, block);
  });
  return traffic;
}

}  // namespace attest::cpu
