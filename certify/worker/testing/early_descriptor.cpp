// A worker that has a file open before it serves, as one has where CUDA was asked for devices. Its
// kernel fails where that file is closed, or where one of the certifier's is open.
#include "certify/worker/testing/early_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "certify/worker/process/serve.hpp"

namespace {

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

attest_status forward(const void* self, const attest_forward_args*) {
  using attest::certify::worker::testing::kInherited;
  return is_open(*static_cast<const int*>(self)) && !is_open(kInherited) ? ATTEST_OK
                                                                         : ATTEST_FAILED;
}

}  // namespace

int main(int, char** words) {
  int early = open("/dev/null", O_RDONLY);
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  kernel.description.struct_size = sizeof kernel.description;
  kernel.description.name = "early_descriptor";
  kernel.description.device = ATTEST_CPU;
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.dtypes = 1U << ATTEST_F32;
  kernel.description.numerics.struct_size = sizeof kernel.description.numerics;
  kernel.self = &early;
  kernel.forward = forward;
  return attest::certify::worker::serve([&] { return std::vector<const attest_kernel*>{&kernel}; },
                                        words[0]);
}
