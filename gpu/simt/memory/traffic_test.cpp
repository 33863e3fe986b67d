#include "gpu/simt/memory/traffic.hpp"

#include <numeric>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/simt/launch.hpp"

namespace attest::simt {
namespace {

// y = x + y by rows of four where a row is whole, then by words; one sum of all x.
template <class Mem>
__global__ void add_vectors(typename Mem::template In<float> x, typename Mem::template Out<float> y,
                            typename Mem::template Out<float> sum, int count,
                            typename Mem::Sink sink) {
  Mem mem(sink);
  const int lane = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (4 * lane + 4 <= count) {
    const float4 a = mem.load4(x, 4 * lane);
    mem.store(y, 4 * lane, a.x + mem.load(y, 4 * lane));
    mem.store(y, 4 * lane + 1, a.y + mem.load(y, 4 * lane + 1));
    mem.store(y, 4 * lane + 2, a.z + mem.load(y, 4 * lane + 2));
    mem.store(y, 4 * lane + 3, a.w + mem.load(y, 4 * lane + 3));
    mem.add(sum, 0, a.x + a.y + a.z + a.w);
  } else {
    for (int i = 4 * lane; i < count; ++i) {
      const float a = mem.load(x, i);
      mem.store(y, i, a + mem.load(y, i));
      mem.add(sum, 0, a);
    }
  }
  mem.flush();
}

struct Vectors {
  explicit Vectors(int size) : count(size), x(static_cast<std::size_t>(size)), y(x.size(), 1) {
    std::iota(x.begin(), x.end(), 1.0F);
  }
  LaunchShape shape() const {
    return {{static_cast<unsigned>(count / 256 + 1), 1, 1}, {64, 1, 1}, 0};
  }

  int count;
  std::vector<float> x, y;
  float sum = 0;
};

TEST_CASE("counted and uncounted compute the same, and the count is exact", "[traffic]") {
  for (const int count : {1, 3, 4, 255, 1030}) {
    Vectors plain(count), counted(count);
    launch(plain.shape(), {}, {}, add_vectors<Uncounted>, plain.x.data(), plain.y.data(),
           &plain.sum, count, Uncounted::Sink{});
    GlobalMemory memory;
    const auto x = memory.add("x", static_cast<const float*>(counted.x.data()), count);
    const auto y = memory.add("y", counted.y.data(), count);
    const auto sum = memory.add("sum", &counted.sum, 1);
    Emulation emulation;
    emulation.threads = 2;
    const LaunchReport report = launch(counted.shape(), emulation, memory, add_vectors<Counted>, x,
                                       y, sum, count, Counted::Sink{});
    CHECK(report.to_string().empty());
    CHECK(counted.y == plain.y);
    CHECK(counted.sum == plain.sum);
    const std::int64_t bytes = std::int64_t{4} * count, adds = 4 * (count / 4 + count % 4);
    REQUIRE(report.traffic.size() == 3);
    CHECK(report.traffic[0] == GlobalTraffic{bytes, 0});
    CHECK(report.traffic[1] == GlobalTraffic{bytes, bytes});
    CHECK(report.traffic[2] == GlobalTraffic{adds, adds});
  }
}

TEST_CASE("a pointer beyond its tensor is found, and nothing is touched there", "[traffic]") {
  Vectors vectors(64);
  std::vector<float> y(64, 1);
  GlobalMemory memory;
  const auto x = memory.add("x", static_cast<const float*>(vectors.x.data()), 60);
  const auto out = memory.add("y", y.data(), 62);
  const auto sum = memory.add("sum", &vectors.sum, 1);
  const LaunchReport report =
      launch(vectors.shape(), {}, memory, add_vectors<Counted>, x, out, sum, 64, Counted::Sink{});
  REQUIRE(report.diagnoses.size() >= 5);
  for (const Diagnosis& diagnosis : report.diagnoses)
    CHECK(diagnosis.fault == Fault::out_of_bounds);
  CHECK_THAT(report.diagnoses.front().to_string(),
             Catch::Contains("lane 15 reads 16 bytes at byte 240 of 'x', which has 240 "
                             "(traffic_test.cpp:"));
  CHECK(y[62] == 1);
  CHECK(y[63] == 1);
}

TEST_CASE("wide accesses need their alignment, and no tensor no access", "[traffic]") {
  Vectors vectors(9);
  GlobalMemory memory;
  const auto x = memory.add("x", static_cast<const float*>(vectors.x.data()), 9);
  const auto wide = [&] {
    Counted mem(Counted::Sink{});
    mem.load4(x, 1);
  };
  LaunchReport report = launch({}, {}, memory, wide);
  REQUIRE(report.diagnoses.size() == 1);
  CHECK(report.diagnoses.front().fault == Fault::misaligned);
  const auto nothing = [&] {
    Counted mem(Counted::Sink{});
    CHECK(mem.load(GlobalPointer<const float>(), 0) == 0);
  };
  report = launch({}, {}, memory, nothing);
  REQUIRE(report.diagnoses.size() == 1);
  CHECK_THAT(report.diagnoses.front().text, Catch::Contains("through a pointer to no tensor"));
}

}  // namespace
}  // namespace attest::simt
