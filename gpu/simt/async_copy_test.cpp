#include "gpu/simt/async_copy.cuh"

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
  std::array<float, 4 * kGroups> in{}, seen{};
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
