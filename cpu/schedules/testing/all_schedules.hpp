#pragma once

#include "io/schedule.hpp"

namespace attest::cpu::testing {

/// Every schedule that this library registers.
const io::ScheduleRegistry& schedules();

}  // namespace attest::cpu::testing
