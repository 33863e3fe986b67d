// Every law over every emulated CUDA kernel.
#include "gpu/watch.hpp"
#include "proptest/testing/every_law.hpp"

namespace attest::proptest {
namespace {

TEST_CASE("every law holds for every emulated kernel", "[laws]") {
  constexpr std::uint64_t kCases = 12;
  Registry registry;
  register_emulated(registry);
  check_every_law(registry, kCases);
}

}  // namespace
}  // namespace attest::proptest
