#include "sparse/inputs/tile_words.hpp"

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/dry_machine.hpp"
#include "sparse/inputs/attention_words.hpp"
#include "sparse/inputs/sparse_flash.hpp"
#include "sparse/inputs/stored_support.hpp"
#include "sparse/inputs/testing/random_operands.hpp"

namespace attest::sparse {
namespace {

SparseOperands operands() {
  Rng rng(15);
  return {testing::random_rows(rng, 12, 9, 3), testing::random_rows(rng, 10, 9, 3),
          testing::random_rows(rng, 10, 6, 2), 1};
}

template <class Schedule, class Task>
std::int64_t counted(const Schedule& schedule, const Task& task) {
  io::DryMachine machine(io::FastMemory{});
  schedule.run(machine, task);
  return (machine.traffic().reads.words + machine.traffic().writes.words).value();
}

TEST_CASE("the fewest words are those counted with some tiles", "[sparse][schedules]") {
  const SparseOperands in = operands();
  const SparseAttentionWords found = words_by_tiles(in, 2);
  // Everything in one tile: sizes of 2, 4, 8 and the extent of 12 queries, 10 keys; 2, 4, 6 of V.
  CHECK(found.flash.size() == 4 * 4);
  CHECK(found.stored.size() == 4 * 4 * 3);
  AttentionStore whole(in);
  CHECK(found.flash.back().words == counted(SparseFlash{12, 10}, whole.slow()));
  const StoredSupport one{12, 10, 6};
  SupportStore blocks(in, one);
  CHECK(found.stored.back().words == counted(one, blocks.slow()));
}

TEST_CASE("the fewest of what fits", "[sparse][schedules]") {
  const std::vector<TileWords> choices{{100, 8}, {70, 16}, {90, 12}};
  CHECK_FALSE(fewest_words(choices, 7));
  CHECK(fewest_words(choices, 8) == 100);
  CHECK(fewest_words(choices, 15) == 90);
  CHECK(fewest_words(choices, 1000) == 70);
}

TEST_CASE("sizes without a tile are refused", "[sparse][schedules]") {
  SparseOperands in = operands();
  CHECK_THROWS_AS(words_by_tiles(in, 0), InvalidProblem);
  in.Q = {0, 9, {0}, {}, {}};
  CHECK_THROWS_AS(words_by_tiles(in, 1), InvalidProblem);
}

}  // namespace
}  // namespace attest::sparse
