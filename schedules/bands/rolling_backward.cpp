#include "schedules/bands/rolling_backward.hpp"

namespace attest::schedules {

io::Traffic RollingQueriesBackward::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const RollingVisits visits = visits_of(head);
  const RollingVisits::Sums sums = visits.sums();
  const io::Words both = s.dk + s.dv, returns = sums.returns();
  io::Amount peak =
      HeadShape::real(visits.buffered() * (2 * s.dk + s.dv + 2) + visits.places() * both);
  if (sums.visits > 0) peak = peak + s.in(both) + HeadShape::real(2);
  if (sums.placeless > 0) peak = peak + HeadShape::real(both);
  if (sums.visitors < s.k) peak = io::larger(peak, HeadShape::real(both));
  return {s.in(sums.residents * (s.dk + 2 * s.dv) + sums.visits * both) + s.sums(returns * both) +
              HeadShape::real(sums.residents) + dlse_words(sums.residents, dlse) +
              sums_before(head, s),
          s.in(s.q * s.dk) + s.sums((s.k + returns) * both), peak};
}

io::Traffic RollingKeys::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const RollingVisits visits = visits_of(head);
  const RollingVisits::Sums sums = visits.sums();
  const io::Words both = s.dk + s.dv, later = sums.visits - sums.visitors;
  io::Amount peak = HeadShape::real(visits.buffered() * 2 * both + visits.places() * s.dk);
  if (sums.visits > 0) peak = peak + s.in(both) + HeadShape::real(4);
  if (sums.placeless > 0) peak = peak + HeadShape::real(s.dk);
  if (sums.visitors < s.q) peak = io::larger(peak, HeadShape::real(s.dk));
  return {s.in(sums.visitors * (s.dk + 2 * s.dv) + later * both + sums.returns() * s.dk +
               (sums.residents + sums.entries_again) * both) +
              s.sums(sums.entries_again * both) + HeadShape::real(sums.visitors + 2 * later) +
              dlse_words(sums.visitors, dlse) + sums_before(head, s),
          s.in((s.q + sums.returns()) * s.dk) + s.sums((s.k + sums.entries_again) * both) +
              HeadShape::real(sums.visitors),
          peak};
}

}  // namespace attest::schedules
