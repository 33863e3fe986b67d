#include "schedules/lists/nm/nm_gather.hpp"

#include <algorithm>

namespace attest::schedules {

io::Traffic NmGather::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const NmLayout metadata(head.rule, s.q.value(), s.k.value(), shape, block_q);
  io::Traffic traffic{s.in(s.q * s.dk), s.in(s.q * s.dv) + HeadShape::real(s.q), {}};
  for (const auto& [queries, times] : metadata.query_blocks()) {
    const io::Words i = queries.count(), keys = metadata.keys_seen(queries);
    const io::Words words = metadata.groups() > 0 ? metadata.group_words(queries.count()) : 0;
    traffic.reads +=
        times * (s.in(keys * (s.dk + s.dv)) + HeadShape::real(metadata.groups() * words));
    traffic.peak =
        io::larger(traffic.peak,
                   s.in(i * s.dk) + HeadShape::real(i * (s.dv + 3) + words + (keys > 0 ? 1 : 0)));
  }
  return traffic;
}

}  // namespace attest::schedules
