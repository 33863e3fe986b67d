#pragma once

#include <cstdint>
#include <string>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "io/schedule/schedule.hpp"

/// Random small problems with a pattern, and what lists of their tiles hold, pair by pair.
namespace attest::schedules::testing {

/// Ragged extents, some of them 0; a pattern of any family, some empty, some under a causal mask,
/// or a band; several heads, groups and batch entries, any score rule that schedules of the
/// direction take.
Problem random_pattern_problem(Rng& rng, Direction direction);

/// One that the family takes.
Problem random_problem_for(Rng& rng, const io::ScheduleFamily& family);

/// The schedules of this room.
const io::ScheduleRegistry& sparse_schedules();

/// Counts of one batch entry, from looking at every pair: tiles with a visible pair, and 32-bit
/// words for the pairs of those with a masked one.
struct ListWords {
  std::int64_t tiles = 0, bits = 0;
  std::int64_t query_blocks = 0, key_blocks = 0, idle_query_blocks = 0;
};
ListWords list_words(const Problem& problem, const Sequence& sequence, std::int64_t block_q,
                     std::int64_t block_k);

}  // namespace attest::schedules::testing
