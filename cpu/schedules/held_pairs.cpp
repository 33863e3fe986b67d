#include "cpu/schedules/held_pairs.hpp"

#include <algorithm>

#include "cpu/schedules/direction_of.hpp"
#include "cpu/schedules/search.hpp"

namespace attest::cpu {

HeldPairs::Piece HeldPairs::piece_of(const ScoreRule& rule, io::Range queries, io::Range block) {
  const io::Range keys = overlap(keys_of(rule, queries), block);
  const std::int64_t before = queries.begin - 1;
  return {queries, keys, begun_before(rule, queries, block.begin),
          before < 0 ? 0 : keys_within(rule, before, keys).count()};
}

std::vector<io::Range> HeldPairs::key_blocks(const BackwardHead& head) const {
  const std::int64_t k = head.K.rows();
  if (has_band(head.rule)) return io::single_blocks(k, block_k);
  if (k <= block_k) return {{0, k}};
  return {{0, block_k}, {block_k, k}};
}

std::vector<io::Range> HeldPairs::idle_queries(const ScoreRule& rule, io::Range queries) {
  const io::Range seeing = queries_of(rule, queries, keys_of(rule, queries));
  return {{queries.begin, seeing.begin}, {seeing.end, queries.end}};
}

std::int64_t HeldPairs::most_pairs(const ScoreRule& rule, io::Range queries) const {
  const std::int64_t all = band_pairs(rule, queries).value();
  const std::int64_t at_least = std::min(rule.batch.k_length, block_k);  // one query's
  return std::min(all, std::max(held, at_least));
}

io::Traffic HeldPairs::piece_cost(const BackwardHead& head, const HeadShape& s,
                                  const Piece& piece) const {
  const io::Words r = piece.queries.count(), n = piece.keys.count(),
                  f = piece.new_queries().count(), g = piece.new_keys().count(),
                  z = band_pairs(head.rule, piece.queries, piece.keys), both = s.dk + s.dv;
  const bool continued = head.sums == Sums::continued;
  const auto stream = [](io::Amount word, bool any) { return any ? word : io::Amount{}; };
  io::Traffic traffic;
  traffic.reads = s.in(r * 2 * both + f * s.dv + (r - f) * s.dk + n * (2 * s.dk + s.dv)) +
                  s.sums((n - g) * both) + HeadShape::real(r + (r - f) + z) + dlse_words(f, dlse) +
                  HeadShape::real(continued ? g * both : io::Words(0));
  traffic.writes = s.in(r * s.dk) + s.sums(n * both) + HeadShape::real(z + f);
  const io::Amount sums =
      HeadShape::real(n) +
      io::larger(s.in(1), io::larger(stream(s.sums(1), n > g),
                                     stream(HeadShape::real(1), continued && g > 0)));
  const io::Amount delta = HeadShape::real(f) + io::larger(s.in(n + 2), HeadShape::real(2));
  const io::Amount column = s.in(n) + HeadShape::real(1);
  traffic.peak = HeadShape::real(z) + io::larger(io::larger(sums, delta), column);
  return traffic;
}

io::Traffic HeldPairs::block_cost(const BackwardHead& head, const HeadShape& s,
                                  io::Range keys) const {
  const io::Range queries = all_rows(head.Q);
  const io::Range block = overlap(keys_of(head.rule, queries), keys);
  const io::Words idle = keys.count() - block.count(), both = s.dk + s.dv;
  io::Traffic traffic;
  if (idle > 0) {
    const bool continued = head.sums == Sums::continued;
    traffic = {HeadShape::real(continued ? idle * both : io::Words(0)), s.sums(idle * both),
               HeadShape::real(both)};
  }
  for (const Pieces& pieces : query_pieces(head.rule, queries, block, held)) {
    const io::Range first{pieces.range.begin, pieces.range.begin + pieces.length};
    const io::Words count = pieces.range.count() / pieces.length;
    io::Traffic piece = piece_cost(head, s, piece_of(head.rule, first, block));
    piece.reads = count * piece.reads;
    piece.writes = count * piece.writes;
    traffic = then(traffic, piece);
  }
  return traffic;
}

io::Traffic HeldPairs::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const io::Range queries = all_rows(head.Q);
  io::Traffic traffic, inner;
  std::int64_t inner_count = 0;  // keys of the block whose traffic `inner` is
  const auto add = [&](io::Range keys, io::Words blocks) {
    if (keys.count() == 0) return;
    // Away from the ends of the queries one block of a window is like another.
    const bool alike = inner_keys(head.rule, queries, keys);
    if (!alike || keys.count() != inner_count) {
      inner = block_cost(head, s, keys);
      inner_count = alike ? keys.count() : 0;
    }
    io::Traffic all = inner;
    all.reads = blocks * all.reads;
    all.writes = blocks * all.writes;
    traffic = then(traffic, all);
  };
  for (const io::Range& blocks : key_blocks(head)) {
    const std::int64_t whole = blocks.count() / block_k, end = blocks.begin + whole * block_k;
    if (whole > 0) add({blocks.begin, blocks.begin + block_k}, whole);
    add({end, blocks.end}, 1);
  }
  for (const io::Range& idle : idle_queries(head.rule, queries)) {
    if (idle.count() == 0) continue;
    traffic = then(traffic, {{}, s.in(idle.count() * s.dk), HeadShape::real(s.dk)});
  }
  return traffic;
}

void HeldPairs::fit(HeldPairs& schedule, const attest_problem& problem, io::FastMemory capacity) {
  fit_held({&schedule.block_k, extent_of(problem, Extent::keys)},
           {&schedule.held, extent_of(problem, Extent::pairs)}, capacity,
           [&] { return heads_cost(schedule, problem); });
}

}  // namespace attest::cpu
