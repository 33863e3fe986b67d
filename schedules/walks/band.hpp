#pragma once

#include <cstdint>
#include <vector>

#include "schedules/engine/head.hpp"

/// Bands: the pairs of a batch entry that window, alignment and key lengths leave. Every query has
/// a band of keys, whose ends do not fall from query to query. A mask's own pairs are left out, but
/// for those whose rule has a hull (schedules/walks/mask_hull.hpp).
/// [schedules/walks/band_test]
namespace attest::schedules {

/// Returns the intersection of the ranges; where it is empty, an empty range within the second.
io::Range overlap(io::Range a, io::Range within);

/// Tells whether the bands of two queries can differ, or those of two keys (key lengths).
bool has_band(const ScoreRule& rule);

/// The keys from the first to the last that one of the queries sees; none if there are no queries.
io::Range keys_of(const ScoreRule& rule, io::Range queries);

/// Returns those of `queries` that see one of the keys.
io::Range queries_of(const ScoreRule& rule, io::Range queries, io::Range keys);

/// Returns those of `keys` that query i sees.
io::Range keys_within(const ScoreRule& rule, std::int64_t i, io::Range keys);

/// keys_of one after another, as ranges within which as many of the queries see each.
std::vector<io::Range> key_steps(const ScoreRule& rule, io::Range queries);

/// queries_of one after another, as ranges within which each sees as many of the keys.
std::vector<io::Range> query_steps(const ScoreRule& rule, io::Range queries, io::Range keys);

/// The most of the queries that see one key.
std::int64_t most_queries(const ScoreRule& rule, io::Range queries);

/// The most of the keys that one query sees; with a hull as many as a band has, or more.
std::int64_t most_keys(const ScoreRule& rule, io::Range queries, io::Range keys);

/// Pairs of one of the queries and a key of its band, or one of the keys in it. Cost: logarithmic
/// in the queries.
io::Words band_pairs(const ScoreRule& rule, io::Range queries);
io::Words band_pairs(const ScoreRule& rule, io::Range queries, io::Range keys);

/// How many of the queries, which come first, have a band that begins before a key, or that ends
/// with it or before.
std::int64_t begun_before(const ScoreRule& rule, io::Range queries, std::int64_t key);
std::int64_t ended_by(const ScoreRule& rule, io::Range queries, std::int64_t key_end);

/// Tells whether a block of queries, or of keys, meets neither end of the other side: blocks of as
/// many that do not are alike. False for a hull.
bool inner_queries(const ScoreRule& rule, io::Range queries);
bool inner_keys(const ScoreRule& rule, io::Range queries, io::Range keys);

/// Keys, or queries, that come one after another in pieces of so many. Pieces of one run are alike:
/// each of its pairs is visible, none of the other side begins in it or ends.
struct Pieces {
  io::Range range;
  std::int64_t length;
};

/// The keys of a block of queries, or the queries of a block of keys, in as few pieces as hold at
/// most `pairs` pairs with it, or are one key, or query.
/// Cost: of bands some microseconds a run. [schedules/walks/band_test "pieces"]
std::vector<Pieces> key_pieces(const ScoreRule& rule, io::Range queries, std::int64_t pairs);
std::vector<Pieces> query_pieces(const ScoreRule& rule, io::Range queries, io::Range keys,
                                 std::int64_t pairs);

/// Blocks of an extent as ranges within which all have bands of the same lengths.
std::vector<io::Range> alike_blocks(const ScoreRule& rule, std::int64_t extent, std::int64_t block);

/// function(block, how many of these there are) for the blocks of alike_blocks.
template <class Function>
void for_blocks(const ScoreRule& rule, std::int64_t extent, std::int64_t block,
                const Function& function) {
  if (extent == 0) return;
  const std::int64_t length = std::min(block, extent);
  if (!has_band(rule) && extent / length > 1) {
    function(io::Range{0, length}, io::Words(extent / length));
    if (extent % length != 0) function(io::Range{extent - extent % length, extent}, io::Words(1));
    return;
  }
  for (std::int64_t begin = 0; begin < extent; begin += length) {
    function(io::Range{begin, begin + std::min(length, extent - begin)}, io::Words(1));
  }
}

}  // namespace attest::schedules
