#include "cpu/schedules/stored_gradients.hpp"

#include <algorithm>

namespace attest::cpu {

io::Traffic StandardBackward::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const auto pairs = pairs_matrix(s);
  const TiledProduct tile{rows, columns, depth};
  const io::Amount pass = HeadShape::real(s.q * s.k);
  const io::Words row = 2 * s.k + (dlse == kLseGradient ? 2 : 1);
  io::Traffic traffic{2 * pass + dlse_words(s, dlse), pass,
                      HeadShape::real(s.q > 0 ? row : io::Words(0))};
  for (const ProductTask& task :
       {dv_task(head, pairs), dp_task(head, pairs), dq_task(head, pairs), dk_task(head, pairs)}) {
    traffic = then(traffic, tile.cost(task));
  }
  return traffic;
}

template <class Kind>
io::Traffic StoredPairs::cost(const BackwardHead& head, const Kind& product, std::int64_t rows,
                              std::int64_t dlse) {
  const HeadShape s = shape_of(head);
  const auto pairs = pairs_matrix(s);
  const io::Amount column = HeadShape::real(s.q),
                   block = HeadShape::real(std::min(s.q, io::Words(rows)));
  io::Traffic P = product.cost(p_task(head, pairs)), dS = product.cost(ds_task(head, pairs));
  for (io::Traffic* phase : {&P, &dS}) {
    phase->reads += column;
    phase->peak += block;
  }
  dS.reads += HeadShape::real(s.q * s.k);
  // When a tile of dS is made, the operands have left and a word of P passes.
  const io::Words i = std::min(s.q, io::Words(rows)), j = std::min(s.k, io::Words(product.columns));
  if (s.q > 0 && s.k > 0) dS.peak = io::larger(dS.peak, HeadShape::real(i * j + i + 1));
  io::Traffic traffic = then(then(deltas_cost(s, dlse), P), dS);
  for (const ProductTask& task :
       {dv_task(head, pairs), dq_task(head, pairs), dk_task(head, pairs)}) {
    traffic = then(traffic, product.cost(task));
  }
  return traffic;
}

io::Traffic SquareTiledBackward::cost(const BackwardHead& head) const {
  return StoredPairs::cost(head, TiledProduct{side, side, side}, side, dlse);
}

io::Traffic Rank1TiledBackward::cost(const BackwardHead& head) const {
  return StoredPairs::cost(head, Rank1Product{rows, columns}, rows, dlse);
}

io::Traffic QueryStationaryP::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const auto pairs = pairs_matrix(s);
  const io::Words i = std::min(s.q, io::Words(block_q)), g = std::min(s.q, io::Words(gradient_q));
  const io::Amount column = HeadShape::real(s.q), all = HeadShape::real(s.q * s.k);
  const bool pass = s.q > 0 && s.k > 0;  // else no key passes by
  const io::Traffic P{s.in(s.q * s.dk + s.k * s.dk * io::tiles(s.q.value(), block_q)) + column, all,
                      s.in(i * s.dk + (pass ? 1 : 0)) + HeadShape::real((pass ? 2 : 1) * i)};
  const io::Traffic dS{
      s.in(s.q * s.dv + s.k * s.dv * io::tiles(s.q.value(), gradient_q)) + column + all, all,
      s.in(g * s.dv) + HeadShape::real(pass ? 2 * g + 1 : g)};
  io::Traffic traffic = then(then(deltas_cost(s, dlse), P), dS);
  const Rank1Product product{rows, columns};
  for (const ProductTask& task :
       {dv_task(head, pairs), dq_task(head, pairs), dk_task(head, pairs)}) {
    traffic = then(traffic, product.cost(task));
  }
  return traffic;
}

io::Traffic KeyStationaryDs::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const io::Words both = s.dk + s.dv, j = std::min(s.k, io::Words(block_k));
  const io::Words passes = s.q * io::tiles(s.k.value(), block_k);
  // With its dO, Q, LSE, D and a pair.
  const bool pairs = s.q > 0 && s.k > 0;
  const io::Amount one_query = pairs ? s.in(both) + HeadShape::real(4) : io::Amount{};
  const io::Traffic pass{
      s.in(s.k * both + passes * both) + HeadShape::real(2 * passes) + sums_before(head, s),
      s.sums(s.k * both) + HeadShape::real(s.q * s.k),
      s.in(j * both) + HeadShape::real(j * both) + one_query};
  return then(then(deltas_cost(s, dlse), pass),
              Rank1Product{rows, columns}.cost(dq_task(head, pairs_matrix(s))));
}

}  // namespace attest::cpu
