// The backward schedule of sparse inputs on random ragged matrices, rows and columns without an
// entry among them: words against closed forms. proptest/sparse_inputs_test has the results.
#include <cstdio>
#include <limits>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "sparse/inputs/sparse_flash_backward.hpp"
#include "sparse/inputs/testing/check_counts.hpp"
#include "sparse/inputs/testing/random_operands.hpp"

namespace attest::sparse {
namespace {

using testing::check_counts;

std::vector<float> random_dO(Rng& rng, const SparseOperands& in) {
  std::vector<float> dO(static_cast<std::size_t>(in.Q.rows * in.V.columns));
  for (float& element : dO) element = static_cast<float>(rng.between(-3, 3));
  return dO;
}

SparseFlashBackward random_tiles(Rng& rng) {
  return {rng.between(1, 22), rng.between(1, 22), rng.between(1, 22), rng.between(1, 22),
          rng.between(1, 10)};
}

TEST_CASE("closed forms of the sparse backward", "[sparse][schedules]") {
  Rng rng(31);
  for (int round = 0; round < 200; ++round) {
    const SparseOperands in = testing::random_operands(rng);
    const SparseFlashBackward flash = random_tiles(rng);
    GradientStore store(in, random_dO(rng, in), forward(in));
    check_counts(flash, store.slow(), flash.cost(in));
  }
}

TEST_CASE("closed forms of the sparse backward without an entry", "[sparse][schedules]") {
  Rng rng(32);
  for (int round = 0; round < 20; ++round) {
    const SparseOperands any = testing::random_operands(rng);
    for (CsrMatrix SparseOperands::*empty :
         {&SparseOperands::Q, &SparseOperands::K, &SparseOperands::V}) {
      SparseOperands in = any;
      in.*empty = testing::random_integers(rng, (in.*empty).rows, 0, 0);
      (in.*empty).columns = (any.*empty).columns;
      const SparseFlashBackward flash = random_tiles(rng);
      GradientStore store(in, random_dO(rng, in), forward(in));
      check_counts(flash, store.slow(), flash.cost(in));
    }
  }
}

TEST_CASE("whatever the tiles, the sums are those of the kernel", "[sparse][schedules]") {
  Rng rng(33);
  for (int round = 0; round < 50; ++round) {
    SparseOperands in = testing::random_operands(rng);
    in.softmax_scale = 0;  // all weights alike: G = 0 off full rows, and dQ = dK = 0
    const std::vector<float> dO = random_dO(rng, in);
    const Outputs stored = forward(in);
    GradientStore store(in, dO, stored);
    io::CountingMachine machine{io::FastMemory{}};
    random_tiles(rng).run(machine, store.slow());
    const Gradients expected = backward(in, dO, stored);
    CHECK(store.gradients().dQ == expected.dQ);
    CHECK(store.gradients().dK == expected.dK);
  }
}

TEST_CASE("operands and gradients of other sizes are refused", "[sparse][schedules]") {
  Rng rng(34);
  const SparseOperands in{testing::random_rows(rng, 3, 4, 2), testing::random_rows(rng, 5, 4, 2),
                          testing::random_rows(rng, 5, 2, 1), 1};
  CHECK_THROWS_WITH(GradientStore(in, std::vector<float>(5), forward(in)),
                    "dO: has 5 elements, but 6 are needed; pass one per query and column");
}

// The fewest words with blocks of powers of two that fit.
std::int64_t fewest(const SparseOperands& in, std::int64_t fast_words) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t stay = 1; stay <= in.Q.rows; stay *= 2) {
    for (std::int64_t pass = 1; pass <= in.K.rows; pass *= 2) {
      for (std::int64_t keys = 1; keys <= in.K.rows; keys *= 2) {
        for (const std::int64_t columns : {1, 4, 16}) {
          const io::Traffic traffic = SparseFlashBackward{stay, pass, pass, keys, columns}.cost(in);
          if (traffic.peak.words > fast_words) continue;
          best = std::min(best, traffic.total_words().value());
        }
      }
    }
  }
  return best;
}

TEST_CASE("words of the sparse backward fall with fast memory", "[sparse][schedules]") {
  Rng rng(24);
  const SparseOperands in{testing::random_rows(rng, 128, 1024, 16),
                          testing::random_rows(rng, 128, 1024, 16),
                          testing::random_rows(rng, 128, 16, 4), 1};
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t fast_words : {4096, 8192, 16384, 32768, 65536}) {
    const std::int64_t words = fewest(in, fast_words);
    std::printf("%6lld %9lld\n", static_cast<long long>(fast_words), static_cast<long long>(words));
    CHECK(words < before);
    before = words;
  }
}

// As careless authors would have it: the closed form must notice.
struct RereadsQueries {
  SparseFlashBackward flash;
  template <io::Machine M>
  void run(M& machine, const SlowGradients& in) const {
    flash.run(machine, in);
    machine.load(in.Q.values, "Q");
  }
};

TEST_CASE("careless backward schedules are noticed", "[sparse][schedules]") {
  Rng rng(35);
  const SparseOperands in{testing::random_rows(rng, 9, 6, 3), testing::random_rows(rng, 8, 6, 3),
                          testing::random_rows(rng, 8, 5, 2), 1};
  GradientStore store(in, random_dO(rng, in), forward(in));
  const SparseFlashBackward flash{4, 3, 2, 5, 2};
  io::CountingMachine machine{io::FastMemory{}};
  RereadsQueries{flash}.run(machine, store.slow());
  CHECK(machine.traffic().reads.words == flash.cost(in).reads.words + in.Q.nonzeros());
}

}  // namespace
}  // namespace attest::sparse
