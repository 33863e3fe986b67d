#include "cpu/schedules/rolling_p.hpp"

namespace attest::cpu {

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
  const RollingVisits of_keys = visits_of(head, Residents::queries),
                      of_queries = visits_of(head, Residents::keys);
  const RollingVisits::Sums keys = of_keys.sums(), queries = of_queries.sums();
  const io::Amount pairs = HeadShape::real(of_keys.pairs());
  const io::Words ra = keys.residents;
  io::Traffic P = pass_cost(s, of_keys, keys, s.dk + 1, s.dk, 1);
  P.reads += s.in(ra * s.dk) + HeadShape::real(ra);
  P.writes = pairs;
  io::Traffic dS = pass_cost(s, of_keys, keys, s.dv + 1, s.dv, 2);
  dS.reads += s.in(2 * ra * s.dv) + dlse_words(ra, dlse) + pairs;
  dS.writes = pairs;
  io::Traffic dQ = pass_cost(s, of_keys, keys, s.dk, s.dk, 1);
  dQ.reads += pairs;
  dQ.writes = s.in(s.q * s.dk);
  io::Traffic dK = pass_cost(s, of_queries, queries, s.dk, s.dk, 1);
  dK.reads += pairs + sums_before(head, s);
  dK.writes = s.sums(s.k * (s.dk + s.dv));
  io::Traffic dV = pass_cost(s, of_queries, queries, s.dv, s.dv, 1);
  dV.reads += pairs;
  return then(then(then(P, dS), dQ), then(dK, dV));
}

}  // namespace attest::cpu
