#include "schedules/dense/stored_gradients.hpp"

#include <algorithm>

namespace attest::schedules {

io::Traffic StandardBackward::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const auto pairs = pairs_matrix(s);
  const TiledProduct tile{rows, columns, depth};
  const io::Amount pass = HeadShape::real(s.q * s.k);
  const io::Words row = 2 * s.k + (dlse == kLseGradient ? 2 : 1);
  io::Traffic traffic{2 * pass + dlse_words(s.q, dlse), pass,
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

namespace {

// Words and peak of a pass in which blocks of `length` queries stay, as rows of `columns` words and
// a word of a column that takes `beside` to read, and the keys of their bands pass by, with
// `passing` in fast memory.
io::Traffic resident_pass(const BackwardHead& head, std::int64_t length, io::Words columns,
                          io::Amount beside, io::Amount passing) {
  const HeadShape s = shape_of(head);
  io::Traffic pass;
  for_blocks(head.rule, s.q.value(), length, [&](io::Range queries, io::Words count) {
    const io::Words i = queries.count(), keys = keys_of(head.rule, queries).count();
    if (keys == 0) return;
    pass.reads += count * (s.in((i + keys) * columns) + i * beside);
    pass.peak = io::larger(pass.peak, s.in(i * columns) + HeadShape::real(2 * i) + passing);
  });
  return pass;
}

// The product that adds to dQ, or to dK or dV.
enum class Adds : std::uint8_t { queries, keys };

io::Traffic band_product(const BackwardHead& head, const ProductTask& task, Adds adds,
                         const Rank1Product& tile) {
  if (task.C.rows() == 0) return {};
  const ScoreRule& rule = head.rule;
  const io::Range queries = all_rows(head.Q);
  const io::Amount before = task.sums == Sums::continued ? amount(task.C_before) : io::Amount{};
  io::Traffic traffic{
      io::tiles(task.C.columns(), tile.columns) * HeadShape::real(band_pairs(rule, queries)) +
          before,
      amount(task.C),
      {}};
  const io::Words columns = std::min(tile.columns, task.C.columns());
  for_blocks(rule, task.C.rows(), tile.rows, [&](io::Range block, io::Words count) {
    const bool of_queries = adds == Adds::queries;
    const io::Words passing =
        of_queries ? keys_of(rule, block).count() : queries_of(rule, queries, block).count();
    const io::Words most = of_queries ? most_queries(rule, block) : most_keys(rule, queries, block);
    traffic.reads += count * passing * task.B.columns() * word(task.B);
    const io::Amount operands = passing > 0 ? HeadShape::real(most) + word(task.B) : io::Amount{};
    traffic.peak = io::larger(traffic.peak, HeadShape::real(columns * block.count()) + operands);
  });
  return traffic;
}

}  // namespace

io::Traffic QueryStationaryP::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const auto pairs = pairs_matrix(s);
  const io::Amount stored = HeadShape::real(band_pairs(head.rule, all_rows(head.Q)));
  // Beside rows of Q and dO come LSE and O; past them a word of K, and one of P.
  io::Traffic P = resident_pass(head, block_q, s.dk, HeadShape::real(1), s.in(1)),
              dS = resident_pass(head, gradient_q, s.dv, s.in(s.dv) + dlse_words(1, dlse),
                                 HeadShape::real(1));
  P.writes = dS.writes = stored;
  dS.reads += stored;
  const Rank1Product tile{rows, columns};
  io::Traffic traffic = then(P, dS);
  traffic = then(traffic, band_product(head, dq_task(head, pairs), Adds::queries, tile));
  traffic = then(traffic, band_product(head, dk_task(head, pairs), Adds::keys, tile));
  return then(traffic, band_product(head, dv_task(head, pairs), Adds::keys, tile));
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

}  // namespace attest::schedules
