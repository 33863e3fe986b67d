// Every law over every emulated CUDA kernel.
#include "gpu/watch.hpp"
#include "proptest/testing/every_law.hpp"

namespace attest::proptest {
namespace {

constexpr std::uint64_t kCases = 9;

TEST_CASE("every law holds for every emulated kernel", "[laws]") {
  Registry registry;
  register_emulated(registry);
  check_every_law(registry, kCases);
}

// Two and a half minutes: ci/nightly asks for it.
TEST_CASE("every law holds for kernels with tiles of other sizes", "[.][capped]") {
  Registry registry;
  register_capped(registry);
  check_every_law(registry, kCases);
}

}  // namespace
}  // namespace attest::proptest
