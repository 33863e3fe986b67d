#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/kernel_call.hpp"
#include "io/schedule/schedule.hpp"

/// Random small problems and schedules for them.
namespace attest::schedules::testing {

/// Ragged extents, some of them 0, up to three batch entries and heads, any mask and score rule
/// that schedules of the direction take.
Problem random_problem(Rng& rng, Direction direction);

/// A spelling of the family with every parameter given, some tiles larger than the extents.
std::string random_schedule(Rng& rng, const io::ScheduleFamily& family,
                            std::int64_t largest_tile = 12);

/// Tells whether a spelling asks for a gradient of LSE.
attest::testing::Dlse dlse_of(const std::string& schedule);

/// Counts a schedule and checks that counted = dry counted = closed form, that the peak of the
/// closed form is capacity enough, in words and in bytes, and that one word less is refused.
template <class Arguments>
void check_counts(const io::Schedule& schedule, const Arguments& args);

/// One small head with a window, a causal mask or key lengths, or without a mask.
Problem random_band(Rng& rng);

/// The fewest words that a schedule with a block and what is held beside it moves in fast memory of
/// so many words: of all values, and of each block with the most that fits.
struct LeastWords {
  io::Words of_all, with_most_held;
};
LeastWords least_held_words(
    std::int64_t extent, io::FastMemory capacity,
    const std::function<io::Traffic(std::int64_t block, std::int64_t held)>& cost);

}  // namespace attest::schedules::testing
