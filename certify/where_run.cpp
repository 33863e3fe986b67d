#include "certify/where_run.hpp"

#include "gpu/register.hpp"

namespace attest::certify {

std::string_view where_run(const attest_description& description) {
  if (description.device == ATTEST_CUDA) return "on a CUDA device";
  return is_emulated(description.name) ? "emulated on the host" : "on the CPU";
}

}  // namespace attest::certify
