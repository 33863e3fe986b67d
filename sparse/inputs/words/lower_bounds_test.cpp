// Lower bounds for sparse inputs, and how far from them the schedules stay.
#include "sparse/inputs/words/lower_bounds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "sparse/inputs/schedules/sparse_flash.hpp"
#include "sparse/inputs/schedules/sparse_flash_backward.hpp"
#include "sparse/inputs/schedules/sparse_products.hpp"
#include "sparse/inputs/schedules/stored_support.hpp"
#include "sparse/inputs/schedules/stored_support_backward.hpp"
#include "sparse/inputs/testing/random_operands.hpp"

namespace attest::sparse {
namespace {

io::KernelClass evaluates_once() {
  io::KernelClass kernel;
  kernel.evaluation = io::Evaluation::once;
  return kernel;
}

TEST_CASE("the work of sparse attention", "[sparse][bounds]") {
  Rng rng(21);
  for (int round = 0; round < 100; ++round) {
    const SparseOperands in = testing::random_operands(rng);
    Work expected;
    for (std::int64_t i = 0; i < in.Q.rows; ++i) {
      for (std::int64_t j = 0; j < in.K.rows; ++j) {
        std::int64_t products = 0;
        for (const std::int32_t a : in.Q.row_columns(i)) {
          for (const std::int32_t b : in.K.row_columns(j)) products += a == b;
        }
        expected.score_products += products;
        if (products == 0) continue;
        ++expected.pairs;
        expected.gradient_products += static_cast<std::int64_t>(in.Q.row_columns(i).size()) +
                                      static_cast<std::int64_t>(in.K.row_columns(j).size());
        expected.value_products += static_cast<std::int64_t>(in.V.row_columns(j).size());
      }
    }
    const Work work = work_of(in);
    CHECK(work.pairs == expected.pairs);
    CHECK(work.score_products == expected.score_products);
    CHECK(work.value_products == expected.value_products);
    CHECK(work.gradient_products == expected.gradient_products);
  }
}

TEST_CASE("no schedule is below the lower bounds", "[sparse][bounds]") {
  Rng rng(22);
  std::int64_t compared = 0, binding = 0;
  for (int round = 0; round < 400; ++round) {
    const SparseOperands in = testing::random_operands(rng);
    const SparseFlash flash{rng.between(1, 22), rng.between(1, 22)};
    const StoredSupport stored{flash.block_q, flash.block_k, rng.between(1, 10)};
    for (const io::Traffic& traffic : {flash.cost(in), stored.cost(in)}) {
      const std::int64_t fast_words = std::max<std::int64_t>(1, traffic.peak.words.value());
      for (const io::Bound& bound : lower_bounds(in, evaluates_once(), fast_words)) {
        if (!bound.is_lower_bound()) continue;
        INFO(bound.to_string());
        CHECK(bound.words <= traffic.total_words());
        ++compared;
        binding += bound.words > 0;
      }
    }
  }
  CHECK(binding > compared / 3);
}

TEST_CASE("no backward schedule is below the lower bounds", "[sparse][bounds]") {
  Rng rng(25);
  std::int64_t compared = 0, binding = 0, above = 0;
  io::KernelClass recomputes;
  for (int round = 0; round < 300; ++round) {
    const SparseOperands in = testing::random_operands(rng);
    const SparseFlashBackward flash{rng.between(1, 22), rng.between(1, 22), rng.between(1, 22),
                                    rng.between(1, 22), rng.between(1, 10)};
    const StoredSupportBackward stored{flash.block_q, flash.block_k, flash.block_v,
                                       rng.between(1, 13)};
    const auto compare = [&](const io::Traffic& traffic, const io::KernelClass& kernel) {
      const std::int64_t fast_words = std::max<std::int64_t>(1, traffic.peak.words.value());
      for (const io::Bound& bound : backward_lower_bounds(in, kernel, fast_words)) {
        if (!bound.is_lower_bound()) continue;
        INFO(bound.to_string());
        CHECK(bound.words <= traffic.total_words());
        ++compared;
        binding += bound.words > 0;
        above += 16 * bound.words > traffic.total_words();
      }
    };
    compare(flash.cost(in), recomputes);
    compare(stored.cost(in), evaluates_once());
  }
  CHECK(binding > compared / 3);
  CHECK(above > 0);  // sixteen times as many words would be too many
}

TEST_CASE("the sparse backward bound of dense inputs is the dense one", "[sparse][bounds]") {
  Rng rng(26);
  const SparseOperands in{testing::random_rows(rng, 48, 16, 16),
                          testing::random_rows(rng, 40, 16, 16),
                          testing::random_rows(rng, 40, 12, 12), 1};
  for (const std::int64_t fast_words : {8, 30, 100}) {
    const io::Extent extent = io::dense_extent(48, 40, 16, 12);
    const auto bounds = backward_lower_bounds(in, evaluates_once(), fast_words);
    REQUIRE(bounds.size() == 3);
    CHECK(bounds[0].words == io::compulsory_backward(extent, evaluates_once()).words);
    CHECK(bounds[1].words == io::backward_small(extent, evaluates_once(), fast_words).words);
    CHECK(bounds[1].words > 0);
  }
  CHECK_FALSE(backward_lower_bounds(in, {}, 16)[1].applies());
  CHECK_THROWS_AS(backward_lower_bounds(in, {}, 0), InvalidProblem);
}

TEST_CASE("backward, pairs without an entry of V do not count", "[sparse][bounds]") {
  Rng rng(29);
  SparseOperands in{testing::random_rows(rng, 30, 16, 8), testing::random_rows(rng, 24, 16, 8),
                    testing::random_rows(rng, 24, 8, 8), 1};
  const auto once = [&](const SparseOperands& operands) {
    return backward_lower_bounds(operands, evaluates_once(), 16)[1].words;
  };
  const std::int64_t all = once(in);
  // Without an entry at the last key: as if K had none there.
  const auto without_last = [](CsrMatrix& matrix) {
    const auto kept = static_cast<std::size_t>(matrix.row_offsets[23]);
    matrix.row_offsets[24] = matrix.row_offsets[23];
    matrix.column_indices.resize(kept);
    matrix.values.resize(kept);
  };
  REQUIRE(in.V.row_columns(23).size() > 0);
  without_last(in.V);
  const std::int64_t fewer = once(in);
  CHECK(fewer < all);
  REQUIRE(in.K.row_columns(23).size() > 0);
  without_last(in.K);
  CHECK(once(in) == fewer);
}

TEST_CASE("where nothing need be formed no bound applies", "[sparse][bounds]") {
  Rng rng(28);
  SparseOperands in{testing::random_rows(rng, 12, 16, 4), testing::random_rows(rng, 10, 16, 4),
                    testing::random_rows(rng, 10, 8, 4), 1};
  const auto applies = [&](std::size_t which) {
    return std::pair{lower_bounds(in, evaluates_once(), 30)[which].applies(),
                     backward_lower_bounds(in, evaluates_once(), 30)[which].applies()};
  };
  CHECK(applies(0) == std::pair{true, true});
  CHECK(applies(1) == std::pair{true, true});
  in.softmax_scale = 0;  // every weight is one of the number of keys
  CHECK(applies(0) == std::pair{false, false});
  CHECK(applies(1) == std::pair{false, false});
  in.softmax_scale = 1;
  in.V = testing::random_rows(rng, 10, 8, 0);   // O, dQ and dK are 0
  CHECK(applies(0) == std::pair{false, true});  // dV still depends on what decides the weights
  CHECK(applies(1) == std::pair{false, false});
}

TEST_CASE("entries that decide no gradient need not be read", "[sparse][bounds]") {
  Rng rng(27);
  SparseOperands in{testing::random_rows(rng, 6, 8, 3), testing::random_rows(rng, 5, 8, 2),
                    testing::random_rows(rng, 5, 4, 2), 1};
  const auto words = [&] { return backward_lower_bounds(in, {}, 16)[0].words; };
  const std::int64_t dense = 6 * (8 + 4) + 5 * (8 + 4);
  CHECK(words() == dense + 18 + 10 + 10);
  const CsrMatrix Q = in.Q;
  in.Q = testing::random_rows(rng, 6, 8, 0);  // dQ needs K, and of V what stands beside it
  CHECK(words() == dense + 10);
  in.Q = Q;
  in.V = testing::random_rows(rng, 5, 4, 0);  // dS = 0
  CHECK(words() <= dense + 18 + 10);
  in.K = testing::random_rows(rng, 5, 8, 0);
  CHECK(words() == dense);
}

TEST_CASE("conditions of the sparse bounds", "[sparse][bounds]") {
  Rng rng(23);
  SparseOperands in{testing::random_rows(rng, 64, 32, 8), testing::random_rows(rng, 64, 32, 8),
                    testing::random_rows(rng, 64, 16, 16), 1};
  const Work work = work_of(in);
  const auto bounds = lower_bounds(in, evaluates_once(), 16);
  REQUIRE(bounds.size() == 4);
  // All of V present: the bound as stated for dense V.
  CHECK(work.value_products == work.pairs * 16);
  io::Extent extent;
  extent.head_dim_v = 16;
  extent.pairs = work.pairs;
  CHECK(bounds[1].words ==
        io::sparse_inputs_once(extent, {work.score_products, 0}, evaluates_once(), 16).words);
  CHECK(static_cast<double>(bounds[1].words) >=
        2.0 * static_cast<double>(work.score_products + work.value_products) / 4 -
            static_cast<double>(work.pairs) - 2 * 16);
  CHECK(bounds[2].label() ==
        "asymptotic lower bound, constant or lower-order terms missing (cited)");
  CHECK(
      bounds[3].leading ==
      io::sparse_attention_order({work.nonzeros, 32, in.Q.nonzeros(), work.pairs}, {}, 16).leading);
  CHECK(lower_bounds(in, {}, 16)[1].why_not().find("once: ") == 0);
  CHECK_THROWS_AS(lower_bounds(in, {}, 0), InvalidProblem);
  in.K = testing::random_rows(rng, 1, 32, 8);
  in.V = testing::random_rows(rng, 1, 16, 16);
  for (const std::size_t proved : {std::size_t{0}, std::size_t{1}}) {
    CHECK(lower_bounds(in, evaluates_once(), 16)[proved].why_not() ==
          "keys: there is one key, which weighs 1 whatever its score");
  }
}

// Words of a schedule with blocks of powers of two.
class Choices {
 public:
  template <class Cost>
  Choices(std::int64_t extent, const Cost& cost) {
    for (std::int64_t a = 4; a <= extent; a *= 2) {
      for (std::int64_t b = 4; b <= extent; b *= 2) counts_.push_back(cost(a, b));
    }
  }

  // The fewest that fit.
  std::int64_t fewest(std::int64_t fast_words) const {
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (const io::Traffic& traffic : counts_) {
      if (traffic.peak.words > fast_words) continue;
      best = std::min(best, traffic.total_words().value());
    }
    REQUIRE(best < std::numeric_limits<std::int64_t>::max());
    return best;
  }

 private:
  std::vector<io::Traffic> counts_;
};

TEST_CASE("each form is the better one on its side", "[sparse][bounds]") {
  constexpr std::int64_t kRows = 128, kWidth = 16;
  Rng rng(24);
  const SparseOperands in{testing::random_rows(rng, kRows, 1024, 16),
                          testing::random_rows(rng, kRows, 1024, 16),
                          testing::random_rows(rng, kRows, kWidth, 4), 1};
  const Choices outer(kRows, [&](std::int64_t a, std::int64_t b) {
    return OuterProduct{a, b}.cost(in.Q, in.K);
  });
  const Choices nested(kRows, [&](std::int64_t a, std::int64_t b) {
    return NestedProduct{a, b}.cost(in.Q, in.K);
  });
  const Choices stored(kRows, [&](std::int64_t a, std::int64_t b) {
    return StoredSupport{a, b, kWidth}.cost(in);
  });
  const Choices flash(kRows, [&](std::int64_t a, std::int64_t b) {
    return SparseFlash{a, b}.cost(in);
  });
  const Work work = work_of(in);
  std::printf("Z %lld, U %lld, W %lld, nnz %lld\n", static_cast<long long>(work.pairs),
              static_cast<long long>(work.score_products),
              static_cast<long long>(work.value_products), static_cast<long long>(work.nonzeros));
  std::printf("%6s %9s %9s %9s %9s %9s %9s\n", "M", "outer", "nested", "stored", "flash", "proved",
              "order");
  constexpr std::int64_t kSmall = 384, kLarge = 8192;
  CHECK(outer.fewest(kSmall) < nested.fewest(kSmall));
  CHECK(nested.fewest(kLarge) < outer.fewest(kLarge));
  CHECK(flash.fewest(kLarge) < stored.fewest(kLarge));
  for (const std::int64_t fast_words : std::array{kSmall, 512L, 1024L, 2048L, 4096L, kLarge}) {
    const auto bounds = lower_bounds(in, evaluates_once(), fast_words);
    const auto proved = io::greatest(bounds);
    REQUIRE(proved);
    const std::int64_t least = std::min(stored.fewest(fast_words), flash.fewest(fast_words));
    CHECK(proved->words <= least);
    std::printf("%6lld %9lld %9lld %9lld %9lld %9lld %9.0f\n", static_cast<long long>(fast_words),
                static_cast<long long>(outer.fewest(fast_words)),
                static_cast<long long>(nested.fewest(fast_words)),
                static_cast<long long>(stored.fewest(fast_words)),
                static_cast<long long>(flash.fewest(fast_words)),
                static_cast<long long>(proved->words), bounds[3].leading);
  }
}

}  // namespace
}  // namespace attest::sparse
