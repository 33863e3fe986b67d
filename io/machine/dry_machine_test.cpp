#include "io/machine/dry_machine.hpp"

#include <vector>

#include "core/testing/catch.hpp"
#include "io/machine/counting_machine.hpp"
#include "io/testing/toy.hpp"

namespace attest::io {
namespace {

SlowMatrix input(const char* name, std::int64_t rows, std::int64_t columns,
                 const std::vector<float>& data) {
  return {name, rows, columns, DType::f32, {data.empty() ? nullptr : data.data(), columns}};
}

TEST_CASE("dry counts are the counts", "[io]") {
  for (std::int64_t rows = 1; rows < 20; ++rows) {
    for (std::int64_t block = 1; block < 22; ++block) {
      const std::vector<float> a(static_cast<std::size_t>(rows * 3)), x(3);
      std::vector<float> y(static_cast<std::size_t>(rows));
      CountingMachine counting(FastMemory{});
      DryMachine dry(FastMemory{});
      for (const auto mistake : {testing::Mistake::none, testing::Mistake::keeps_row}) {
        testing::matrix_vector(counting, input("A", rows, 3, a), input("x", 3, 1, x),
                               {"y", rows, 1, DType::f32, y.data(), 1}, block, mistake);
        testing::matrix_vector(dry, input("A", rows, 3, {}), input("x", 3, 1, {}),
                               {"y", rows, 1, DType::f32, nullptr, 1}, block, mistake);
      }
      testing::matrix_vector_streamed(counting, input("A", rows, 3, a), input("x", 3, 1, x),
                                      {"y", rows, 1, DType::f32, y.data(), 1});
      testing::matrix_vector_streamed(dry, input("A", rows, 3, {}), input("x", 3, 1, {}),
                                      {"y", rows, 1, DType::f32, nullptr, 1});
      CHECK(counting.traffic() == dry.traffic());
      CHECK(counting.meter().blocks().count == dry.meter().blocks().count);
      CHECK(counting.meter().blocks().busiest_words == dry.meter().blocks().busiest_words);
    }
  }
}

// A body's calls, to see that a run costs as much as one tile.
std::int64_t bodies(std::int64_t rows, std::int64_t block) {
  DryMachine machine(FastMemory{});
  std::int64_t calls = 0;
  machine.for_tiles(Range{0, rows}, block, [&](Range) { ++calls; });
  return calls;
}

TEST_CASE("repeat: the cost of a dry count does not grow with the number of equal tiles", "[io]") {
  CHECK(bodies(0, 4) == 0);
  CHECK(bodies(4, 4) == 1);
  CHECK(bodies(7, 4) == 2);
  CHECK(bodies(3, 4) == 1);
  CHECK(bodies(std::int64_t{1} << 60, 4) == 1);
  DryMachine machine(FastMemory{});
  const std::int64_t rows = std::int64_t{1} << 40;
  testing::matrix_vector(machine, input("A", rows, 64, {}), input("x", 64, 1, {}),
                         {"y", rows, 1, DType::f32, nullptr, 1}, 32);
  CHECK(machine.traffic().reads.words == rows * 64 + 64);
  CHECK_THROWS_AS(
      testing::matrix_vector(machine, input("A", rows, rows, {}), input("x", rows, 1, {}),
                             {"y", rows, 1, DType::f32, nullptr, 1}, 32),
      InvalidProblem);
}

}  // namespace
}  // namespace attest::io
