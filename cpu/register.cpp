#include "cpu/register.hpp"

#include "cpu/kernels/kernel.hpp"
#include "cpu/schedules/kernel.hpp"

namespace attest {

void register_cpu(Registry& registry) {
  registry.add(&cpu::standard_kernel());
  registry.add(&cpu::flash2_kernel());
  registry.add(&cpu::loss_gradient_kernel());
}

void register_cpu_schedule_kernels(Registry& registry) {
  for (const attest_kernel* kernel : cpu::schedule_kernels()) registry.add(kernel);
}

}  // namespace attest
