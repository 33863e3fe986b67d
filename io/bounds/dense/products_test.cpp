#include "io/bounds/dense/products.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/forward.hpp"

namespace attest::io {
namespace {

TEST_CASE("one matrix product", "[io][bounds]") {
  const Bound bound = matrix_product({1024, 1024, 64}, {}, 1024);
  CHECK(bound.label() == "lower bound (cited)");
  CHECK(bound.words == 2 * 1024 * 1024 * 64 / 32 - 2 * 1024);
  CHECK_THROWS_AS(matrix_product({0, 1, 1}, {}, 4), InvalidProblem);
}

TEST_CASE("fast multiplication", "[io][bounds]") {
  for (const std::int64_t n : {64, 256, 4096}) {
    for (const std::int64_t fast_words : {16, 256, 4096}) {
      const std::int64_t d = 32;
      const Bound bound = fast_multiplication(dense_extent(n, n, d, d), {}, fast_words);
      REQUIRE(bound.is_lower_bound());
      // One epoch of M transfers: at most 4M^2/d^2 + 4M scores.
      const std::int64_t entries = 4 * fast_words * fast_words / (d * d) + 4 * fast_words;
      CHECK(bound.words >= fast_words * (n * n / entries));
      // Weaker than the bounds that know the products.
      if (fast_words >= 2 * d * d) {
        CHECK(bound.words <= scores_only_large(dense_extent(n, n, d, d), {}, fast_words).words);
      }
    }
  }
  // Rows and columns with few scores: two scores to a usable word, however large d is.
  CHECK(fast_multiplication(dense_extent(100, 10, 100, 1), {}, 10).words <= 501);
  const Extent masked = extent_of(Problem::parse("sq=64,sk=64,d=8,mask=causal_tl"));
  CHECK(fast_multiplication(masked, {}, 16).why_not() == "mask: some pairs are masked");
  const Extent heads = extent_of(Problem::parse("b=2,hq=4,hkv=2,sq=64,sk=64,d=8"));
  CHECK(fast_multiplication(heads, {}, 16).applies());
  CHECK(fast_multiplication(heads, {}, 16).words >
        7 * fast_multiplication(dense_extent(64, 64, 8, 8), {}, 16).words);
}

TEST_CASE("sparse inputs", "[io][bounds]") {
  KernelClass once;
  once.evaluation = Evaluation::once;
  const Extent extent = dense_extent(256, 256, 32, 32);
  const auto pairs = static_cast<double>(extent.pairs);
  const Bound bound = sparse_inputs_once(extent, {100000, 5000}, once, 64);
  REQUIRE(bound.is_lower_bound());
  CHECK(static_cast<double>(bound.words) >= 2 * (1e5 + pairs * 32) / 8 - pairs - 2 * 64);
  // All products nonzero: theorem B.
  CHECK(sparse_inputs_once(extent, {extent.pairs * 32, 0}, once, 64).words ==
        theorem_b(extent, once, 64).words);
  const Bound order = sparse_product_order(extent, {0, 5000}, once, 64);
  CHECK(order.leading == 5000 * std::min(std::sqrt(pairs / 64), 5000 / 64.));
  CHECK(order.label() == "asymptotic lower bound, constant or lower-order terms missing (cited)");
  CHECK_THROWS_AS(sparse_inputs_once(extent, {-1, 0}, once, 64), InvalidProblem);
  CHECK_THROWS_AS(sparse_product_order(extent, {0, -1}, once, 64), InvalidProblem);
}

TEST_CASE("theorem 4.5 of Li et al. in both of its cases", "[io][bounds]") {
  const AttentionEntries entries{1000, 16, 300, 400};
  const Bound small = sparse_attention_order(entries, {}, 256),
              large = sparse_attention_order(entries, {}, 65536);
  CHECK(small.leading == Approx((1000 * 20 + std::sqrt(1000. * 16 * 300)) / 16));
  CHECK(large.leading == (1000. * 1000 + 1000 * 16) / 65536);
  CHECK_FALSE(small.is_lower_bound());
  // Dense Q, K and V of equal sizes: the orders of attention, N^2 d^2 / M and N^2 d / sqrt(M).
  const std::int64_t n = 1 << 20, d = 64;
  const AttentionEntries dense{3 * n * d, d * d, n * d, n * n};
  const auto pairs = static_cast<double>(n) * static_cast<double>(n);
  CHECK(sparse_attention_order(dense, {}, 1 << 20).leading / (pairs * 4096 / (1 << 20)) ==
        Approx(9).epsilon(1. / 1024));
  CHECK(sparse_attention_order(dense, {}, 256).leading / (pairs * 64 / 16) ==
        Approx(3).epsilon(1. / 1024));
  CHECK_THROWS_AS(sparse_attention_order({-1, 0, 0, 0}, {}, 4), InvalidProblem);
}

}  // namespace
}  // namespace attest::io
