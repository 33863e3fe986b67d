#include "sparse/inputs/gradient_operations.hpp"

#include <cmath>

#include "sparse/inputs/score_row.hpp"

namespace attest::sparse {
namespace {

using io::ConstTileView;
using io::TileView;

float at(const ConstTileView& column, std::int64_t row) { return *column.row(row); }

void add_dense(const float* row, std::int64_t columns, float factor, float* sum) {
  for (std::int64_t c = 0; c < columns; ++c) sum[c] += factor * row[c];
}

void add_sparse(const CsrView& matrix, std::int64_t row, float factor, float* sum) {
  for (std::int64_t e = matrix.begin(row); e < matrix.end(row); ++e) {
    sum[matrix.column(e)] += factor * matrix.value(e);
  }
}

// visit(i, j, element) for the pairs of the support.
template <class Tile, class Visit>
void for_support(const Tile& S, const Visit& visit) {
  for (std::int64_t i = 0; i < S.rows; ++i) {
    for (std::int64_t j = 0; j < S.columns; ++j) {
      if (!std::isnan(S.row(i)[j])) visit(i, j, S.row(i)[j]);
    }
  }
}

// visit(i, entry) for the entries of a compressed tile.
template <class Visit>
void for_entries(const CsrView& S, const Visit& visit) {
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    for (std::int64_t e = S.begin(i); e < S.end(i); ++e) visit(i, e);
  }
}

}  // namespace

void AddDeltas::operator()(TileView D, ConstTileView dO, ConstTileView O) const {
  for (std::int64_t i = 0; i < D.rows; ++i) {
    for (std::int64_t c = 0; c < O.columns; ++c) D.row(i)[0] += dO.row(i)[c] * O.row(i)[c];
  }
}

void AddSparseRows::operator()(TileView sum, ConstTileView offsets, ConstTileView indices,
                               ConstTileView values) const {
  const CsrView matrix{offsets, indices, values};
  for (std::int64_t j = 0; j < matrix.rows(); ++j) add_sparse(matrix, j, 1, sum.row(0));
}

void AddInnerSums::operator()(TileView C, ConstTileView V_offsets, ConstTileView V_indices,
                              ConstTileView V_values, ConstTileView K_offsets,
                              ConstTileView K_indices, ConstTileView K_values) const {
  const CsrView V{V_offsets, V_indices, V_values}, K{K_offsets, K_indices, K_values};
  for (std::int64_t j = 0; j < V.rows(); ++j) {
    for (std::int64_t e = V.begin(j); e < V.end(j); ++e) {
      const std::int64_t c = V.column(e) - first;
      if (c >= 0 && c < C.rows) add_sparse(K, j, V.value(e), C.row(c));
    }
  }
}

void AddWeightedSums::operator()(TileView A, TileView sum, ConstTileView dO, ConstTileView m,
                                 ConstTileView full, ConstTileView Q_offsets,
                                 ConstTileView Q_indices, ConstTileView Q_values) const {
  const CsrView Q{Q_offsets, Q_indices, Q_values};
  for (std::int64_t i = 0; i < dO.rows; ++i) {
    const float w = background(at(m, i), at(full, i));
    if (sum.rows > 0) add_dense(dO.row(i), dO.columns, w, sum.row(0));
    for (std::int64_t c = 0; c < A.rows; ++c) add_sparse(Q, i, w * dO.row(i)[c], A.row(c));
  }
}

void AddWeightedRows::operator()(TileView b, ConstTileView D, ConstTileView m, ConstTileView full,
                                 ConstTileView Q_offsets, ConstTileView Q_indices,
                                 ConstTileView Q_values) const {
  const CsrView Q{Q_offsets, Q_indices, Q_values};
  for (std::int64_t i = 0; i < Q.rows(); ++i) {
    add_sparse(Q, i, background(at(m, i), at(full, i)) * at(D, i), b.row(0));
  }
}

void AddDenseProduct::operator()(TileView dQ, ConstTileView dO, ConstTileView X) const {
  for (std::int64_t i = 0; i < dQ.rows; ++i) {
    for (std::int64_t c = 0; c < X.rows; ++c) {
      add_dense(X.row(c), X.columns, dO.row(i)[first + c], dQ.row(i));
    }
  }
}

void WeighCommon::operator()(TileView dQ, ConstTileView sum, ConstTileView D, ConstTileView m,
                             ConstTileView full) const {
  for (std::int64_t i = 0; i < dQ.rows; ++i) {
    add_dense(sum.row(0), sum.columns, -at(D, i), dQ.row(i));
    const float w = background(at(m, i), at(full, i));
    for (std::int64_t l = 0; l < dQ.columns; ++l) dQ.row(i)[l] *= w;
  }
}

void AddSparseProduct::operator()(TileView dK, ConstTileView A, ConstTileView V_offsets,
                                  ConstTileView V_indices, ConstTileView V_values) const {
  const CsrView V{V_offsets, V_indices, V_values};
  for (std::int64_t j = 0; j < dK.rows; ++j) {
    for (std::int64_t e = V.begin(j); e < V.end(j); ++e) {
      const std::int64_t c = V.column(e) - first;
      if (c >= 0 && c < A.rows) add_dense(A.row(c), A.columns, V.value(e), dK.row(j));
    }
  }
}

void AddToRows::operator()(TileView tile, ConstTileView row) const {
  for (std::int64_t j = 0; j < tile.rows; ++j) {
    add_dense(row.row(0), row.columns, factor, tile.row(j));
  }
}

void WeighSupport::operator()(TileView S, ConstTileView m, ConstTileView full) const {
  for_support(S, [&](std::int64_t i, std::int64_t, float& s) {
    s = weight_beyond(s, at(m, i), at(full, i));
  });
}

void SupportGradients::operator()(TileView G, ConstTileView dO, ConstTileView D,
                                  ConstTileView V_offsets, ConstTileView V_indices,
                                  ConstTileView V_values) const {
  const CsrView V{V_offsets, V_indices, V_values};
  for_support(G, [&](std::int64_t i, std::int64_t j, float& g) {
    float dP = 0;
    for (std::int64_t e = V.begin(j); e < V.end(j); ++e) dP += V.value(e) * dO.row(i)[V.column(e)];
    g *= dP - at(D, i);
  });
}

void AddSupportRows::operator()(TileView dQ, ConstTileView H, ConstTileView K_offsets,
                                ConstTileView K_indices, ConstTileView K_values) const {
  const CsrView K{K_offsets, K_indices, K_values};
  for_support(H, [&](std::int64_t i, std::int64_t j, float h) { add_sparse(K, j, h, dQ.row(i)); });
}

void AddSupportColumns::operator()(TileView dV, ConstTileView G, ConstTileView dO) const {
  for_support(G, [&](std::int64_t i, std::int64_t j, float g) {
    add_dense(dO.row(i), dO.columns, g, dV.row(j));
  });
}

void AddSparseColumns::operator()(TileView dK, ConstTileView H, ConstTileView Q_offsets,
                                  ConstTileView Q_indices, ConstTileView Q_values) const {
  const CsrView Q{Q_offsets, Q_indices, Q_values};
  for_support(H, [&](std::int64_t i, std::int64_t j, float h) { add_sparse(Q, i, h, dK.row(j)); });
}

void WeighEntries::operator()(TileView S_values, ConstTileView S_offsets, ConstTileView m,
                              ConstTileView full) const {
  for_entries({S_offsets, S_values, S_values}, [&](std::int64_t i, std::int64_t e) {
    float& s = *S_values.row(e);
    s = weight_beyond(s, at(m, i), at(full, i));
  });
}

void AddEntryProducts::operator()(TileView dP_values, ConstTileView offsets, ConstTileView indices,
                                  ConstTileView dO, ConstTileView V_offsets,
                                  ConstTileView V_indices, ConstTileView V_values) const {
  const CsrView dP{offsets, indices, dP_values}, V{V_offsets, V_indices, V_values};
  for_entries(dP, [&](std::int64_t i, std::int64_t e) {
    const std::int64_t j = dP.column(e);
    for (std::int64_t v = V.begin(j); v < V.end(j); ++v) {
      *dP_values.row(e) += V.value(v) * dO.row(i)[V.column(v)];
    }
  });
}

void EntryGradients::operator()(TileView dP_values, ConstTileView offsets, ConstTileView G_values,
                                ConstTileView D) const {
  for_entries({offsets, G_values, G_values}, [&](std::int64_t i, std::int64_t e) {
    float& h = *dP_values.row(e);
    h = at(G_values, e) * (h - at(D, i));
  });
}

void AddEntryRows::operator()(TileView dQ, ConstTileView H_offsets, ConstTileView H_indices,
                              ConstTileView H_values, ConstTileView K_offsets,
                              ConstTileView K_indices, ConstTileView K_values) const {
  const CsrView H{H_offsets, H_indices, H_values}, K{K_offsets, K_indices, K_values};
  for_entries(H, [&](std::int64_t i, std::int64_t e) {
    add_sparse(K, H.column(e), H.value(e), dQ.row(i));
  });
}

void AddEntryColumns::operator()(TileView dK, ConstTileView H_offsets, ConstTileView H_indices,
                                 ConstTileView H_values, ConstTileView Q_offsets,
                                 ConstTileView Q_indices, ConstTileView Q_values) const {
  const CsrView H{H_offsets, H_indices, H_values}, Q{Q_offsets, Q_indices, Q_values};
  for_entries(H, [&](std::int64_t i, std::int64_t e) {
    add_sparse(Q, i, H.value(e), dK.row(H.column(e)));
  });
}

void AddEntryDense::operator()(TileView dV, ConstTileView G_offsets, ConstTileView G_indices,
                               ConstTileView G_values, ConstTileView dO) const {
  const CsrView G{G_offsets, G_indices, G_values};
  for_entries(G, [&](std::int64_t i, std::int64_t e) {
    add_dense(dO.row(i), dO.columns, G.value(e), dV.row(G.column(e)));
  });
}

}  // namespace attest::sparse
