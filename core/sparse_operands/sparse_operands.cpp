#include "core/sparse_operands/sparse_operands.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace attest {

void SparseOperands::validate() const {
  Q.validate("Q");
  K.validate("K");
  V.validate("V");
  if (Q.columns != K.columns) {
    throw InvalidProblem("K: head_dim_qk is " + std::to_string(K.columns) + " but that of Q is " +
                         std::to_string(Q.columns) + "; give both the same number of columns");
  }
  if (K.rows != V.rows) {
    throw InvalidProblem("V: seqlen_k is " + std::to_string(V.rows) + " but that of K is " +
                         std::to_string(K.rows) + "; give both the same number of rows");
  }
  for (const auto& [name, columns] :
       {std::pair{"Q: head_dim_qk", Q.columns}, std::pair{"V: head_dim_v", V.columns}}) {
    if (columns == 0) {
      throw InvalidProblem(std::string(name) + " is 0; give at least one column");
    }
  }
  if (K.rows == 0) throw InvalidProblem("K: seqlen_k is 0; give at least one key");
  if (!std::isfinite(softmax_scale)) {
    throw InvalidProblem("softmax_scale is not finite; pass a number such as 1/sqrt(head_dim_qk)");
  }
}

Problem SparseOperands::dense_problem() const {
  Problem problem;
  problem.seqlen_q = Q.rows;
  problem.seqlen_k = K.rows;
  problem.head_dim_qk = Q.columns;
  problem.head_dim_v = V.columns;
  problem.softmax_scale = softmax_scale;
  return problem;
}

void require_sparse_problem(const Problem& problem) {
  Problem plain;
  plain.seqlen_q = problem.seqlen_q;
  plain.seqlen_k = problem.seqlen_k;
  plain.head_dim_qk = problem.head_dim_qk;
  plain.head_dim_v = problem.head_dim_v;
  plain.softmax_scale = problem.softmax_scale;
  if (plain.to_string() != problem.to_string()) {
    throw InvalidProblem(
        "inputs: sparse inputs are of one head and batch entry in float32, without a mask; give "
        "sq, sk, d, dv and scale alone");
  }
  constexpr std::int64_t kMostPairs = std::int64_t{1} << 18;
  if (problem.seqlen_q < 1 || problem.seqlen_k < 1 || problem.head_dim_qk < 1 ||
      problem.head_dim_v < 1 || problem.seqlen_q > kMostPairs / problem.seqlen_k) {
    throw InvalidProblem(
        "inputs: sizes must be at least 1 and sq times sk at most 2^18; give a smaller problem");
  }
  constexpr std::int64_t kMostEntries = std::int64_t{1} << 26;
  const std::int64_t rows = problem.seqlen_q + problem.seqlen_k;  // at most 2^18 + 1
  if (problem.head_dim_qk > kMostEntries / rows || problem.head_dim_v > kMostEntries / rows) {
    throw InvalidProblem(
        "inputs: sq + sk times d, and times dv, must be at most 2^26; give a "
        "smaller problem");
  }
}

}  // namespace attest
