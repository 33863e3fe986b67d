#include "gpu/simt/async/mbarrier.cuh"

#include <array>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/simt/launch.hpp"

namespace attest::simt {
namespace {

std::vector<Emulation> orders() {
  std::vector<Emulation> all(6);
  all[1].order = all[4].order = Order::descending;
  all[2].order = all[5].order = Order::shuffled;
  for (std::size_t k = 3; k < 6; ++k) all[k].shared_checks = SharedChecks::on;
  return all;
}

constexpr int kLanes = 96, kTurns = 5;

// A ring of warps: each waits for the one before, adds, and hands on, so that the turns are one
// after the other whatever lane begins.
__global__ void take_turns(int* order, int* count) {
  ATTEST_SHARED(std::uint64_t, turn, [3]);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x == 0) {
    for (auto& barrier : turn) mbarrier_init(&barrier, 32);
  }
  __syncthreads();
  for (int k = 0; k < kTurns; ++k) {
    // The first warp's first turn waits for nothing: the phase before the running one has ended.
    const auto parity = static_cast<unsigned>(warp == 0 ? k + 1 : k) % 2;
    mbarrier_wait(&turn[warp], parity);
    if (threadIdx.x % 32 == 0) order[(*count)++] = warp;
    __syncwarp();
    mbarrier_arrive(&turn[(warp + 1) % 3]);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (auto& barrier : turn) mbarrier_inval(&barrier);
    turn[0] = 7;  // of use as a number again
    *count += static_cast<int>(turn[0]);
  }
}

TEST_CASE("phases follow one another", "[mbarrier]") {
  for (const Emulation& emulation : orders()) {
    std::array<int, 3 * kTurns> order{};
    int count = 0;
    CHECK(launch({{1, 1, 1}, {kLanes, 1, 1}, 0}, emulation, {}, take_turns, order.data(), &count)
              .to_string()
              .empty());
    CHECK(count == 3 * kTurns + 7);
    for (std::size_t k = 0; k < order.size(); ++k) CHECK(order[k] == static_cast<int>(k) % 3);
  }
}

// Checks for a fault that is found without hooks, too.
template <class Kernel>
void check_found(Fault fault, const std::string& text, unsigned lanes, Kernel kernel) {
  for (const Emulation& emulation : orders()) {
    const LaunchReport report = launch({{1, 1, 1}, {lanes, 1, 1}, 0}, emulation, {}, kernel);
    INFO(report.to_string());
    REQUIRE_FALSE(report.diagnoses.empty());
    CHECK(report.diagnoses.front().fault == fault);
    CHECK_THAT(report.diagnoses.front().to_string(),
               Catch::Contains(text) && Catch::Contains("mbarrier_test.cpp:"));
  }
}

__global__ void waits_for_a_missing_arrival() {
  ATTEST_SHARED(std::uint64_t, barrier, [2]);
  if (threadIdx.x == 0) mbarrier_init(&barrier[1], 33);
  __syncthreads();
  mbarrier_arrive(&barrier[1]);
  mbarrier_wait(&barrier[1], 0);
}

__global__ void waits_for_missing_bytes() {
  ATTEST_SHARED(std::uint64_t, barrier, [1]);
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 32);
    mbarrier_expect_tx(barrier, 48);
  }
  __syncthreads();
  mbarrier_arrive(barrier);
  mbarrier_wait(barrier, 0);
}

TEST_CASE("a phase that never ends is a deadlock", "[mbarrier]") {
  check_found(Fault::deadlock, "lanes 0-31 wait in mbarrier.try_wait (mbarrier_test.cpp:", 32,
              waits_for_a_missing_arrival);
  check_found(Fault::deadlock,
              "the mbarrier at byte 8 of 'barrier' in phase 0 lacks 1 of 33 arrivals and 0 bytes",
              32, waits_for_a_missing_arrival);
  check_found(Fault::transactions, "expects 48 bytes more than arrive", 32,
              waits_for_missing_bytes);
}

template <class Use>
auto on_a_barrier(Use use) {
  return [use] {
    ATTEST_SHARED(std::uint64_t, barrier, [4]);
    use(barrier);
  };
}

TEST_CASE("uses of an mbarrier that are undefined", "[mbarrier]") {
  const auto arrive = [](std::uint64_t* barrier) { mbarrier_arrive(barrier); };
  check_found(Fault::mbarrier, "where no mbarrier is initialised", 1, on_a_barrier(arrive));
  const auto wait = [](std::uint64_t* barrier) { mbarrier_wait(barrier, 0); };
  check_found(Fault::mbarrier, "where no mbarrier is initialised", 1, on_a_barrier(wait));
  const auto after_the_end = [](std::uint64_t* barrier) {
    mbarrier_init(barrier, 1);
    mbarrier_inval(barrier);
    mbarrier_arrive_expect_tx(barrier, 16);
  };
  check_found(Fault::mbarrier, "where no mbarrier is initialised", 1, on_a_barrier(after_the_end));
  const auto twice = [](std::uint64_t* barrier) {
    mbarrier_init(barrier, 1);
    mbarrier_init(barrier, 1);
  };
  check_found(Fault::mbarrier, "is an mbarrier already", 1, on_a_barrier(twice));
  const auto of_none = [](std::uint64_t* barrier) { mbarrier_init(barrier, 0); };
  check_found(Fault::mbarrier, "an mbarrier of 0 arrivals; it counts 1 to 1048575", 1,
              on_a_barrier(of_none));
  const auto amid = [](std::uint64_t* barrier) {
    mbarrier_init(reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(barrier) + 4), 1);
  };
  check_found(Fault::misaligned, "at no multiple of 8 bytes", 1, on_a_barrier(amid));
  const auto too_often = [](std::uint64_t* barrier) {
    mbarrier_init(barrier, 1);
    mbarrier_expect_tx(barrier, 16);  // so that the phase does not end
    mbarrier_arrive(barrier);
    mbarrier_arrive(barrier);
  };
  check_found(Fault::mbarrier, "whose 1 arrival of this phase have come already", 1,
              on_a_barrier(too_often));
  const auto parity = [](std::uint64_t* barrier) {
    mbarrier_init(barrier, 1);
    mbarrier_wait(barrier, 2);
  };
  check_found(Fault::mbarrier, "a phase of parity 2; it is 0 or 1", 1, on_a_barrier(parity));
  const auto too_many_bytes = [](std::uint64_t* barrier) {
    mbarrier_init(barrier, 2);
    mbarrier_expect_tx(barrier, 1U << 20);
  };
  check_found(Fault::transactions, "an mbarrier counts at most 1048575", 1,
              on_a_barrier(too_many_bytes));
  const auto elsewhere = [] {
    std::uint64_t own = 0;
    mbarrier_init(&own, 1);
  };
  check_found(Fault::out_of_bounds, "lane 0 writes 8 bytes", 1, elsewhere);
}

TEST_CASE("an mbarrier that lanes wait for may not end", "[mbarrier]") {
  check_found(Fault::mbarrier, "invalidate", 33, [] {
    // In every order the second warp comes last: it waits for the first one's votes.
    ATTEST_SHARED(std::uint64_t, barrier, [1]);
    ATTEST_SHARED(std::uint64_t, waiting, [1]);
    if (threadIdx.x == 0) {
      mbarrier_init(barrier, 1);
      mbarrier_init(waiting, 32);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
      mbarrier_arrive(waiting);
      mbarrier_wait(barrier, 0);
    } else {
      mbarrier_wait(waiting, 0);
      mbarrier_inval(barrier);
    }
  });
}

}  // namespace
}  // namespace attest::simt
