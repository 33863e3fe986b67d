#include "schedules/bands/rolling_queries.hpp"

namespace attest::schedules {

io::Traffic RollingQueries::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const RollingVisits visits = visits_of(head);
  const RollingVisits::Sums sums = visits.sums();
  const io::Words both = s.dk + s.dv;
  io::Amount peak = HeadShape::real(visits.buffered() * (both + 2) + visits.places() * both);
  if (sums.visits > 0) peak = peak + HeadShape::real(2);
  if (sums.placeless > 0) peak = peak + s.in(both);
  return {s.in(sums.residents * s.dk + (sums.visits - sums.waits) * both),
          s.in(s.q * s.dv) + HeadShape::real(s.q), peak};
}

}  // namespace attest::schedules
