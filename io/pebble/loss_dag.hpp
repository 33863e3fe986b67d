#pragma once

#include <cstdint>

#include "io/pebble/dag.hpp"

namespace attest::io {

/// How dL/dX = A1^T p A2 is multiplied out.
enum class LossProduct : std::uint8_t {
  through_w,  // W[i,j,l] <- p, A2;  g[m,i,l] <- A1, last W
  direct,     // y[j,l,m] <- X, A2;  the second pass forms its scores t[i,j,m] <- A1, last y;
              // z[j,i,m] <- p, A1;  g[m,j,l] <- last z, A2
};

/// The gradient of the attention loss (Li et al. 2024) for n rows of head dimension d, from inputs
/// A1[i,l], A2[j,l], A3[j,l], E[i,c], X[m,l], Y[m,c]: QX[i,l,m] and h[j,c,m] as chains over m,
/// s[i,j,l] <- QX, A2 (its last word is exp of the score), sum[i,j], o[i,j,c] <- s, h;
/// c[i,c] <- o, sum, E; delta[i,c] <- c, o, sum; u[i,j,c] <- c, h; p[i,j] <- s, sum, u, delta.
/// Outputs: the last words of g.
///
/// Requires: n >= 1, d >= 1. Else throws InvalidProblem.  [io/pebble/dag_test]
Dag loss_gradient_dag(std::int32_t rows, std::int32_t head_dim, LossProduct product);

}  // namespace attest::io
