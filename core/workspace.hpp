#pragma once

#include <cstddef>
#include <cstdint>

#include "core/abi/attest_kernel.h"

namespace attest {

/// Returns the bytes of workspace that a kernel asks for; 0 where it asks for none.
inline std::size_t workspace_bytes_of(const attest_kernel& kernel, const attest_problem& problem,
                                      std::uint32_t direction) {
  if (kernel.workspace_bytes == nullptr) return 0;
  return kernel.workspace_bytes(kernel.self, &problem, direction);
}

}  // namespace attest
