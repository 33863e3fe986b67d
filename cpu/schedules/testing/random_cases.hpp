#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "cpu/testing/call.hpp"
#include "io/schedule.hpp"

/// Random small problems and schedules for them.
namespace attest::cpu::testing {

/// Ragged extents, some of them 0, up to three batch entries and heads, any mask and score rule
/// that schedules of the direction take.
Problem random_problem(Rng& rng, io::Direction direction);

/// A spelling of the family with every parameter given, some tiles larger than the extents.
std::string random_schedule(Rng& rng, const io::ScheduleFamily& family,
                            std::int64_t largest_tile = 12);

/// Whether a spelling asks for a gradient of LSE.
Dlse dlse_of(const std::string& schedule);

/// Counts a schedule and checks that counted = dry counted = closed form, that the peak of the
/// closed form is capacity enough, in words and in bytes, and that one word less is refused.
template <class Arguments>
void check_counts(const io::Schedule& schedule, const Arguments& args);

}  // namespace attest::cpu::testing
