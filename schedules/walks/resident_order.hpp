#pragma once

#include <cstdint>
#include <vector>

#include "schedules/bands/rolling_visits.hpp"

namespace attest::schedules {

/// The queries or the keys of a boolean mask, each once, in an order in which those that see the
/// same visitors lie close together. Rows that see the same ones follow each other; such classes
/// are put in order by threshold accepting (Dueck and Scheuer 1990) that begins with their natural
/// order, for the fewest visits of a buffer of `length` rows with a gap, guided by the sum of the
/// logarithms of the distances between those that a visitor sees one after the other (Chierichetti
/// et al. 2009, "On compressing social networks"). The logarithms are harmonic numbers, in
/// integers, so that the order is the same on every machine.
///
/// The classes as they come where the search has no time for so many; nothing without a boolean
/// mask, or beyond kMostListedPairs. Requires: length >= 1, gap >= 0.
/// Cost: time linear in the mask, and up to some 10^9 additions for the search.
/// [schedules/walks/resident_order_test]
std::vector<std::int64_t> resident_order(const attest_problem& problem, Residents residents,
                                         std::int64_t length, std::int64_t gap = 0);

/// The residents of a boolean mask in its blocks, classes that see the same visitors: as many as
/// are in the block in the middle, by size; 0 without a boolean mask, or beyond kMostListedPairs.
/// [schedules/walks/resident_order_test "gaps"]
/// Cost: time linear in the mask.
std::int64_t middle_block(const attest_problem& problem, Residents residents);

/// The gap of a buffer that blocks only just do not fit side by side: twice the rows that are
/// missing, so that a visit that begins as many before the end of a block still reaches that of
/// another. 0 where more than a 32nd of the buffer is missing, or nothing. Each row of a gap enters
/// and leaves several times for every block.
///
/// Requires: length >= 1, block >= 0.
std::int64_t gap_to_blocks(std::int64_t length, std::int64_t block);

}  // namespace attest::schedules
