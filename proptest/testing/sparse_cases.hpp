#pragma once

#include <vector>

#include "proptest/values/sparse_values.hpp"

namespace attest::proptest {

struct SparseCase {
  SparseOperands operands;
  std::vector<float> dO;  // row-major (seqlen_q, head_dim_v)
};

/// Operands of a family, of random sizes; a tenth to a half of the entries of Q and K, but for the
/// families that are of a structure of their own.
SparseCase sparse_case(SparseFamily family, Rng& rng);

}  // namespace attest::proptest
