#include "schedules/dense/split_kv.hpp"

#include <algorithm>

namespace attest::schedules {

std::vector<TileRun> SplitKv::runs_in(const TileMap& map, io::Range queries, std::int64_t part,
                                      std::int64_t k) const {
  const std::int64_t begin = part * part_keys(k), end = begin + part_keys(k);
  std::vector<TileRun> inside;
  for (const TileRun& run : map.runs(queries)) {
    const io::Range both{std::max(run.rows.begin, begin), std::min(run.rows.end, end)};
    if (both.count() > 0) inside.push_back({both});
  }
  return inside;
}

std::int64_t SplitKv::parts_seen(const TileMap& map, io::Range queries, std::int64_t k) const {
  std::int64_t count = 0, last = -1;  // the last part met
  for (const TileRun& run : map.runs(queries)) {
    const std::int64_t first = std::max(run.rows.begin / part_keys(k), last + 1);
    last = (run.rows.end - 1) / part_keys(k);
    count += last - first + 1;
  }
  return count;
}

io::Traffic SplitKv::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const TileMap map(head.rule, q, k, block_q, block_k, Stay::queries);
  const WalkSums sums = map.sums();
  io::Words seen;  // queries of (query block, part) pairs
  for (const io::Range& group : map.blocks()) {
    seen += io::Words(parts_seen(map, group, k)) * group.count();
  }
  const io::Amount between = HeadShape::real(seen * (s.dv + 1));
  io::Amount peak = Flash2::peak(s, sums);
  if (seen > 0) peak = io::larger(peak, HeadShape::real(2 * s.dv + 4));
  if (sums.queries < s.q) peak = io::larger(peak, HeadShape::real(s.dv));
  return {s.in(seen * s.dk + sums.tile_keys * (s.dk + s.dv)) + between,
          between + s.in(s.q * s.dv) + HeadShape::real(s.q), peak};
}

}  // namespace attest::schedules
