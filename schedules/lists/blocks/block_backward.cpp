#include "schedules/lists/blocks/block_backward.hpp"

#include <algorithm>

namespace attest::sparse {

io::Traffic BlockKeyStationary::cost(const cpu::BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const TileList::Sums sums =
      TileList::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, ListsOf::keys);
  const io::Words nz_q = sums.tile_queries, both = s.dk + s.dv;
  const io::Words offsets = sums.lists > 0 ? 2 : 0, count = 1;
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return s.in((i + j) * both) +
           HeadShape::real(offsets + record + j * both + i * (s.dk + 2) + 2 * i * j);
  };
  // Keys nobody sees, and queries that see none.
  const io::Words largest_j = std::min(s.k, io::Words(block_k));
  const io::Words alone =
      std::max(offsets + largest_j * both, count + io::Words(sums.idle_queries) * s.dk);
  io::Traffic traffic = cpu::deltas_cost(s, dlse);
  traffic.reads += s.in(sums.keys * both + nz_q * both + (nz_q - sums.queries) * s.dk) +
                   HeadShape::real(2 * nz_q + sums.words() + count + sums.idle_blocks) +
                   cpu::sums_before(head, s);
  traffic.writes += s.sums(s.k * both) + s.in((nz_q + s.q - sums.queries) * s.dk);
  traffic.peak = io::larger(traffic.peak, sums.largest(HeadShape::real(alone), peak));
  return traffic;
}

io::Traffic BlockTwoPass::cost(const cpu::BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const StepWords tiles = [](io::Words i, io::Words j) { return HeadShape::real(2 * i * j); };
  const auto rows = TileList::sums_of(head.rule, q, k, block_q, block_k, ListsOf::queries);
  const auto columns = TileList::sums_of(head.rule, q, k, pass_q, pass_k, ListsOf::keys);
  return then(listed_query_pass_cost(s, rows, block_q, dlse, tiles),
              listed_key_pass_cost(head, columns, pass_k, tiles));
}

}  // namespace attest::sparse
