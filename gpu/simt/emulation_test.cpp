#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/simt/butterfly.cuh"
#include "gpu/simt/launch.hpp"
#include "gpu/simt/simt.hpp"

namespace attest::simt {
namespace {

std::vector<Emulation> orders() {
  std::vector<Emulation> all(4);
  all[1].order = Order::descending;
  all[2].order = Order::shuffled;
  all[3].order = Order::shuffled;
  all[3].seed = 2;
  return all;
}

LaunchShape one_block(unsigned lanes) { return {{1, 1, 1}, {lanes, 1, 1}, 0}; }

__global__ void shuffle_all(int* out, int argument, int width) {
  const int lane = static_cast<int>(threadIdx.x);
  int* const row = out + 4 * lane;
  row[0] = __shfl_sync(~0U, lane, argument, width);
  row[1] = __shfl_xor_sync(~0U, lane, argument, width);
  row[2] = __shfl_up_sync(~0U, lane, static_cast<unsigned>(argument), width);
  row[3] = __shfl_down_sync(~0U, lane, static_cast<unsigned>(argument), width);
}

// The pseudocode of shfl.sync in the PTX ISA, for the operands that CUDA makes of a width.
std::array<int, 4> shuffled(int lane, int argument, int width) {
  const int segments = 32 - width;  // the bits of a lane that tell its segment
  const int low = lane & segments, high = low | (31 & ~segments), b = argument & 31;
  const int index = low | (b & ~segments), other = lane ^ b, up = lane - b, down = lane + b;
  return {index, other <= high ? other : lane, up >= low ? up : lane, down <= high ? down : lane};
}

TEST_CASE("shuffles read where PTX says", "[emulation]") {
  for (const Emulation& emulation : orders()) {
    for (const int width : {1, 2, 4, 8, 16, 32}) {
      for (int argument = -33; argument <= 66; ++argument) {
        std::array<int, 4 * 32> out{};
        const LaunchReport report =
            launch(one_block(32), emulation, {}, shuffle_all, out.data(), argument, width);
        CHECK(report.clean());
        for (int lane = 0; lane < 32; ++lane) {
          INFO("lane " << lane << " argument " << argument << " width " << width);
          std::array<int, 4> row{};
          std::copy_n(out.begin() + 4 * lane, 4, row.begin());
          CHECK(row == shuffled(lane, argument, width));
        }
      }
    }
  }
}

// By shuffles in out[0], at once in out[1]; lanes from `lanes` on return before.
__global__ void butterflies(std::array<float, 128>* out, int width, unsigned lanes, bool at_once) {
  const unsigned lane = threadIdx.x;
  if (lane >= lanes) return;
  const std::array<float, 4> special{NAN, -INFINITY, -0.0F, 1e30F};
  const float value = lane % 7 < 4 ? special[lane % 7] : 0.1F * static_cast<float>(lane * lane);
  float maximum = value, sum = value, finite = 0.1F * static_cast<float>(lane * lane);
  if (at_once) {
    maximum = butterfly_max(value, width);
    sum = butterfly_sum(value, width);
    finite = butterfly_sum(finite, width);
  } else {
    for (int bits = width / 2; bits > 0; bits /= 2) {
      maximum = fmaxf(maximum, __shfl_xor_sync(~0U, maximum, bits));
    }
    for (int bits = width / 2; bits > 0; bits /= 2) sum += __shfl_xor_sync(~0U, sum, bits);
    for (int bits = width / 2; bits > 0; bits /= 2) finite += __shfl_xor_sync(~0U, finite, bits);
  }
  (*out)[3 * lane] = maximum;
  (*out)[3 * lane + 1] = sum;
  (*out)[3 * lane + 2] = finite;
}

TEST_CASE("a butterfly is its shuffles", "[emulation]") {
  for (Emulation emulation : orders()) {
    emulation.most_diagnoses = 1000;
    for (const int width : {2, 4, 8, 16, 32}) {
      for (const unsigned lanes : {32U, 20U}) {
        INFO("width " << width << ", " << lanes << " lanes");
        std::array<std::array<float, 128>, 2> out{};
        std::array<std::vector<std::string>, 2> said;
        for (const bool at_once : {false, true}) {
          const LaunchReport report = launch(one_block(32), emulation, {}, butterflies,
                                             &out[at_once ? 1 : 0], width, lanes, at_once);
          for (const Diagnosis& each : report.diagnoses) {
            said[at_once ? 1 : 0].push_back(each.text);
          }
          std::sort(said[at_once ? 1 : 0].begin(), said[at_once ? 1 : 0].end());
        }
        CHECK(std::memcmp(&out[0], &out[1], sizeof out[0]) == 0);
        CHECK(said[0] == said[1]);
        CHECK(said[1].empty() == (lanes == 32));
      }
    }
  }
}

// A sum by shuffles within warps and through shared memory between them.
__global__ void block_sum(const float* in, float* out, int count) {
  ATTEST_SHARED(float, of_warp, [32]);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    sum += in[static_cast<int>(blockIdx.x) * count + i];
  }
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(~0U, sum, bits);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < static_cast<int>(blockDim.x / 32) ? of_warp[lane] : 0;
    for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(~0U, sum, bits);
    if (lane == 0) atomicAdd(out, sum);
  }
}

TEST_CASE("a sum over blocks is the same in every order", "[emulation]") {
  constexpr int kBlocks = 5, kCount = 300;
  std::vector<float> in(kBlocks * kCount);
  std::iota(in.begin(), in.end(), 1.0F);
  const float expected = std::accumulate(in.begin(), in.end(), 0.0F);  // whole numbers: exact
  for (Emulation emulation : orders()) {
    for (emulation.threads = 1; emulation.threads <= 2; ++emulation.threads) {
      float out = 0;
      const LaunchReport report = launch({{kBlocks, 1, 1}, {96, 1, 1}, 0}, emulation, {}, block_sum,
                                         in.data(), &out, kCount);
      CHECK(report.to_string().empty());
      CHECK(out == expected);
      CHECK(report.shared_bytes == 32 * sizeof(float));
    }
  }
}

__global__ void votes(unsigned* out) {
  const unsigned lane = threadIdx.x;
  const unsigned mask = lane < 16 ? 0xffffU : 0xffff0000U;
  out[4 * lane] = __ballot_sync(mask, lane % 3 == 0 ? 1 : 0);
  out[4 * lane + 1] = static_cast<unsigned>(__any_sync(mask, lane == 20 ? 1 : 0));
  out[4 * lane + 2] = static_cast<unsigned>(__all_sync(mask, lane < 16 ? 1 : 0));
  out[4 * lane + 3] = static_cast<unsigned>(__syncthreads_count(lane % 2 == 0 ? 1 : 0));
}

TEST_CASE("halves of a warp vote apart", "[emulation]") {
  unsigned thirds = 0;
  for (unsigned lane = 0; lane < 32; lane += 3) thirds |= 1U << lane;
  for (const Emulation& emulation : orders()) {
    std::array<unsigned, 4 * 32> out{};
    CHECK(launch(one_block(32), emulation, {}, votes, out.data()).diagnoses.empty());
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned half = lane < 16 ? 0xffffU : 0xffff0000U;
      INFO("lane " << lane);
      CHECK(out[4 * lane] == (thirds & half));
      CHECK(out[4 * lane + 1] == (lane < 16 ? 0U : 1U));
      CHECK(out[4 * lane + 2] == (lane < 16 ? 1U : 0U));
      CHECK(out[4 * lane + 3] == 16);
    }
  }
}

// Collectives of the lanes that have not returned: 0 to 19.
__global__ void votes_after_returns(unsigned* out) {
  if (threadIdx.x >= 20) return;
  out[3 * threadIdx.x] = __ballot_sync(~0U, 1);
  out[3 * threadIdx.x + 1] = static_cast<unsigned>(__all_sync(~0U, 1));
  out[3 * threadIdx.x + 2] = static_cast<unsigned>(__shfl_sync(~0U, threadIdx.x, 19));
}

TEST_CASE("lanes that have returned have no vote", "[emulation]") {
  for (const Emulation& emulation : orders()) {
    std::array<unsigned, 3 * 32> out{};
    const LaunchReport report =
        launch(one_block(32), emulation, {}, votes_after_returns, out.data());
    CHECK(report.diagnoses.size() == 3);  // that they are named, at each line
    CHECK(report.blocks_given_up == 0);
    for (std::size_t lane = 0; lane < 20; ++lane) {
      CHECK(out[3 * lane] == 0xfffffU);
      CHECK(out[3 * lane + 1] == 1);
      CHECK(out[3 * lane + 2] == 19);
    }
  }
}

// Types that CUDA has no overload for do not compile here either.
template <class T>
concept AddsAtomically = requires(T* p) {
  atomicAdd(p, T{});
};
template <class T>
concept TakesMaximum = requires(T* p) {
  atomicMax(p, T{});
};
template <class T>
concept Shuffles = requires(T value) {
  __shfl_sync(~0U, value, 0);
};
static_assert(AddsAtomically<int> && AddsAtomically<float> && AddsAtomically<double> &&
              AddsAtomically<unsigned long long>);
static_assert(!AddsAtomically<long> && !AddsAtomically<long long> && !AddsAtomically<short>);
static_assert(TakesMaximum<int> && TakesMaximum<long long> && !TakesMaximum<float>);
static_assert(Shuffles<float> && Shuffles<long> && !Shuffles<float2> && !Shuffles<char>);

__global__ void early_returns(int* out) {
  if (threadIdx.x >= 40) return;
  __syncthreads();
  out[threadIdx.x] = static_cast<int>(threadIdx.y);
}

TEST_CASE("lanes that have returned are not waited for", "[emulation]") {
  for (const Emulation& emulation : orders()) {
    std::array<int, 64> out{};
    out.fill(-1);
    const LaunchReport report =
        launch({{1, 1, 1}, {64, 1, 1}, 0}, emulation, {}, early_returns, out.data());
    CHECK(report.diagnoses.size() == 1);
    CHECK(report.blocks_given_up == 0);
    CHECK(std::count(out.begin(), out.end(), 0) == 40);
  }
}

__global__ void indices(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned lane = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * (blockDim.x * blockDim.y * blockDim.z) + lane] += 1;
}

TEST_CASE("every lane of every block runs once, in every order", "[emulation]") {
  for (const Emulation& emulation : orders()) {
    for (const Index3 grid : {Index3{1, 1, 1}, Index3{6, 1, 1}, Index3{3, 4, 5}, Index3{7, 1, 9}}) {
      std::vector<int> out(grid.x * grid.y * grid.z * 3 * 5 * 2);
      CHECK(launch({grid, {3, 5, 2}, 0}, emulation, {}, indices, out.data()).diagnoses.empty());
      CHECK(std::count(out.begin(), out.end(), 1) == static_cast<std::ptrdiff_t>(out.size()));
    }
  }
}

__global__ void read_unwritten(float* out) {
  ATTEST_SHARED(float, tile, [4]);
  ATTEST_DYNAMIC_SHARED(float, words);
  out[0] = tile[3];
  out[1] = words[1];
}

TEST_CASE("shared memory begins as NaN", "[emulation]") {
  std::array<float, 2> out{};
  LaunchShape shape = one_block(1);
  shape.dynamic_shared_bytes = 8;
  const LaunchReport report = launch(shape, {}, {}, read_unwritten, out.data());
  CHECK(std::isnan(out[0]));
  CHECK(std::isnan(out[1]));
  CHECK(report.shared_bytes == 16 + 4 * sizeof(float));  // each variable at a multiple of 16
}

}  // namespace
}  // namespace attest::simt
