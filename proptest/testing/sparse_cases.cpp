#include "proptest/testing/sparse_cases.hpp"

#include <cmath>

namespace attest::proptest {
namespace {

using enum SparseFamily;

// Recipe from which a family draws its matrices.
struct Recipe {
  std::int64_t queries, keys, d, dv;
  double density, density_v;
  SparseFactors factors;
};

CsrMatrix draw(Rng& rng, std::int64_t rows, std::int64_t columns, double density, double factor,
               double sign) {
  CsrMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      if (rng.uniform() >= density) continue;
      matrix.column_indices.push_back(static_cast<std::int32_t>(j));
      matrix.values.push_back(draw_entry(rng, factor, sign));
    }
    matrix.row_offsets.push_back(matrix.nonzeros());
  }
  return matrix;
}

Recipe recipe_of(SparseFamily family, Rng& rng) {
  Recipe r{
      rng.between(1, 24), rng.between(1, 40), rng.between(1, 24), rng.between(1, 12), 0, 0, {}};
  r.density = 0.1 + 0.4 * rng.uniform();
  r.density_v = rng.uniform();
  if (family == negative_full || family == nearly_full) r.density = 1;
  r.factors = sparse_factors(family, rng);
  if (family == constant_values) r.density_v = 1;
  if (family == many_keys) {
    r.keys = rng.between(200, 600);
    r.density = 0.02;
  }
  return r;
}

double scale_of(SparseFamily family, Rng& rng, std::int64_t d) {
  const double usual = 1 / std::sqrt(static_cast<double>(d));
  if (family != normal && family != empty_lines) return usual;
  const double draw = rng.uniform();
  if (draw < 0.1) return 0;
  if (draw < 0.2) return -usual;
  return draw < 0.3 ? 2.5 : usual;
}

}  // namespace

SparseCase sparse_case(SparseFamily family, Rng& rng) {
  const Recipe r = recipe_of(family, rng);
  SparseOperands in{draw(rng, r.queries, r.d, r.density, r.factors.q, r.factors.sign_q),
                    draw(rng, r.keys, r.d, r.density, r.factors.k, r.factors.sign_k),
                    draw(rng, r.keys, r.dv, r.density_v, r.factors.v, 0),
                    scale_of(family, rng, r.d)};
  make_member(family, in, rng);
  SparseCase made{std::move(in), {}};
  made.dO = draw_cotangent(rng, r.queries * r.dv);
  return made;
}

}  // namespace attest::proptest
