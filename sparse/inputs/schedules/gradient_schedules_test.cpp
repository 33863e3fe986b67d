// The backward schedules of sparse inputs on random ragged matrices, rows and columns without an
// entry among them: words against closed forms. proptest/suites/sparse_inputs_test has the results.
#include <cstdio>
#include <optional>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "sparse/inputs/schedules/sparse_flash_backward.hpp"
#include "sparse/inputs/schedules/stored_support_backward.hpp"
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

// Both schedules with random tiles.
void check_counts_of_both(Rng& rng, const SparseOperands& in) {
  const std::vector<float> dO = random_dO(rng, in);
  const SparseFlashBackward flash = random_tiles(rng);
  GradientStore whole(in, dO, forward(in));
  check_counts(flash, whole.slow(), flash.cost(in));
  const StoredSupportBackward stored{flash.block_q, flash.block_k, flash.block_v,
                                     rng.between(1, 13)};
  SupportGradientStore blocks(in, dO, forward(in), stored);
  check_counts(stored, blocks.slow(), stored.cost(in));
}

TEST_CASE("closed forms of the sparse backward", "[sparse][schedules]") {
  Rng rng(31);
  for (int round = 0; round < 200; ++round) {
    check_counts_of_both(rng, testing::random_operands(rng));
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
      check_counts_of_both(rng, in);
    }
  }
}

TEST_CASE("operands and gradients of other sizes are refused", "[sparse][schedules]") {
  Rng rng(34);
  const SparseOperands in{testing::random_rows(rng, 3, 4, 2), testing::random_rows(rng, 5, 4, 2),
                          testing::random_rows(rng, 5, 2, 1), 1};
  CHECK_THROWS_WITH(GradientStore(in, std::vector<float>(5), forward(in)),
                    "dO: has 5 elements, but 6 are needed; pass one per query and column");
}

// Words of a schedule with blocks of powers of two.
class Choices {
 public:
  void add(const io::Traffic& traffic) { counts_.push_back(traffic); }

  // The fewest that fit; nothing where none do.
  std::optional<std::int64_t> fewest(std::int64_t fast_words) const {
    std::optional<std::int64_t> best;
    for (const io::Traffic& traffic : counts_) {
      if (traffic.peak.words > fast_words) continue;
      const std::int64_t words = traffic.total_words().value();
      best = std::min(best.value_or(words), words);
    }
    return best;
  }

 private:
  std::vector<io::Traffic> counts_;
};

struct Forms {
  Choices flash, stored;
};

// Rows of 16 entries in Q and K and of 4 in V.
Forms forms_of(std::int64_t rows, std::int64_t d, std::int64_t dv) {
  Rng rng(24);
  const SparseOperands in{testing::random_rows(rng, rows, d, 16),
                          testing::random_rows(rng, rows, d, 16),
                          testing::random_rows(rng, rows, dv, 4), 1};
  Forms forms;
  for (std::int64_t a = 4; a <= rows; a *= 2) {
    for (std::int64_t b = 4; b <= rows; b *= 2) {
      for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{4}, dv}) {
        for (std::int64_t keys = 4; keys <= rows; keys *= 2) {
          forms.flash.add(SparseFlashBackward{a, b, b, keys, columns}.cost(in));
        }
        for (const std::int64_t of_d : {d / 32, d / 4, d}) {
          forms.stored.add(StoredSupportBackward{a, b, columns, of_d}.cost(in));
        }
      }
    }
  }
  for (const std::int64_t fast_words : {384, 1024, 2048, 4096, 8192, 16384, 32768, 65536}) {
    const auto stored = forms.stored.fewest(fast_words), flash = forms.flash.fewest(fast_words);
    std::printf("d = %4lld, M = %6lld: stored %9lld flash %9lld\n", static_cast<long long>(d),
                static_cast<long long>(fast_words), static_cast<long long>(stored.value_or(0)),
                static_cast<long long>(flash.value_or(0)));
  }
  return forms;
}

TEST_CASE("each form of the backward is the better one on its side", "[sparse][schedules]") {
  constexpr std::int64_t kSmall = 384, kLarge = 8192;
  // Wide rows, few pairs share a column: flash holds whole rows of dQ and of X.
  const Forms wide = forms_of(128, 1024, 16);
  CHECK(wide.stored.fewest(kSmall));
  CHECK_FALSE(wide.flash.fewest(kSmall));
  REQUIRE(wide.flash.fewest(kLarge));
  CHECK(wide.stored.fewest(kLarge) < wide.flash.fewest(kLarge));
  // Nearly every pair shares one: the stored scores are more than the operands.
  const Forms narrow = forms_of(128, 64, 16);
  CHECK(narrow.stored.fewest(kSmall));
  CHECK_FALSE(narrow.flash.fewest(kSmall));
  REQUIRE(narrow.flash.fewest(kLarge));
  CHECK(narrow.flash.fewest(kLarge) < narrow.stored.fewest(kLarge));
}

// As careless authors would have it: the closed form must notice.
template <class Schedule>
struct RereadsLse {
  Schedule schedule;
  template <io::Machine M, class Slow>
  void run(M& machine, const Slow& in) const {
    schedule.run(machine, in);
    machine.load(in.LSE, "LSE");
  }
};

template <class Schedule, class Slow>
void check_careless(const Schedule& schedule, const SparseOperands& operands, const Slow& slow) {
  io::CountingMachine machine{io::FastMemory{}};
  RereadsLse<Schedule>{schedule}.run(machine, slow);
  CHECK(machine.traffic().reads.words == schedule.cost(operands).reads.words + operands.Q.rows);
}

TEST_CASE("careless backward schedules are noticed", "[sparse][schedules]") {
  Rng rng(35);
  const SparseOperands in{testing::random_rows(rng, 9, 6, 3), testing::random_rows(rng, 8, 6, 3),
                          testing::random_rows(rng, 8, 5, 2), 1};
  const std::vector<float> dO = random_dO(rng, in);
  const SparseFlashBackward flash{4, 3, 2, 5, 2};
  const StoredSupportBackward stored{4, 3, 2, 2};
  check_careless(flash, in, GradientStore(in, dO, forward(in)).slow());
  check_careless(stored, in, SupportGradientStore(in, dO, forward(in), stored).slow());
}

}  // namespace
}  // namespace attest::sparse
