#include "gpu/register.hpp"

#include "gpu/watch.hpp"

namespace attest {

void register_gpu(Registry& registry) { register_emulated(registry); }

}  // namespace attest
