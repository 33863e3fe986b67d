#include "sparse/inputs/words/tile_words.hpp"

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/machine/dry_machine.hpp"
#include "sparse/inputs/schedules/sparse_products.hpp"
#include "sparse/inputs/testing/random_operands.hpp"

namespace attest::sparse {
namespace {

struct Matrices {
  CsrMatrix A, B;
};

Matrices matrices() {
  Rng rng(15);
  return {testing::random_rows(rng, 12, 9, 3), testing::random_rows(rng, 10, 9, 3)};
}

template <class Schedule>
std::int64_t counted(const Schedule& schedule, const Matrices& in) {
  ProductStore store(in.A, in.B, {schedule.rows_a, schedule.rows_b, Schedule::kInputs});
  io::DryMachine machine(io::FastMemory{});
  schedule.run(machine, store.slow());
  return (machine.traffic().reads.words + machine.traffic().writes.words).value();
}

TEST_CASE("the fewest words are those counted with some tiles", "[sparse][schedules]") {
  const Matrices in = matrices();
  const ProductWords found = words_by_tiles(in.A, in.B, 2);
  // Sides of 1, 2, 4, 8 and the extents, 12 and 10.
  CHECK(found.nested.size() == 5 * 5);
  CHECK(found.outer.size() == 4 * 4);
  CHECK(found.nested.front().words == counted(NestedProduct{1, 1}, in));
  CHECK(found.nested.back().words == counted(NestedProduct{12, 10}, in));
  CHECK(found.outer.front().words == counted(OuterProduct{2, 2}, in));
  CHECK(found.outer.back().words == counted(OuterProduct{12, 10}, in));
}

TEST_CASE("sides of tiles grow from the least to the extent", "[sparse][schedules]") {
  CHECK(tile_sides(12, 2, 1) == std::vector<std::int64_t>{2, 4, 8, 12});
  CHECK(tile_sides(8, 2, 1) == std::vector<std::int64_t>{2, 4, 8});
  CHECK(tile_sides(12, 2, 2) == std::vector<std::int64_t>{2, 3, 4, 6, 8, 11, 12});
  CHECK(tile_sides(3, 1, 4) == std::vector<std::int64_t>{1, 2, 3});  // no side twice
  CHECK(tile_sides(3, 5, 1) == std::vector<std::int64_t>{3});
  CHECK_THROWS_AS(tile_sides(3, 1, 0), InvalidProblem);
}

TEST_CASE("entries of blocks are those of the block cut out", "[sparse][schedules]") {
  Rng rng(16);
  constexpr int kCases = 200;
  for (int round = 0; round < kCases; ++round) {
    const CsrMatrix matrix =
        testing::random_integers(rng, rng.between(1, 12), rng.between(1, 9), 0.3);
    const EntrySums sums(matrix);
    CHECK(sums.all() == matrix.nonzeros());
    const std::int64_t row = rng.between(0, matrix.rows), column = rng.between(0, matrix.columns);
    const io::Range rows{row, rng.between(row, matrix.rows)},
        columns{column, rng.between(column, matrix.columns)};
    CHECK(sums.in(rows, columns) == block_of(matrix, rows, columns).nonzeros());
  }
}

TEST_CASE("the fewest of what fits", "[sparse][schedules]") {
  const std::vector<TileWords> choices{{100, 8}, {70, 16}, {90, 12}};
  CHECK_FALSE(fewest_words(choices, 7));
  CHECK(fewest_words(choices, 8) == 100);
  CHECK(fewest_words(choices, 15) == 90);
  CHECK(fewest_words(choices, 1000) == 70);
}

TEST_CASE("sizes without a tile are refused", "[sparse][schedules]") {
  Matrices in = matrices();
  CHECK_THROWS_AS(words_by_tiles(in.A, in.B, 0), InvalidProblem);
  in.A = {0, 9, {0}, {}, {}};
  CHECK_THROWS_AS(words_by_tiles(in.A, in.B, 1), InvalidProblem);
}

}  // namespace
}  // namespace attest::sparse
