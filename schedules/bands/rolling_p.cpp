#include "schedules/bands/rolling_p.hpp"

namespace attest::schedules {

io::Traffic RollingP::pass_cost(const HeadShape& s, const RollingVisits& visits,
                                const RollingVisits::Sums& sums, io::Words resident,
                                io::Words columns, io::Words pair) {
  io::Amount peak = HeadShape::real(visits.buffered() * resident + visits.places() * columns);
  if (sums.visits > 0) peak = peak + HeadShape::real(pair);
  if (sums.placeless > 0) peak = peak + s.in(columns);
  return {s.in((sums.visits - sums.waits) * columns), {}, peak};
}

io::Traffic RollingP::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const RollingVisits of_keys = visits_of_keys(head), of_outputs = visits_of_outputs(head),
                      of_queries = visits_of_queries(head);
  const RollingVisits::Sums keys = of_keys.sums(), outputs = of_outputs.sums();
  const io::Words z = of_keys.pairs(), ra = keys.residents;
  const io::Amount pairs = HeadShape::real(z);
  io::Traffic P = pass_cost(s, of_keys, keys, s.dk + 1, s.dk, 1);
  P.reads += s.in(ra * s.dk) + HeadShape::real(ra);
  P.writes = pairs;
  io::Traffic dV;
  dV.peak = HeadShape::real(of_outputs.buffered() * 2 * s.dv + of_outputs.places() * (s.dv + 1));
  if (outputs.visits > 0) dV.peak = dV.peak + HeadShape::real(2);
  if (outputs.placeless > 0) dV.peak = dV.peak + s.in(s.dv) + HeadShape::real(1);
  dV.reads = s.in((outputs.residents + outputs.visits - outputs.waits + ra) * s.dv) +
             HeadShape::real(outputs.returns()) + dlse_words(ra, dlse) + pairs;
  dV.writes = pairs + HeadShape::real(ra) + s.sums(s.k * s.dv);
  io::Traffic dQ = pass_cost(s, of_keys, keys, s.dk, s.dk, 1);
  dQ.reads += pairs;
  dQ.writes = s.in(s.q * s.dk);
  io::Traffic dK = pass_cost(s, of_queries, of_queries.sums(), s.dk, s.dk, 1);
  dK.reads += pairs + sums_before(head, s);
  dK.writes = s.sums(s.k * s.dk);
  return then(then(P, dV), then(dQ, dK));
}

}  // namespace attest::schedules
