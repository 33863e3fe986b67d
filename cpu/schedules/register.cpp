#include "cpu/register.hpp"

#include "cpu/schedules/family.hpp"
#include "cpu/schedules/flash2.hpp"
#include "cpu/schedules/standard.hpp"

namespace attest {
namespace {

template <class S>
void add(io::ScheduleRegistry& registry) {
  registry.add(std::make_unique<cpu::Family<S>>());
}

}  // namespace

void register_cpu_schedules(io::ScheduleRegistry& registry) {
  add<cpu::Standard>(registry);
  add<cpu::Flash2>(registry);
}

}  // namespace attest
