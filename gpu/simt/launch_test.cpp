#include "gpu/simt/launch.hpp"

#include <array>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/simt/simt.hpp"

/// Kernels with a seeded mistake each, and what the emulation says of them.
namespace attest::simt {
namespace {

constexpr std::array<Order, 3> kOrders{Order::ascending, Order::descending, Order::shuffled};

template <class Kernel, class... Arguments>
void check_found(Fault fault, const std::string& text, unsigned lanes, Kernel kernel,
                 Arguments... arguments) {
  for (const Order order : kOrders) {
    Emulation emulation;
    emulation.order = order;
    const LaunchReport report =
        launch({{2, 1, 1}, {lanes, 1, 1}, 0}, emulation, {}, kernel, arguments...);
    INFO(report.to_string());
    REQUIRE(report.diagnoses.size() >= 2);  // of each block
    CHECK(report.diagnoses.front().fault == fault);
    CHECK_THAT(report.diagnoses.front().text, Catch::Contains(text));
    CHECK(report.diagnoses.front().block == Index3{0, 0, 0});
    CHECK(report.diagnoses.back().block == Index3{1, 0, 0});
  }
}

__global__ void waits_for_no_one() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else if (threadIdx.x == 40) {
    __syncwarp();
  }
}

TEST_CASE("lanes that wait for ever are named with their lines", "[launch]") {
  check_found(Fault::exited_lane, "", 64, waits_for_no_one);
}

__global__ void one_warp_at_a_barrier() {
  if (threadIdx.x < 16) __syncwarp(0xffffU);
  if (threadIdx.x == 3) __syncwarp(0x18U);  // lane 4 never comes: it waits at the barrier
  __syncthreads();
}

TEST_CASE("a deadlock lists who waits where", "[launch]") {
  check_found(Fault::deadlock, "lanes 4-31 wait in __syncthreads (launch_test.cpp:", 32,
              one_warp_at_a_barrier);
  check_found(Fault::deadlock, "lane 3 waits in __syncwarp (launch_test.cpp:", 32,
              one_warp_at_a_barrier);
}

__global__ void shuffles_after_a_return() {
  if (threadIdx.x == 3) return;
  __shfl_xor_sync(~0U, 1, 1);
}

TEST_CASE("a mask that names a lane that returned", "[launch]") {
  check_found(Fault::exited_lane, "", 32, shuffles_after_a_return);
}

__global__ void different_collectives() {
  if (threadIdx.x < 16) {
    __shfl_xor_sync(~0U, 1, 1);
  } else {
    __ballot_sync(~0U, 1);
  }
}

__global__ void different_barriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_CASE("divergence in a collective and at a barrier", "[launch]") {
  check_found(Fault::divergence, "another mask or operation", 32, different_collectives);
  check_found(Fault::divergence, "while others wait in that of launch_test.cpp:", 64,
              different_barriers);
}

__global__ void not_in_own_mask() {
  if (threadIdx.x < 8) __ballot_sync(0xf0U, 1);
}

__global__ void reads_past_the_mask() {
  if (threadIdx.x < 8) __shfl_sync(0xffU, 1, static_cast<int>(threadIdx.x) + 9);
}

TEST_CASE("lanes outside of a mask", "[launch]") {
  check_found(Fault::outside_mask, "is not in the mask of its own __ballot_sync", 32,
              not_in_own_mask);
  check_found(Fault::outside_mask, "reads from lane 9", 32, reads_past_the_mask);
}

__global__ void too_much_shared() {
  ATTEST_SHARED(float, first, [40000]);
  ATTEST_SHARED(float, second, [20000]);
  first[0] = second[0];
}

TEST_CASE("more shared memory than a block may have", "[launch]") {
  check_found(Fault::shared_budget, "'second' takes 80000 bytes, but 160000 of 232448 are taken",
              32, too_much_shared);
  Emulation small;
  small.shared_bytes_limit = 1024;
  const LaunchReport report =
      launch({{1, 1, 1}, {32, 1, 1}, 1028}, small, {}, [] { __syncthreads(); });
  REQUIRE(report.diagnoses.size() == 1);
  CHECK_THAT(report.to_string(),
             Catch::Contains("1028 bytes of dynamic shared memory, but a block may have 1024"));
}

struct Counted {
  explicit Counted(int& counter) : counter_(counter) { ++counter_; }
  ~Counted() { --counter_; }
  int& counter_;
};

TEST_CASE("a block that is given up unwinds its lanes, the others go on", "[launch]") {
  int alive = 0, ended = 0;
  const LaunchReport report = launch({{3, 1, 1}, {64, 1, 1}, 0}, {}, {}, [&] {
    const Counted counted(alive);
    if (blockIdx.x == 1 && threadIdx.x == 5) throw InvalidProblem("of the kernel");
    __syncthreads();
    ++ended;
  });
  CHECK(alive == 0);
  CHECK(ended == 2 * 64);
  REQUIRE(report.diagnoses.size() == 1);
  CHECK(report.diagnoses.front().fault == Fault::exception);
  CHECK(report.diagnoses.front().to_string() == "exception: lane 5: of the kernel (block 1,0,0)");
}

TEST_CASE("shapes that no device takes", "[launch]") {
  const auto nothing = [] {};
  CHECK_THROWS_WITH(launch({{0, 1, 1}, {1, 1, 1}, 0}, {}, {}, nothing),
                    Catch::Contains("0 x 1 x 1"));
  CHECK_THROWS_WITH(launch({{1, 1, 1}, {32, 33, 1}, 0}, {}, {}, nothing),
                    Catch::Contains("1 to 1024"));
  CHECK_THROWS_AS(lane_index(), InternalError);
}

TEST_CASE("only so many diagnoses are kept", "[launch]") {
  Emulation emulation;
  emulation.most_diagnoses = 3;
  CHECK(launch({{50, 1, 1}, {32, 1, 1}, 0}, emulation, {}, not_in_own_mask).diagnoses.size() == 3);
}

}  // namespace
}  // namespace attest::simt
