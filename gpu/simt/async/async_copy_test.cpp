#include "gpu/simt/async/async_copy.cuh"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/testing/catch.hpp"
#include "gpu/simt/launch.hpp"

namespace attest::simt {
namespace {

constexpr int kGroups = 4;

// Copies in groups of one, then looks at all of them after a wait for all but the latest `pending`.
template <int kPending>
__global__ void wait_for_some(GlobalPointer<const float> in, float* seen) {
  Counted mem(Counted::Sink{});
  ATTEST_SHARED(float, words, [4 * kGroups]);
  for (int k = 0; k < kGroups; ++k) {
    cp_async_4(&words[4 * k], mem, in, 4 * k);
    cp_async_4(&words[4 * k + 1], mem, in, 4 * k + 1);
    cp_async_8(&words[4 * k + 2], mem, in, 4 * k + 2);
    cp_async_commit();
  }
  cp_async_wait<kPending>();
  for (int k = 0; k < 4 * kGroups; ++k) seen[k] = words[k];
}

template <int kPending>
void check_waits() {
  alignas(16) std::array<float, 4 * kGroups> in{}, seen{};
  std::iota(in.begin(), in.end(), 1.0F);
  GlobalMemory memory;
  const auto from = memory.add("in", static_cast<const float*>(in.data()), 4 * kGroups);
  const LaunchReport report = launch({}, {}, memory, wait_for_some<kPending>, from, seen.data());
  CHECK(report.to_string().empty());
  CHECK(report.traffic[0] == GlobalTraffic{sizeof in, 0});
  for (std::size_t k = 0; k < in.size(); ++k) {
    const bool arrived = static_cast<int>(k / 4) < kGroups - kPending;
    INFO("word " << k << " of which " << kPending << " groups may be pending");
    CHECK((arrived ? seen[k] == in[k] : std::isnan(seen[k])));
  }
}

TEST_CASE("a wait ends all groups but the latest", "[async_copy]") {
  check_waits<0>();
  check_waits<1>();
  check_waits<3>();
  check_waits<kGroups>();
}

__global__ void copy_without_commit(const float* in, float* seen) {
  Uncounted mem(Uncounted::Sink{});
  ATTEST_SHARED(float, words, [4]);
  cp_async_16(words, mem, in, 0);
  cp_async_wait<0>();
  seen[0] = words[3];
  cp_async_wait_all();
  seen[1] = words[3];
}

TEST_CASE("a copy without a commit is in no group", "[async_copy]") {
  alignas(16) const std::array<float, 4> in{1, 2, 3, 4};
  std::array<float, 2> seen{};
  CHECK(launch({}, {}, {}, copy_without_commit, in.data(), seen.data()).clean());
  CHECK(std::isnan(seen[0]));
  CHECK(seen[1] == 4);
}

__global__ void copy_rows_and_zeros(GlobalPointer<const float> in, float* seen, int count) {
  Counted mem(Counted::Sink{});
  ATTEST_SHARED(float, words, [12]);
  cp_async_zfill_16(words, mem, in, 0, 0 < count);
  cp_async_zfill_16(words + 4, mem, in, 4, 4 < count);
  cp_async_zfill_8(words + 8, mem, in, 8, 8 < count);
  cp_async_zfill_4(words + 10, mem, in, 10, 10 < count);
  cp_async_zfill_4(words + 11, mem, in, 11, 11 < count);
  cp_async_wait_all();
  for (int k = 0; k < 12; ++k) seen[k] = words[k];
}

TEST_CASE("zeros come where a source does not exist", "[async_copy]") {
  alignas(16) std::array<float, 12> in{};
  std::iota(in.begin(), in.end(), 1.0F);
  for (const int count : {0, 4, 8, 10, 11, 12}) {
    std::array<float, 12> seen{}, expected{};
    std::copy_n(in.begin(), count, expected.begin());
    GlobalMemory memory;
    const auto from = memory.add("in", static_cast<const float*>(in.data()), count);
    const LaunchReport report =
        launch({}, {}, memory, copy_rows_and_zeros, from, seen.data(), count);
    CHECK(report.to_string().empty());
    CHECK(report.traffic[0] == GlobalTraffic{std::int64_t{4} * count, 0});
    CHECK(seen == expected);
  }
}

// A policy takes its own pointers alone.
template <class Mem, class Pointer>
concept Copies = requires(Mem mem, Pointer p) {
  copy_async<4>(nullptr, mem, p, 0, SourceLine{});
};
static_assert(Copies<Counted, GlobalPointer<const float>> && Copies<Uncounted, const float*>);
static_assert(!Copies<Counted, const float*> && !Copies<Uncounted, GlobalPointer<const float>>);

TEST_CASE("copies that no device takes", "[async_copy]") {
  alignas(16) const std::array<float, 8> in{};
  GlobalMemory memory;
  const auto from = memory.add("in", in.data(), 8);
  const auto found = [&](const auto& kernel) {
    const LaunchReport report = launch({}, {}, memory, kernel);
    REQUIRE(report.diagnoses.size() == 1);
    return report.diagnoses.front().fault;
  };
  const auto copy = [&](int to, int i) {
    return [&, to, i] {
      Counted mem(Counted::Sink{});
      ATTEST_SHARED(float, words, [8]);
      cp_async_16(&words[to], mem, from, i);
      cp_async_wait_all();
    };
  };
  CHECK(found(copy(1, 0)) == Fault::misaligned);
  CHECK(found(copy(0, 1)) == Fault::misaligned);
  CHECK(found(copy(0, 8)) == Fault::out_of_bounds);
  CHECK(found(copy(8, 0)) == Fault::out_of_bounds);
  CHECK(launch({}, {}, memory, copy(4, 4)).clean());
  std::array<float, 4> own{};
  const auto to_own = [&] {
    Counted mem(Counted::Sink{});
    cp_async_4(own.data(), mem, from, 0);
  };
  CHECK(found(to_own) == Fault::out_of_bounds);
}

}  // namespace
}  // namespace attest::simt
