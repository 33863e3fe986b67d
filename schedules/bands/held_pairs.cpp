#include "schedules/bands/held_pairs.hpp"

#include "schedules/engine/direction_of.hpp"
#include "schedules/engine/search.hpp"

namespace attest::schedules {
namespace {

// The sums of a piece's keys pass through a column of them: `into` of a result, beside `rows`.
io::Amount key_sums_peak(const BackwardHead& head, const HeadShape& s,
                         const KeyBlocks::Piece& piece) {
  io::Amount word = s.in(1);
  if (piece.old_keys().count() > 0) word = io::larger(word, s.sums(1));
  if (head.sums == Sums::continued && piece.new_keys().count() > 0) {
    word = io::larger(word, HeadShape::real(1));
  }
  return HeadShape::real(piece.keys.count()) + word;
}

// Returns what sums of `columns` words begin with for new keys.
io::Amount before(const BackwardHead& head, io::Words keys, io::Words columns) {
  return HeadShape::real(head.sums == Sums::continued ? keys * columns : io::Words(0));
}

}  // namespace

std::vector<io::Range> HeldPairs::idle_queries(const BackwardHead& head) {
  const io::Range queries = all_rows(head.Q);
  const io::Range seeing = queries_of(head.rule, queries, keys_of(head.rule, queries));
  return {{queries.begin, seeing.begin}, {seeing.end, queries.end}};
}

io::Traffic HeldPairs::probabilities_cost(const BackwardHead& head, const Piece& piece) {
  const HeadShape s = shape_of(head);
  const io::Words r = piece.queries.count(), n = piece.keys.count(), g = piece.new_keys().count(),
                  z = band_pairs(head.rule, piece.queries, piece.keys);
  const io::Amount scores = io::larger(s.in(n + 1), HeadShape::real(1));
  return {s.in(r * (s.dk + s.dv) + n * s.dk) + s.sums((n - g) * s.dv) + HeadShape::real(r) +
              before(head, g, s.dv),
          s.sums(n * s.dv) + HeadShape::real(z),
          HeadShape::real(z) + io::larger(scores, key_sums_peak(head, s, piece))};
}

io::Traffic HeldPairs::gradients_cost(const BackwardHead& head, const Piece& piece) const {
  const HeadShape s = shape_of(head);
  const io::Words r = piece.queries.count(), n = piece.keys.count(),
                  f = piece.new_queries().count(), g = piece.new_keys().count(),
                  z = band_pairs(head.rule, piece.queries, piece.keys);
  const io::Amount delta = HeadShape::real(f) + io::larger(s.in(n + 2), HeadShape::real(2));
  const io::Amount dQ = s.in(n) + HeadShape::real(1);
  return {s.in(r * (s.dk + s.dv) + f * s.dv + (r - f) * s.dk + n * (s.dk + s.dv)) +
              s.sums((n - g) * s.dk) + HeadShape::real((r - f) + z) + dlse_words(f, dlse) +
              before(head, g, s.dk),
          s.in(r * s.dk) + s.sums(n * s.dk) + HeadShape::real(f),
          HeadShape::real(z) + io::larger(io::larger(delta, dQ), key_sums_peak(head, s, piece))};
}

io::Traffic HeldPairs::pass_cost(const BackwardHead& head, Pass pass) const {
  const HeadShape s = shape_of(head);
  const bool first = pass == Pass::probabilities;
  const io::Words columns = first ? s.dv : s.dk;
  const KeyBlocks blocks = first ? KeyBlocks{block_k, held} : KeyBlocks{gradient_k, gradients_held};
  return blocks.cost(
      head,
      [&](const Piece& piece) {
        return first ? probabilities_cost(head, piece) : gradients_cost(head, piece);
      },
      [&](io::Words keys) -> io::Traffic {
        return {before(head, keys, columns), s.sums(keys * columns), HeadShape::real(1)};
      });
}

io::Traffic HeldPairs::cost(const BackwardHead& of) const {
  const Banded banded(of, hull);
  const BackwardHead& head = banded.head();
  const HeadShape s = shape_of(head);
  io::Traffic traffic =
      then(pass_cost(head, Pass::probabilities), pass_cost(head, Pass::gradients));
  for (const io::Range& idle : idle_queries(head)) {
    if (idle.count() == 0) continue;
    traffic = then(traffic, {{}, s.in(idle.count() * s.dk), HeadShape::real(1)});
  }
  return traffic;
}

struct HeldPairs::OfPass {
  using Head = BackwardHead;
  const HeldPairs& schedule;
  Pass pass;

  io::Traffic cost(const BackwardHead& head) const {
    return schedule.pass_cost(Banded(head, schedule.hull).head(), pass);
  }
};

void HeldPairs::fit(HeldPairs& schedule, const attest_problem& problem, io::FastMemory capacity) {
  const attest_problem shorter = shortened(problem);
  const std::int64_t keys = extent_of(shorter, Extent::keys),
                     pairs = extent_of(problem, Extent::pairs);
  const auto cost_of = [&](Pass pass, const attest_problem& of) {
    return [&, pass] { return heads_cost(OfPass{schedule, pass}, of); };
  };
  fit_held({&schedule.block_k, keys}, {&schedule.held, pairs}, capacity,
           cost_of(Pass::probabilities, shorter), cost_of(Pass::probabilities, problem));
  fit_held({&schedule.gradient_k, keys}, {&schedule.gradients_held, pairs}, capacity,
           cost_of(Pass::gradients, shorter), cost_of(Pass::gradients, problem));
}

}  // namespace attest::schedules
