#include "sparse/register.hpp"

#include "sparse/kernels/kernel.hpp"

namespace attest {

void register_sparse(Registry& registry) {
  registry.add(&sparse::block_flash2_kernel());
  registry.add(&sparse::csr_gather_kernel());
}

}  // namespace attest
