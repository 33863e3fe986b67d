// Schedules of sparse inputs on random ragged matrices: words against closed forms, on the machine
// that moves data and on the one that only counts, and results against plain loops.
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/machine/counting_machine.hpp"
#include "sparse/inputs/schedules/sparse_flash.hpp"
#include "sparse/inputs/schedules/sparse_products.hpp"
#include "sparse/inputs/schedules/stored_support.hpp"
#include "sparse/inputs/testing/check_counts.hpp"
#include "sparse/inputs/testing/random_operands.hpp"
#include "sparse/inputs/words/attention_words.hpp"

namespace attest::sparse {
namespace {

using testing::check_counts;

constexpr int kCases = 200;

std::vector<double> dense(const CsrMatrix& matrix) {
  std::vector<double> out(static_cast<std::size_t>(matrix.rows * matrix.columns));
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const auto columns = matrix.row_columns(i);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      out[static_cast<std::size_t>(i * matrix.columns + columns[e])] =
          static_cast<double>(matrix.row_values(i)[e]);
    }
  }
  return out;
}

TEST_CASE("the structure of a product", "[sparse][schedules]") {
  Rng rng(11);
  for (int round = 0; round < kCases; ++round) {
    const SparseOperands in = testing::random_operands(rng);
    const CsrMatrix structure = product_structure(in.Q, in.K);
    structure.validate("structure");
    for (std::int64_t i = 0; i < in.Q.rows; ++i) {
      std::vector<std::int32_t> expected;
      for (std::int64_t j = 0; j < in.K.rows; ++j) {
        bool shared = false;
        for (const std::int32_t a : in.Q.row_columns(i)) {
          for (const std::int32_t b : in.K.row_columns(j)) shared |= a == b;
        }
        if (shared) expected.push_back(static_cast<std::int32_t>(j));
      }
      const auto found = structure.row_columns(i);
      CHECK(std::vector<std::int32_t>(found.begin(), found.end()) == expected);
    }
  }
}

template <class Schedule>
void check_product(const Schedule& schedule, const CsrMatrix& A, const CsrMatrix& B) {
  ProductStore store(A, B, {schedule.rows_a, schedule.rows_b, Schedule::kInputs});
  check_counts(schedule, store.slow(), schedule.cost(A, B));
  const std::vector<double> a = dense(A), b = dense(B), c = dense(store.result());
  for (std::int64_t i = 0; i < A.rows; ++i) {
    for (std::int64_t j = 0; j < B.rows; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < A.columns; ++l) {
        sum += a[static_cast<std::size_t>(i * A.columns + l)] *
               b[static_cast<std::size_t>(j * A.columns + l)];
      }
      CHECK(c[static_cast<std::size_t>(i * B.rows + j)] == sum);
    }
  }
}

TEST_CASE("closed forms of sparse products", "[sparse][schedules]") {
  Rng rng(12);
  for (int round = 0; round < kCases; ++round) {
    const SparseOperands in = testing::random_operands(rng);
    const std::int64_t rows_a = rng.between(1, 22), rows_b = rng.between(1, 22);
    check_product(OuterProduct{rows_a, rows_b}, in.Q, in.K);
    check_product(NestedProduct{rows_a, rows_b}, in.Q, in.K);
  }
}

TEST_CASE("closed forms of sparse attention", "[sparse][schedules]") {
  Rng rng(13);
  for (int round = 0; round < kCases; ++round) {
    const SparseOperands in = testing::random_operands(rng);
    const SparseFlash flash{rng.between(1, 22), rng.between(1, 22)};
    AttentionStore whole(in);
    check_counts(flash, whole.slow(), flash.cost(in));
    const StoredSupport stored{flash.block_q, flash.block_k, rng.between(1, 10)};
    SupportStore blocks(in, stored);
    check_counts(stored, blocks.slow(), stored.cost(in));
  }
}

// As careless authors would have it: the closed form must notice.
struct RereadsKeys {
  SparseFlash flash;
  template <io::Machine M>
  void run(M& machine, const SlowAttention& in) const {
    flash.run(machine, in);
    machine.load(in.K.indices, "K");
  }
};

struct ForgetsIndexWords {
  template <io::Machine M>
  void run(M& machine, const SlowProduct& task) const {
    for (const auto& blocks : task.C) {
      for (const SlowCsr& block : blocks) {
        auto values = machine.scratch(block.values.rows(), 1, "C");
        for (const SlowCsr& A : task.A) machine.load(A.values, "A");
        for (const SlowCsr& B : task.B) machine.load(B.values, "B");
        machine.compute(FillWith{0}, values);
        machine.store(values, block.values);
      }
    }
  }
};

TEST_CASE("careless schedules are noticed", "[sparse][schedules]") {
  Rng rng(14);
  const SparseOperands in{testing::random_rows(rng, 9, 6, 3), testing::random_rows(rng, 8, 6, 3),
                          testing::random_rows(rng, 8, 5, 2), 1};
  AttentionStore whole(in);
  const SparseFlash flash{4, 3};
  io::CountingMachine twice{io::FastMemory{}};
  RereadsKeys{flash}.run(twice, whole.slow());
  CHECK(twice.traffic().reads.words == flash.cost(in).reads.words + in.K.nonzeros());

  const NestedProduct nested{9, 8};
  ProductStore store(in.Q, in.K, {9, 8, NestedProduct::kInputs});
  io::CountingMachine values_only{io::FastMemory{}};
  ForgetsIndexWords{}.run(values_only, store.slow());
  CHECK(values_only.traffic().reads.words < nested.cost(in.Q, in.K).reads.words);
}

}  // namespace
}  // namespace attest::sparse
