#include "sparse/kernels/kernel.hpp"

#include <exception>

#include "cpu/kernels/kernel.hpp"
#include "sparse/kernels/backward.hpp"
#include "sparse/kernels/forward.hpp"
#include "sparse/kernels/lists/listed_mask.hpp"

namespace attest::sparse {
namespace {

// The lists of tasks may not fit into memory.
template <class Arguments>
attest_status status_of(void (*call)(const Arguments&), Arguments args) {
  if (cpu::supported(*args.problem) != ATTEST_OK) return ATTEST_UNSUPPORTED;
  try {
    const ListedMask listed(*args.problem);
    args.problem = &listed.problem();
    call(args);
    return ATTEST_OK;
  } catch (const std::exception&) {
    return ATTEST_FAILED;
  }
}

attest_kernel kernel(const char* name, const char* summary, std::uint32_t mask) {
  attest_kernel k{};
  k.struct_size = sizeof k;
  k.abi_version = ATTEST_ABI_VERSION;
  k.description = cpu::common_description(name, summary, nullptr);
  k.description.features &= ~static_cast<std::uint32_t>(ATTEST_BOOLEAN_MASK);
  k.description.features |= mask;
  k.workspace_bytes = [](const void*, const attest_problem* problem, std::uint32_t direction) {
    const std::int64_t floats =
        direction == ATTEST_BACKWARD ? backward_floats(*problem) : forward_floats(*problem);
    return static_cast<std::size_t>(floats) * sizeof(float);
  };
  k.forward = [](const void*, const attest_forward_args* args) {
    return status_of(forward, *args);
  };
  k.backward = [](const void*, const attest_backward_args* args) {
    return status_of(backward, *args);
  };
  return k;
}

}  // namespace

const attest_kernel& block_flash2_kernel() {
  static const attest_kernel k =
      kernel("sparse/block_flash2",
             "tiled online softmax over the tiles of a block mask; backward in one pass or two",
             ATTEST_BLOCK_MASK);
  return k;
}

const attest_kernel& csr_gather_kernel() {
  static const attest_kernel k =
      kernel("sparse/csr_gather",
             "online softmax over dense tiles and gathered keys; backward in one pass or two",
             ATTEST_CSR_MASK | ATTEST_BOOLEAN_MASK);
  return k;
}

}  // namespace attest::sparse
