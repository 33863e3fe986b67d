#include "gpu/simt/launch.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>

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

template <class Kernel, class... Arguments>
void check_clean(unsigned lanes, Kernel kernel, Arguments... arguments) {
  for (const Order order : kOrders) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      Emulation emulation;
      emulation.order = order;
      emulation.seed = seed;
      CHECK(launch({{2, 1, 1}, {lanes, 1, 1}, 0}, emulation, {}, kernel, arguments...)
                .to_string()
                .empty());
    }
  }
}

__global__ void one_warp_at_a_barrier() {
  if (threadIdx.x < 16) __syncwarp(0xffffU);
  if (threadIdx.x == 3) __syncwarp(0x18U);  // lane 4 never comes: it waits at the barrier
  __syncthreads();
}

TEST_CASE("a deadlock lists who waits where", "[launch]") {
  check_found(Fault::deadlock, "lanes 4-31 wait in __syncthreads (launch_test.cpp:", 32,
              one_warp_at_a_barrier);
  check_found(Fault::deadlock, "lane 3 waits in __syncwarp of 0x00000018 (launch_test.cpp:", 32,
              one_warp_at_a_barrier);
}

// Pairs after quarters and halves: the lowest lane of several masks is the same, and a lane that
// one mask names may first be in another.
__global__ void overlapping_masks() {
  const unsigned lane = threadIdx.x % 32;
  if (lane < 16) __syncwarp(0xffffU);
  if (lane < 2) __shfl_xor_sync(0x3U, 1, 1);
  if (lane % 16 == 0) __shfl_xor_sync(0x10001U, 1, 16);
  __ballot_sync(~0U, 1);
}

// Lane 0 may be with lane 1 before lane 2 is with lanes 0 and 1.
__global__ void masks_within_masks() {
  if (threadIdx.x < 2) __shfl_xor_sync(0x3U, 1, 1);
  if (threadIdx.x < 4) __ballot_sync(0xfU, 1);
}

TEST_CASE("masks that overlap are no divergence", "[launch]") {
  check_clean(64, overlapping_masks);
  check_clean(32, masks_within_masks);
}

__global__ void reads_a_lane_that_returned() {
  if (threadIdx.x == 3) return;
  __shfl_xor_sync(~0U, 1, 1);
}

__global__ void reads_a_lane_that_never_was() { __shfl_down_sync(~0U, 1, 1); }

TEST_CASE("a shuffle from a lane that has returned or never was", "[launch]") {
  check_found(Fault::exited_lane,
              "lane 2 of a warp reads from lane 3 in __shfl_xor_sync, which has returned", 32,
              reads_a_lane_that_returned);
  check_found(Fault::exited_lane, "lane 7 of a warp reads from lane 8", 8,
              reads_a_lane_that_never_was);
}

// A warp of less than 32 threads: there is nobody to wait for.
__global__ void names_lanes_that_never_were() {
  __syncwarp();
  __ballot_sync(~0U, 1);
  __shfl_sync(~0U, 1, 0);
  __syncthreads();
}

TEST_CASE("a mask may name lanes that never were", "[launch]") {
  check_clean(24, names_lanes_that_never_were);
  check_clean(40, names_lanes_that_never_were);
}

enum class Meeting { warp_barrier, vote, shuffle, block_barrier };

template <Meeting meeting>
__global__ void meets_without_lane_7() {
  if (threadIdx.x == 7) return;  // while others wait, or before
  if (meeting == Meeting::warp_barrier) __syncwarp();
  if (meeting == Meeting::vote) __any_sync(~0U, 1);
  if (meeting == Meeting::shuffle) __shfl_sync(~0U, 1, 0);
  if (meeting == Meeting::block_barrier) __syncthreads();
}

// The devices since Volta wait for nobody who has returned. But CUDA documents a barrier that not
// all threads of a block come to as undefined, and a mask that names who is gone says something
// else than what happens.
TEST_CASE("a collective or barrier that a lane has returned without coming to", "[launch]") {
  const auto without = [](const std::string& operation) {
    return "lane 7 has returned without coming to " + operation + ", where others waited for it";
  };
  constexpr Fault kFault = Fault::exited_lane;
  check_found(kFault, without("__syncwarp"), 64, meets_without_lane_7<Meeting::warp_barrier>);
  check_found(kFault, without("__any_sync"), 32, meets_without_lane_7<Meeting::vote>);
  check_found(kFault, without("__shfl_sync"), 24, meets_without_lane_7<Meeting::shuffle>);
  check_found(kFault, without("__syncthreads"), 64, meets_without_lane_7<Meeting::block_barrier>);
}

__global__ void second_warp_returns() {
  if (threadIdx.x >= 32) return;
  __syncwarp();
  __shfl_sync(~0U, 1, 0);
}

__global__ void returns_after_the_last_barrier() {
  __syncthreads();
  __syncwarp();
  if (threadIdx.x % 32 != 3) return;
  __syncwarp(8);
}

TEST_CASE("lanes that nobody waits for may return", "[launch]") {
  check_clean(64, second_warp_returns);
  check_clean(64, returns_after_the_last_barrier);
}

__global__ void different_collectives() {
  if (threadIdx.x < 16) {
    __shfl_xor_sync(~0U, 1, 1);
  } else {
    __ballot_sync(~0U, 1);
  }
}

__global__ void different_votes() {
  if (threadIdx.x < 16) {
    __any_sync(~0U, 1);
  } else {
    __all_sync(~0U, 1);
  }
}

__global__ void one_kind_at_two_places() {
  if (threadIdx.x < 16) {
    __any_sync(~0U, 1);
  } else {
    __any_sync(~0U, 0);
  }
}

// They exchange nothing, and meet: PTX asks bar.warp.sync for no more than the same mask.
__global__ void warp_barriers_at_two_places() {
  if (threadIdx.x < 16) {  // NOLINT(bugprone-branch-clone): two places are the point
    __syncwarp();
  } else {
    __syncwarp();
  }
}

// Lane 0 and lane 1 wait for each other.
__global__ void masks_apart() {
  if (threadIdx.x == 0) __syncwarp(0x3U);
  if (threadIdx.x == 1) __ballot_sync(0x7U, 1);
}

// Barriers on one line, as a macro might have them.
__global__ void different_kinds_of_barriers() {
  threadIdx.x < 32 ? __syncthreads() : static_cast<void>(__syncthreads_or(1));
}

__global__ void different_barriers() {
  if (threadIdx.x < 32) {  // NOLINT(bugprone-branch-clone): two places are the point
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_CASE("divergence in a collective and at a barrier", "[launch]") {
  check_found(Fault::divergence, "with the mask of lanes that wait in", 32, different_collectives);
  check_found(Fault::divergence, "with the mask of lanes that wait in", 32, different_votes);
  check_found(Fault::divergence,
              "with the mask of lanes that wait in __any_sync of launch_test.cpp:", 32,
              one_kind_at_two_places);
  check_clean(32, warp_barriers_at_two_places);
  check_found(Fault::divergence, "waits for it in", 32, masks_apart);
  check_found(Fault::divergence, "of 0x00000007", 32, masks_apart);
  check_found(Fault::divergence, "while others wait in __syncthreads", 64,
              different_kinds_of_barriers);
  check_found(Fault::divergence, "while others wait in __syncthreads of launch_test.cpp:", 64,
              different_barriers);
}

__global__ void not_in_own_mask() {
  if (threadIdx.x < 8) __ballot_sync(0xf0U, 1);
}

__global__ void reads_past_the_mask() {
  if (threadIdx.x < 8) __shfl_sync(0xffU, 1, static_cast<int>(threadIdx.x) + 9);
}

TEST_CASE("lanes outside of a mask", "[launch]") {
  check_found(Fault::outside_mask, "comes to __ballot_sync with a mask that does not name it", 32,
              not_in_own_mask);
  check_found(Fault::outside_mask, "reads from lane 9", 32, reads_past_the_mask);
}

__global__ void shuffles_by(int width) { __shfl_sync(~0U, 1, 0, width); }

TEST_CASE("the width of a shuffle is a power of two up to a warp", "[launch]") {
  for (const int width : {-4, 0, 3, 12, 33, 64}) {
    check_found(Fault::shuffle_width, "by a width of " + std::to_string(width), 32, shuffles_by,
                width);
  }
}

__global__ void too_much_shared() {
  ATTEST_SHARED(float, first, [8000]);
  ATTEST_SHARED(float, second, [5000]);
  first[0] = second[0];
}

TEST_CASE("more shared memory than a block may have", "[launch]") {
  check_found(Fault::shared_budget,
              "'second' takes 20000 bytes, but 32000 of 49152 static ones are", 32,
              too_much_shared);
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
// In a process of its own, which may map little more than it has.
TEST_CASE("a launch without memory for its stacks throws", "[launch]") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::ifstream statistics("/proc/self/statm");
    rlim_t pages = 0;
    statistics >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
    try {
      launch({{4, 1, 1}, {1024, 1, 1}, 0}, {}, {}, [] {});
    } catch (const InternalError&) {
      _exit(7);
    }
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}
#endif

TEST_CASE("shapes that no device takes", "[launch]") {
  const auto nothing = [] {};
  CHECK_THROWS_WITH(launch({{0, 1, 1}, {1, 1, 1}, 0}, {}, {}, nothing),
                    Catch::Contains("0 x 1 x 1"));
  CHECK_THROWS_WITH(launch({{1, 1, 1}, {32, 33, 1}, 0}, {}, {}, nothing),
                    Catch::Contains("1 to 1024"));
  CHECK_THROWS_WITH(launch({{1, 65536, 1}, {1, 1, 1}, 0}, {}, {}, nothing),
                    Catch::Contains("at most 2147483647 x 65535 x 65535"));
  CHECK_THROWS_WITH(launch({{1, 1, 65536}, {1, 1, 1}, 0}, {}, {}, nothing),
                    Catch::Contains("1 x 1 x 65536"));
  CHECK_THROWS_AS(launch({{1U << 31, 1, 1}, {1, 1, 1}, 0}, {}, {}, nothing), InvalidProblem);
  CHECK_THROWS_WITH(launch({{1, 1, 1}, {1, 1, 65}, 0}, {}, {}, nothing),
                    Catch::Contains("at most 1024 x 1024 x 64"));
  CHECK_THROWS_WITH(launch({{1, 1, 1}, {1, 1, 1}, -8}, {}, {}, nothing),
                    Catch::Contains("-8 bytes of dynamic shared memory"));
  CHECK(launch({{1, 1, 2}, {1, 1, 64}, 0}, {}, {}, nothing).clean());
  CHECK_THROWS_AS(lane_index(), InternalError);
}

TEST_CASE("only so many diagnoses are kept", "[launch]") {
  Emulation emulation;
  emulation.most_diagnoses = 3;
  CHECK(launch({{50, 1, 1}, {32, 1, 1}, 0}, emulation, {}, not_in_own_mask).diagnoses.size() == 3);
  emulation.most_diagnoses = 0;
  LaunchReport report = launch({{50, 1, 1}, {32, 1, 1}, 0}, emulation, {}, not_in_own_mask);
  CHECK(report.diagnoses.empty());
  CHECK(report.blocks_given_up == 50);
  CHECK_FALSE(report.clean());
  CHECK(report.to_string() == "50 blocks were given up\n");
  report += launch({{1, 1, 1}, {32, 1, 1}, 0}, emulation, {}, not_in_own_mask);
  CHECK(report.blocks_given_up == 51);
}

}  // namespace
}  // namespace attest::simt
