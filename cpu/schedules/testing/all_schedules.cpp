#include "cpu/schedules/testing/all_schedules.hpp"

#include "cpu/register.hpp"

namespace attest::cpu::testing {

const io::ScheduleRegistry& schedules() {
  static const io::ScheduleRegistry registry = [] {
    io::ScheduleRegistry all;
    register_cpu_schedules(all);
    return all;
  }();
  return registry;
}

}  // namespace attest::cpu::testing
