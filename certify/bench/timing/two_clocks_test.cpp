#include "certify/bench/timing/two_clocks.hpp"

#include <thread>

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kMilli = 1'000'000;
std::int64_t now = 0;  // of clocks that are set by hand

TEST_CASE("clocks that run alike agree", "[bench]") {
  TwoClocks clocks;
  for (int call = 0; call < 3; ++call) {
    clocks.start();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(clocks.stop() > 0);
  }
  CHECK(clocks.disagreement().empty());
  CHECK(TwoClocks().disagreement().empty());  // without a call
}

TEST_CASE("a clock that was slowed down or sped up disagrees", "[bench]") {
  const TwoClocks::Clock real = [] { return now; };
  const auto disagrees = [&](TwoClocks::Clock changed) {
    TwoClocks clocks(changed, real);
    clocks.start();
    now += 10 * kMilli;
    clocks.stop();
    return !clocks.disagreement().empty();
  };
  CHECK(disagrees([] { return now / 2; }));
  CHECK(disagrees([] { return now - now / 50; }));
  CHECK(disagrees([] { return now + now / 50; }));
  CHECK(disagrees([] { return std::int64_t{0}; }));
  CHECK_FALSE(disagrees([] { return now; }));
  CHECK_FALSE(disagrees([] { return now - now / 1000; }));  // as clocks are adjusted
}

TEST_CASE("an interruption between two readings is no disagreement", "[bench]") {
  // Every reading takes as long as the call.
  const TwoClocks::Clock slow = [] { return now += 10 * kMilli; };
  TwoClocks clocks(slow, slow);
  clocks.start();
  now += 10 * kMilli;
  clocks.stop();
  CHECK(clocks.disagreement().empty());
}

}  // namespace
}  // namespace attest::certify
