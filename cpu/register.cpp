#include "cpu/register.hpp"

#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/vectors/target.hpp"

namespace attest {

void register_cpu(Registry& registry) {
  cpu::target_name();  // throws before a kernel is listed
  registry.add(&cpu::standard_kernel());
  registry.add(&cpu::flash2_kernel(), cpu::flash2_counted());
  registry.add(&cpu::flash2_bf16_kernel(), cpu::flash2_bf16_counted());
  registry.add(&cpu::loss_gradient_kernel());
}

const std::string& cpu_target() { return cpu::target_name(); }

}  // namespace attest
