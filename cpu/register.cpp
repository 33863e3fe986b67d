#include "cpu/register.hpp"

#include "cpu/kernels/kernel.hpp"

namespace attest {

void register_cpu(Registry& registry) {
  registry.add(&cpu::standard_kernel());
  registry.add(&cpu::flash2_kernel());
  registry.add(&cpu::loss_gradient_kernel());
}

}  // namespace attest
