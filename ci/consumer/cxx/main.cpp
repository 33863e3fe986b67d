#include <core/abi/attest_kernel.h>

#include <core/dtype/dtype.hpp>
#include <core/registry.hpp>
#include <cpu/register.hpp>
#include <cstdint>
#include <cstdio>

// Succeeds only if the installed headers and libraries work together: the built-in kernels register
// and a conversion gives the known pattern of 1.
int main() {
  attest::Registry registry;
  attest::register_cpu(registry);
  const std::uint16_t one = attest::bf16_from_float(1.0f);
  std::printf("bf16(1) = 0x%04x\n", static_cast<unsigned>(one));
  return one == 0x3f80 ? 0 : 1;
}
