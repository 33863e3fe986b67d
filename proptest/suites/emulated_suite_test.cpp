// Every law over every emulated CUDA kernel, each case in one order of lanes and blocks.
#include <set>
#include <utility>

#include "core/testing/nightly.hpp"
#include "gpu/watch.hpp"
#include "proptest/testing/every_law.hpp"

namespace attest::proptest {
namespace {

const std::uint64_t kCases = attest::testing::is_nightly() ? 9 : 3;

// By the case and the law, so that few cases take every order.
std::size_t order_of(const Law& law, const Case& c) {
  const auto place = static_cast<std::uint64_t>(&law - laws().data());
  return (c.seed + place) % emulation_orders().size();
}

LawResult check_in_an_order(const Law& law, const attest_kernel& kernel, const Case& c) {
  LawResult result;
  watch_launches(order_of(law, c), SharedMemoryChecks::off, [&] { result = law.check(kernel, c); });
  return result;
}

TEST_CASE("the checks of every emulated kernel take every order", "[laws]") {
  Registry registry;
  register_emulated(registry);
  for (const attest_kernel* kernel : registry.kernels()) {
    std::set<std::size_t> taken;
    for (std::uint64_t index = 0; index < kCases; ++index) {
      const Case c = generate(kernel->description, Tier::smoke, kSuiteSeed, index);
      for (const Law& law : laws()) {
        if (concerns(law, kernel->description)) taken.insert(order_of(law, c));
      }
    }
    INFO(kernel->description.name);
    CHECK(taken.size() == emulation_orders().size());
  }
}

TEST_CASE("every law holds for every emulated kernel", "[laws]") {
  Registry registry;
  register_emulated(registry);
  check_every_law(registry, kCases, check_in_an_order);
}

// In a tile a weight of 0 meets the V of keys that other rows see.
TEST_CASE("NaN in hidden keys of a tile reach a row of gpu/flash2, none of gpu/flash2_nonfinite",
          "[laws]") {
  Registry registry;
  register_emulated(registry);
  for (const auto& [name, verdict] :
       {std::pair{"gpu/flash2", Verdict::violated}, {"gpu/flash2_nonfinite", Verdict::passed}}) {
    attest_kernel kernel = registry.find(name);
    kernel.description.features |= ATTEST_NONFINITE;
    kernel.description.features &= ~std::uint32_t{ATTEST_BIAS};
    for (const char* text :
         {"hq=2,sq=37,sk=70,d=9,mask=causal_br", "hq=2,hkv=1,sq=40,d=33,dv=5,mask=window_3_0"}) {
      INFO(name << " " << text);
      const Case c{Problem::parse(text), Values::normal, 5, 1};
      CHECK(find_law("hidden_nonfinite").check(kernel, c).verdict == verdict);
    }
  }
}

// Two and a half minutes: ci/nightly asks for it.
TEST_CASE("every law holds for kernels with tiles of other sizes", "[.][capped]") {
  Registry registry;
  register_capped(registry);
  check_every_law(registry, kCases, check_in_an_order);
}

}  // namespace
}  // namespace attest::proptest
