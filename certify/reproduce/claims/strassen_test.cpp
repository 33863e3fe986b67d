#include "certify/reproduce/claims/strassen.hpp"

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

// Small whole numbers: every sum is exact in any order.
ProductTask whole_numbers(std::int64_t rows_q, std::int64_t rows_k, std::int64_t head_dim) {
  ProductTask task{rows_q, rows_k, head_dim, {}, {}};
  Rng rng(5);
  for (std::int64_t e = 0; e < rows_q * head_dim; ++e) {
    task.Q.push_back(static_cast<double>(rng.between(-4, 4)));
  }
  for (std::int64_t e = 0; e < rows_k * head_dim; ++e) {
    task.K.push_back(static_cast<double>(rng.between(-4, 4)));
  }
  return task;
}

std::vector<double> by_definition(const ProductTask& task) {
  std::vector<double> S;
  for (std::int64_t i = 0; i < task.rows_q; ++i) {
    for (std::int64_t j = 0; j < task.rows_k; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < task.head_dim; ++l) {
        sum += task.Q[static_cast<std::size_t>(i * task.head_dim + l)] *
               task.K[static_cast<std::size_t>(j * task.head_dim + l)];
      }
      S.push_back(sum);
    }
  }
  return S;
}

TEST_CASE("depth-first products are right, fit, write S and count the same dry", "[strassen]") {
  for (const auto& [q, k, d] : {std::array<std::int64_t, 3>{16, 16, 16}, {32, 8, 4}, {8, 16, 1}}) {
    const ProductTask task = whole_numbers(q, k, d);
    for (const std::int64_t fast_words : {3, 12, 48, 200, 100000}) {
      for (const Multiplication how : {Multiplication::classical, Multiplication::strassen}) {
        INFO(q << " " << k << " " << d << " " << fast_words);
        const CountedProduct counted = depth_first_product(task, fast_words, how);
        CHECK(counted.S == by_definition(task));
        CHECK(counted.words.peak <= fast_words);
        CHECK(counted.words.written >= q * k);
        const CountedProduct dry = depth_first_product({q, k, d, {}, {}}, fast_words, how);
        CHECK(dry.S.empty());
        CHECK(dry.words.read == counted.words.read);
        CHECK(dry.words.written == counted.words.written);
        CHECK(dry.words.peak == counted.words.peak);
      }
    }
    const CountedProduct whole = depth_first_product(task, 100000, Multiplication::strassen);
    CHECK(whole.words.moved() == q * d + k * d + q * k);
  }
}

TEST_CASE("in fast memory both multiplications move the same words", "[strassen]") {
  const ProductTask task = whole_numbers(32, 16, 8);
  for (const std::int64_t tile : {1, 2, 8, 16}) {
    const CountedProduct classical = resident_product(task, tile, Multiplication::classical),
                         fast = resident_product(task, tile, Multiplication::strassen);
    INFO(tile);
    CHECK(classical.S == by_definition(task));
    CHECK(fast.S == by_definition(task));
    CHECK(fast.words.read == classical.words.read);
    CHECK(fast.words.written == classical.words.written);
    CHECK(classical.words.read == 32 * 8 + (32 / tile) * 16 * 8);
    CHECK(fast.words.peak >= classical.words.peak);
    CHECK((fast.words.peak > classical.words.peak) == (tile > 1));
  }
}

TEST_CASE("sizes that are no powers of two are refused", "[strassen]") {
  CHECK_THROWS_AS(depth_first_product({3, 4, 4, {}, {}}, 100, Multiplication::strassen),
                  InvalidProblem);
  CHECK_THROWS_AS(depth_first_product({4, 4, 4, {}, {}}, 2, Multiplication::strassen),
                  InvalidProblem);
  CHECK_THROWS_AS(depth_first_product({4, 4, 4, {1}, {1}}, 100, Multiplication::strassen),
                  InvalidProblem);
  CHECK_THROWS_AS(resident_product({4, 4, 4, {}, {}}, 8, Multiplication::strassen), InvalidProblem);
  CHECK_THROWS_AS(resident_product({4, 4, 4, {}, {}}, 3, Multiplication::strassen), InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
