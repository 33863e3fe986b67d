#include "sparse/register.hpp"

#include "sparse/kernels/kernel.hpp"
#include "sparse/schedules/kernel.hpp"

namespace attest {

void register_sparse(Registry& registry) {
  registry.add(&sparse::block_flash2_kernel());
  registry.add(&sparse::csr_gather_kernel());
}

void register_sparse_schedule_kernels(Registry& registry) {
  for (const attest_kernel* kernel : sparse::schedule_kernels()) registry.add(kernel);
}

}  // namespace attest
