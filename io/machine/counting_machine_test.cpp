#include "io/machine/counting_machine.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/testing/toy.hpp"

namespace attest::io {
namespace {

using testing::Mistake;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Toy {
  std::int64_t rows, columns;
  std::vector<float> a, x, y;

  Toy(std::int64_t m, std::int64_t n) : rows(m), columns(n) {
    Rng rng(7);
    a.resize(static_cast<std::size_t>(m * n));
    x.resize(static_cast<std::size_t>(n));
    y.assign(static_cast<std::size_t>(m), kNan);
    // Small integers: every sum is exact in any order.
    for (float& value : a) value = static_cast<float>(rng.between(-9, 9));
    for (float& value : x) value = static_cast<float>(rng.between(-9, 9));
  }
  SlowMatrix A() const { return {"A", rows, columns, DType::f32, {a.data(), columns}}; }
  SlowMatrix X() const { return {"x", columns, 1, DType::f32, {x.data(), 1}}; }
  MutableSlowMatrix Y() { return {"y", rows, 1, DType::f32, y.data(), 1}; }

  bool right() const {
    for (std::int64_t i = 0; i < rows; ++i) {
      float sum = 0;
      for (std::int64_t j = 0; j < columns; ++j) {
        sum += a[static_cast<std::size_t>(i * columns + j)] * x[static_cast<std::size_t>(j)];
      }
      if (!(y[static_cast<std::size_t>(i)] == sum)) return false;
    }
    return true;
  }
};

TEST_CASE("a schedule computes and is charged", "[io]") {
  for (const std::int64_t block : {1, 3, 5, 16, 40}) {
    Toy toy(16, 7);
    const std::int64_t rows = std::min<std::int64_t>(block, 16), peak = 7 + rows * 7 + rows;
    CountingMachine machine(FastMemory::of_words(peak));
    testing::matrix_vector(machine, toy.A(), toy.X(), toy.Y(), block);
    CHECK(toy.right());
    CHECK(machine.traffic().reads == Amount{16 * 7 + 7, 4 * (16 * 7 + 7)});
    CHECK(machine.traffic().writes == Amount{16, 64});
    CHECK(machine.traffic().peak == Amount{peak, 4 * peak});
  }
}

TEST_CASE("one word less than the peak is refused", "[io]") {
  Toy toy(16, 7);
  CountingMachine machine(FastMemory::of_words(7 + 4 * 7 + 3));
  CHECK_THROWS_WITH(testing::matrix_vector(machine, toy.A(), toy.X(), toy.Y(), 4),
                    "tile 'y' needs 4 words, but 35 of 38 are live");
}

TEST_CASE("careless schedules are noticed", "[io]") {
  const auto run = [](Mistake mistake) {
    Toy toy(16, 7);
    CountingMachine machine(FastMemory::of_words(7 + 4 * 7 + 4));
    testing::matrix_vector(machine, toy.A(), toy.X(), toy.Y(), 4, mistake);
    return toy.right();
  };
  CHECK(run(Mistake::none));
  CHECK_FALSE(run(Mistake::forgets_store));  // the output stays as it was
  CHECK_FALSE(run(Mistake::forgets_zero));   // scratch is NaN until it is written
  CHECK_THROWS_WITH(run(Mistake::keeps_row),
                    "tile 'A again' needs 28 words, but 39 of 39 are live");
}

TEST_CASE("streams use one word, parallel blocks read again", "[io]") {
  Toy toy(16, 7);
  CountingMachine machine(FastMemory::of_words(9));
  testing::matrix_vector_streamed(machine, toy.A(), toy.X(), toy.Y());
  CHECK(toy.right());
  CHECK(machine.traffic().reads.words == 16 * 7 * 2);
  CHECK(machine.traffic().writes.words == 16);
  CHECK(machine.traffic().peak.words == 9);
  CHECK(machine.meter().blocks().count == 16);
  CHECK(machine.meter().blocks().busiest_words == 15);
}

TEST_CASE("sixteen-bit words count two bytes and convert exactly", "[io]") {
  std::vector<std::uint16_t> a(6), y(3, 0xffff);
  for (std::size_t e = 0; e < a.size(); ++e) {
    a[e] = bf16_from_float(0.5f * static_cast<float>(e) - 1);
  }
  const std::vector<std::uint16_t> x{f16_from_float(2), f16_from_float(-0.25f)};
  const SlowMatrix A("A", 3, 2, DType::bf16, {a.data(), 2});
  const SlowMatrix X("x", 2, 1, DType::f16, {x.data(), 1});
  const MutableSlowMatrix Y("y", 3, 1, DType::bf16, y.data(), 1);
  CountingMachine machine(FastMemory::of_bytes(2 * 2 + 2 * 2 + 4));
  testing::matrix_vector(machine, A, X, Y, 1);
  CHECK(machine.traffic().reads == Amount{8, 16});
  CHECK(machine.traffic().writes == Amount{3, 6});
  CHECK(machine.traffic().peak == Amount{5, 12});
  // (-1, -.5), (0, .5), (1, 1.5) times (2, -.25)
  CHECK(float_from_bf16(y[0]) == -1.875f);
  CHECK(float_from_bf16(y[1]) == -0.125f);
  CHECK(float_from_bf16(y[2]) == 1.625f);
}

TEST_CASE("blocks of a strided matrix", "[io]") {
  std::vector<float> a(24);
  for (std::size_t e = 0; e < a.size(); ++e) a[e] = static_cast<float>(e);
  // 3 x 4 with column stride 2 and row stride 8; columns 1..2 of rows 1..2.
  const SlowMatrix A("A", 3, 4, DType::f32, {a.data(), 8, 2});
  std::vector<float> out(4);
  const MutableSlowMatrix Y("y", 2, 2, DType::f32, out.data(), 2);
  CountingMachine machine(FastMemory{});
  const auto tile = machine.load(A.block({1, 3}, {1, 3}).block({0, 2}), "A");
  machine.store(tile, Y);
  CHECK(out == std::vector<float>{10, 12, 18, 20});
  CHECK_THROWS_WITH(machine.store(tile, Y.block({0, 1})),
                    "tile 'A' is 2 x 2, but the block of y is 1 x 2");
}

TEST_CASE("memory without data needs a dry machine", "[io]") {
  CountingMachine machine(FastMemory{});
  const SlowMatrix nothing("Q", 2, 2, DType::f32, {nullptr, 2});
  CHECK_THROWS_WITH(machine.load(nothing, "Q"),
                    "matrix 'Q' has no data; only a dry machine takes it");
}

}  // namespace
}  // namespace attest::io
