#pragma once

#include <cstdint>
#include <vector>

#include "cpu/schedules/rolling_visits.hpp"

namespace attest::cpu {

/// The queries or the keys of a boolean mask, each once, in an order in which those that see the
/// same visitors lie close together. Rows that see the same ones follow each other; such classes
/// are put in order by threshold accepting (Dueck and Scheuer 1990) that begins with their natural
/// order, for the fewest visits of a rolling buffer of `length` rows, guided by the sum of the
/// logarithms of the distances between those that a visitor sees one after the other (Chierichetti
/// et al. 2009, "On compressing social networks"). The logarithms are harmonic numbers, in
/// integers, so that the order is the same on every machine.
///
/// The classes as they come where the search has no time for so many; nothing without a boolean
/// mask, or beyond kMostListedPairs. Requires: length >= 1.
/// Cost: time linear in the mask, and up to some 10^9 additions for the search.
/// [cpu/schedules/resident_order_test]
std::vector<std::int64_t> resident_order(const attest_problem& problem, Residents residents,
                                         std::int64_t length);

}  // namespace attest::cpu
