#include "core/sparse_operands.hpp"

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

}  // namespace attest
