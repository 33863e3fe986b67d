#include "schedules/register.hpp"

#include "schedules/dense/kernel.hpp"
#include "schedules/lists/kernel.hpp"

namespace attest {

const io::ScheduleRegistry& all_schedules() {
  static const io::ScheduleRegistry all = [] {
    io::ScheduleRegistry registry;
    register_dense_schedules(registry);
    register_list_schedules(registry);
    return registry;
  }();
  return all;
}

void register_dense_schedule_kernels(Registry& registry) {
  for (const attest_kernel* kernel : schedules::dense_schedule_kernels()) registry.add(kernel);
}

void register_list_schedule_kernels(Registry& registry) {
  for (const attest_kernel* kernel : schedules::list_schedule_kernels()) registry.add(kernel);
}

}  // namespace attest
