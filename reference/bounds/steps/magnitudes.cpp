#include "reference/bounds/steps/magnitudes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bounds/steps/roundoff.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

// Twice the unit: a rounding may come before.
Matrix vanishing_part(const Matrix& magnitude, double unit, double scale) {
  const double below = 2 * unit / std::min(1.0, std::abs(scale));
  const double limit = std::abs(scale) < 2 * unit ? std::numeric_limits<double>::infinity() : below;
  if (magnitude.size() == 0 || !((magnitude.array() > 0) && (magnitude.array() < limit)).any()) {
    return {};
  }
  return (magnitude.array() < limit).select(magnitude, 0.0);
}

}  // namespace

Magnitudes& Magnitudes::operator*=(double factor) {
  all *= factor;
  vanishing *= factor;
  return *this;
}

Magnitudes magnitudes(const Numerics& numerics, const Matrix& operand, double scale) {
  Magnitudes result{operand.cwiseAbs(), {}};
  if (scale == 0) return result;
  if (numerics.flushed_below > 0) {
    result.vanishing = vanishing_part(result.all, numerics.flushed_below, scale);
  }
  if (numerics.operand_roundoff > 0) {
    const double vanishing = flush_unit(numerics) / std::min(1.0, std::abs(scale));
    result.all.array() += vanishing / numerics.operand_roundoff;
  }
  return result;
}

Magnitudes product(const Magnitudes& A, const Magnitudes& B) {
  Magnitudes result{product(A.all, B.all), {}};
  if (A.vanishing.size() == 0 && B.vanishing.size() == 0) return result;
  result.vanishing.setZero(A.all.rows(), B.all.cols());
  if (A.vanishing.size() > 0) add_product(A.vanishing, B.all, result.vanishing);
  if (B.vanishing.size() > 0) add_product(A.all, B.vanishing, result.vanishing);
  return result;
}

}  // namespace attest::reference
