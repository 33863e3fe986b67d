#include "schedules/walks/key_blocks.hpp"

namespace attest::schedules {

KeyBlocks::Piece KeyBlocks::piece_of(const ScoreRule& rule, io::Range queries, io::Range block) {
  const io::Range keys = overlap(keys_of(rule, queries), block);
  const std::int64_t before = queries.begin - 1;
  return {queries, keys, begun_before(rule, queries, block.begin),
          before < 0 ? 0 : keys_within(rule, before, keys).count()};
}

std::vector<io::Range> KeyBlocks::ranges(const BackwardHead& head) const {
  const std::int64_t k = head.K.rows();
  if (has_band(head.rule)) return io::single_blocks(k, keys);
  if (k <= keys) return {{0, k}};
  return {{0, keys}, {keys, k}};
}

io::Traffic KeyBlocks::cost(const BackwardHead& head,
                            const std::function<io::Traffic(const Piece&)>& of_piece,
                            const std::function<io::Traffic(io::Words keys)>& of_idle) const {
  const io::Range queries = all_rows(head.Q), seen = keys_of(head.rule, queries);
  const auto of_block = [&](io::Range all) {
    const io::Range block = overlap(seen, all);
    io::Traffic traffic;
    if (block.count() < all.count()) traffic = of_idle(all.count() - block.count());
    for (const Pieces& pieces : query_pieces(head.rule, queries, block, held)) {
      const io::Range first{pieces.range.begin, pieces.range.begin + pieces.length};
      const io::Words count = pieces.range.count() / pieces.length;
      traffic = then(traffic, times(count, of_piece(piece_of(head.rule, first, block))));
    }
    return traffic;
  };
  io::Traffic traffic, inner;
  std::int64_t inner_count = 0;  // keys of the block whose traffic `inner` is
  const auto add = [&](io::Range block, io::Words blocks) {
    if (block.count() == 0) return;
    // Away from the ends of the queries one block of a window is like another.
    const bool alike = inner_keys(head.rule, queries, block);
    if (!alike || block.count() != inner_count) {
      inner = of_block(block);
      inner_count = alike ? block.count() : 0;
    }
    traffic = then(traffic, times(blocks, inner));
  };
  for (const io::Range& blocks : ranges(head)) {
    const std::int64_t whole = blocks.count() / keys, end = blocks.begin + whole * keys;
    if (whole > 0) add({blocks.begin, blocks.begin + keys}, whole);
    add({end, blocks.end}, 1);
  }
  return traffic;
}

}  // namespace attest::schedules
