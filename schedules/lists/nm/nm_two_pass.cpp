#include "schedules/lists/nm/nm_two_pass.hpp"

namespace attest::schedules {

io::Traffic NmTwoPass::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const io::Words both = s.dk + s.dv;
  const NmLayout metadata(head.rule, q, k, shape, block_q);
  const std::vector<NmLayout::Blocks> query_blocks = metadata.query_blocks();
  // A row of either side with words of its own.
  const auto row = [&](io::Words real) { return s.in(both) + HeadShape::real(real); };

  io::Traffic traffic{s.in(s.q * (s.dk + 2 * s.dv) + s.k * both) + HeadShape::real(s.q) +
                          dlse_words(s.q, dlse) + sums_before(head, s),
                      HeadShape::real(s.q) + s.in(s.q * s.dk) + s.sums(s.k * both),
                      {}};
  for (const auto& [queries, times] : query_blocks) {
    const io::Words i = queries.count(), keys = metadata.keys_seen(queries);
    const io::Words words = metadata.groups() > 0 ? metadata.group_words(queries.count()) : 0;
    traffic.reads += times * (keys * row(0) + HeadShape::real(metadata.groups() * words));
    const io::Amount step = keys > 0 ? row(2) : io::Amount{};
    traffic.peak =
        io::larger(traffic.peak, s.in(i * both) + HeadShape::real(i * (s.dk + 2) + words) + step);
  }
  for (const auto& [keys, blocks] : metadata.key_blocks(block_k)) {
    const io::Words j = keys.count(), groups = metadata.groups_of(keys).count();
    const io::Amount stay = s.in(j * both) + HeadShape::real(j * both);
    traffic.peak = io::larger(traffic.peak, stay);
    for (const auto& [queries, times] : query_blocks) {
      const io::Amount words = HeadShape::real(groups * metadata.group_words(queries.count()));
      const io::Words seeing = metadata.queries_seeing(keys, queries);
      traffic.reads += blocks * times * (words + seeing * row(2));
      const io::Amount step = seeing > 0 ? row(4) : io::Amount{};
      traffic.peak = io::larger(traffic.peak, stay + words + step);
    }
  }
  return traffic;
}

}  // namespace attest::schedules
