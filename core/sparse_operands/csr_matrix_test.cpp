#include "core/sparse_operands/csr_matrix.hpp"

#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/sparse_operands/sparse_operands.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

// (2, 3): 1 . 2 / . . 3
CsrMatrix small() { return {2, 3, {0, 2, 3}, {0, 2, 2}, {1, 2, 3}}; }

TEST_CASE("dense and sparse matrices: round trip", "[csr]") {
  Rng rng(1);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (int round = 0; round < 50; ++round) {
      const std::int64_t rows = rng.between(0, 9), columns = rng.between(0, 9);
      Tensor dense("Q", dtype, {{"rows", rows, 0}, {"columns", columns, 0}});
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          if (rng.uniform() < 0.4) dense.set(rng.normal(), i, j);
        }
      }
      const CsrMatrix sparse = csr_from_dense(dense.view());
      Tensor again("Q", dtype, {{"rows", rows, 0}, {"columns", columns, 0}});
      csr_to_dense(sparse, again.view());
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) CHECK(again(i, j) == dense(i, j));
      }
      CHECK(csr_from_dense(again.view()) == sparse);
      CHECK(sparse.transposed().transposed() == sparse);
    }
  }
  Tensor wide("Q", DType::f64, {{"rows", 1, 0}, {"columns", 1, 0}});
  wide.set(1 + std::numeric_limits<double>::epsilon(), 0, 0);
  CHECK_THROWS_WITH(csr_from_dense(wide.view()), Catch::Contains("more digits than float32"));
  wide.set(std::numeric_limits<double>::infinity(), 0, 0);
  CHECK_THROWS_WITH(csr_from_dense(wide.view()), Catch::Contains("must be finite"));
  CHECK_THROWS_WITH(csr_to_dense(small(), wide.view()), Catch::Contains("must be 2 x 3"));
}

TEST_CASE("a matrix transposed", "[csr]") {
  CHECK(small().transposed() == CsrMatrix{3, 2, {0, 1, 1, 3}, {0, 0, 1}, {1, 2, 3}});
  CHECK(small().column_counts() == std::vector<std::int64_t>{1, 0, 2});
}

TEST_CASE("malformed matrices are refused", "[csr]") {
  const auto refusal = [](const auto& spoil) {
    CsrMatrix matrix = small();
    spoil(matrix);
    try {
      matrix.validate("K");
    } catch (const InvalidProblem& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using Catch::Contains;
  CHECK(refusal([](CsrMatrix&) {}) == "accepted");
  CHECK(refusal([](CsrMatrix& m) { m.values[1] = 0; }) == "accepted");
  CHECK_THAT(refusal([](CsrMatrix& m) { m.rows = -1; }), Contains("K: rows is -1"));
  CHECK_THAT(refusal([](CsrMatrix& m) { m.rows = 3; }),
             Contains("K: row_offsets has 3 entries, but 3 rows need one more"));
  CHECK_THAT(refusal([](CsrMatrix& m) { m.row_offsets.clear(); }), Contains("has 0 entries"));
  CHECK_THAT(refusal([](CsrMatrix& m) { m.row_offsets[0] = 1; }),
             Contains("row_offsets[0] is 1; it must be 0"));
  CHECK_THAT(refusal([](CsrMatrix& m) {
               m.row_offsets = {0, 3, 2};
             }),
             Contains("row_offsets[2] is 2, less than the 3 before it"));
  CHECK_THAT(refusal([](CsrMatrix& m) { m.row_offsets[2] = 4; }),
             Contains("row_offsets[2] is 4, but there are 3 values"));
  CHECK_THAT(refusal([](CsrMatrix& m) { m.values.pop_back(); }),
             Contains("3 columns, but 2 values"));
  CHECK_THAT(refusal([](CsrMatrix& m) { m.column_indices[2] = 3; }),
             Contains("columns[2] is 3, but columns go from 0 to 2"));
  CHECK_THAT(refusal([](CsrMatrix& m) { m.column_indices[0] = -1; }), Contains("columns[0] is -1"));
  CHECK_THAT(refusal([](CsrMatrix& m) {
               m.column_indices = {2, 0, 2};
             }),
             Contains("columns[1] is 0 after 2 in row 0"));
  CHECK_THAT(refusal([](CsrMatrix& m) { m.column_indices[1] = 0; }),
             Contains("columns[1] is 0 after 0 in row 0"));
  CHECK_THAT(refusal([](CsrMatrix& m) { m.values[2] = std::numeric_limits<float>::quiet_NaN(); }),
             Contains("values[2] is nan"));
}

TEST_CASE("operands must match", "[csr]") {
  const SparseOperands good{small(), small(), small(), 0.5};
  CHECK_NOTHROW(good.validate());
  CHECK(good.dense_problem().to_string() ==
        "b=1,hq=1,hkv=1,sq=2,sk=2,d=3,dv=3,mask=none,dtype=f32,"
        "layout=bshd,scale=0.5");
  const CsrMatrix other{3, 2, {0, 0, 0, 0}, {}, {}};
  CHECK_THROWS_WITH((SparseOperands{small(), other, other, 1}.validate()),
                    Catch::Contains("K: head_dim_qk is 2 but that of Q is 3"));
  CHECK_THROWS_WITH((SparseOperands{other, other, small(), 1}.validate()),
                    Catch::Contains("V: seqlen_k is 2 but that of K is 3"));
  const CsrMatrix empty{0, 3, {0}, {}, {}};
  CHECK_THROWS_WITH((SparseOperands{small(), empty, empty, 1}.validate()),
                    Catch::Contains("at least one key"));
  const CsrMatrix narrow{2, 0, {0, 0, 0}, {}, {}};
  CHECK_THROWS_WITH((SparseOperands{narrow, narrow, small(), 1}.validate()),
                    Catch::Contains("Q: head_dim_qk is 0"));
  CHECK_THROWS_WITH((SparseOperands{small(), small(), narrow, 1}.validate()),
                    Catch::Contains("V: head_dim_v is 0"));
  SparseOperands scaled = good;
  scaled.softmax_scale = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(scaled.validate(), InvalidProblem);
}

}  // namespace
}  // namespace attest
