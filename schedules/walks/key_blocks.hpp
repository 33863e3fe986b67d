#pragma once

#include <functional>
#include <vector>

#include "schedules/walks/band.hpp"

namespace attest::schedules {

/// Blocks of keys, of each the queries that see one in pieces of at most `held` pairs: the order in
/// which schedules/bands/held_pairs.hpp meets the pairs of a band, every pair once.
/// [schedules/bands/held_pairs_test]
struct KeyBlocks {
  std::int64_t keys, held;

  /// Some queries of a block of keys, and the keys that they see: those before `fresh_keys` are
  /// seen by earlier queries; queries before `fresh` saw keys of earlier blocks.
  struct Piece {
    io::Range queries, keys;
    std::int64_t fresh, fresh_keys;

    io::Range old_queries() const { return {queries.begin, queries.begin + fresh}; }
    io::Range new_queries() const { return {queries.begin + fresh, queries.end}; }
    io::Range old_keys() const { return {keys.begin, keys.begin + fresh_keys}; }
    io::Range new_keys() const { return {keys.begin + fresh_keys, keys.end}; }
  };

  /// piece(Piece) for each piece, idle(keys) for keys that nobody sees.
  template <class M, class OfPiece, class OfIdle>
  void visit(M& machine, const BackwardHead& head, const OfPiece& piece, const OfIdle& idle) const {
    const io::Range queries = all_rows(head.Q), seen = keys_of(head.rule, queries);
    for (const io::Range& blocks : ranges(head)) {
      machine.for_tiles(blocks, keys, [&](io::Range all) {
        const io::Range block = overlap(seen, all);
        idle(io::Range{all.begin, block.begin});
        idle(io::Range{block.end, all.end});
        for (const Pieces& pieces : query_pieces(head.rule, queries, block, held)) {
          machine.for_tiles(pieces.range, pieces.length,
                            [&](io::Range part) { piece(piece_of(head.rule, part, block)); });
        }
      });
    }
  }

  /// The sum over all pieces, and over keys that nobody sees, so many at once.
  io::Traffic cost(const BackwardHead& head,
                   const std::function<io::Traffic(const Piece&)>& of_piece,
                   const std::function<io::Traffic(io::Words keys)>& of_idle) const;

 private:
  static Piece piece_of(const ScoreRule& rule, io::Range queries, io::Range block);

  // The blocks; without a band those that are alike together.
  std::vector<io::Range> ranges(const BackwardHead& head) const;
};

}  // namespace attest::schedules
