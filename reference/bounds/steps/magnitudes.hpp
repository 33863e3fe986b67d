#pragma once

#include "core/numerics.hpp"
#include "reference/group.hpp"

namespace attest::reference {

/// The sizes that errors of an operand's entries are relative to, or those of its products.
struct Magnitudes {
  Matrix all;        // |a|, and more where rounding again may make an entry vanish
  Matrix vanishing;  // |a| where subnormals that are flushed may, else 0; empty where none does

  Magnitudes& operator*=(double factor);

  double lost(Eigen::Index r, Eigen::Index c) const {
    return vanishing.size() > 0 ? vanishing(r, c) : 0;
  }
};

/// Returns those of an operand (sections "Operands rounded again" and "Subnormals flushed");
/// `scale` may multiply it before.
Magnitudes magnitudes(const Numerics& numerics, const Matrix& operand, double scale = 1);

/// Returns |A| |B|, and the part of it whose products lose an operand.
Magnitudes product(const Magnitudes& A, const Magnitudes& B);

}  // namespace attest::reference
