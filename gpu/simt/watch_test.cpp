#include "gpu/simt/watch.hpp"

#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/simt/emulation.hpp"

namespace attest::simt {
namespace {

// Each lane says its number; lanes beyond the first miss the barrier in half of the launches.
void kernel(std::vector<int>* order, bool careless) {
  order->push_back(static_cast<int>(threadIdx.x));
  if (careless && threadIdx.x == 0) return;
  if (careless && threadIdx.x == 1) {
    __syncwarp(0x2);
    __syncthreads();
  } else {
    __syncthreads();
  }
}

LaunchReport launch_lanes(std::vector<int>& order, bool careless) {
  Emulation ascending;
  return launch({{1, 1, 1}, {3, 1, 1}, 0}, ascending, GlobalMemory{}, kernel, &order, careless);
}

TEST_CASE("a watch changes the order of launches and keeps what they report", "[simt]") {
  std::vector<int> alone, watched, after;
  launch_lanes(alone, false);
  Emulation descending;
  descending.order = Order::descending;
  {
    Watch watch(descending);
    CHECK(Watch::current() == &watch);
    launch_lanes(watched, false);
    CHECK(watch.report().clean());
    launch_lanes(watched, true);
    CHECK(watch.launches() == 2);
    CHECK_FALSE(watch.report().clean());  // two lanes wait in different barriers
  }
  CHECK(Watch::current() == nullptr);
  launch_lanes(after, false);
  CHECK(alone == std::vector<int>{0, 1, 2});
  CHECK(std::vector<int>(watched.begin(), watched.begin() + 3) == std::vector<int>{2, 1, 0});
  CHECK(after == alone);
}

TEST_CASE("what a watch is not for stays the launch's own", "[simt]") {
  Emulation checked, wanted;
  checked.shared_checks = SharedChecks::on;
  wanted.shared_bytes_limit = 1000;
  const Watch watch(checked);
  CHECK(watch.emulation_of(wanted).shared_bytes_limit == 1000);
  CHECK(watch.emulation_of(wanted).shared_checks == SharedChecks::on);
}

}  // namespace
}  // namespace attest::simt
