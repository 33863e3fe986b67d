#include "gpu/runtime/runtime_major.hpp"

namespace attest::gpu::runtime {

int runtime_major() { return ATTEST_CUDART_MAJOR; }

}  // namespace attest::gpu::runtime
