#include "sparse/inputs/operations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sparse/inputs/score_row.hpp"

namespace attest::sparse {
namespace {

using io::ConstTileView;
using io::TileView;

constexpr float kNotOfSupport = std::numeric_limits<float>::quiet_NaN();

float& at(const TileView& column, std::int64_t row) { return *column.row(row); }
float at(const ConstTileView& column, std::int64_t row) { return *column.row(row); }

// Sum over the columns that both rows have; nothing when there is none.
std::optional<float> product_of(const CsrView& A, std::int64_t i, const CsrView& B,
                                std::int64_t j) {
  std::optional<float> sum;
  std::int64_t a = A.begin(i), b = B.begin(j);
  while (a < A.end(i) && b < B.end(j)) {
    if (A.column(a) == B.column(b)) {
      sum = sum.value_or(0) + A.value(a++) * B.value(b++);
    } else if (A.column(a) < B.column(b)) {
      ++a;
    } else {
      ++b;
    }
  }
  return sum;
}

void add_row(const CsrView& V, std::int64_t row, float factor, float* sum) {
  for (std::int64_t e = V.begin(row); e < V.end(row); ++e) {
    sum[V.column(e)] += factor * V.value(e);
  }
}

// The shift rises: what was summed with the old one is multiplied.
float raised(float& m, float largest) {
  if (!(largest > m)) return 1;
  const float factor = std::exp(m - largest);
  m = largest;
  return factor;
}

}  // namespace

void FillWith::operator()(TileView tile) const {
  for (std::int64_t i = 0; i < tile.rows; ++i) std::fill_n(tile.row(i), tile.columns, value);
}

void Multiply::operator()(TileView tile) const {
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    for (std::int64_t j = 0; j < tile.columns; ++j) tile.row(i)[j] *= factor;
  }
}

void SupportScores::operator()(TileView S, ConstTileView Q_offsets, ConstTileView Q_indices,
                               ConstTileView Q_values, ConstTileView K_offsets,
                               ConstTileView K_indices, ConstTileView K_values) const {
  const CsrView Q{Q_offsets, Q_indices, Q_values}, K{K_offsets, K_indices, K_values};
  for (std::int64_t i = 0; i < S.rows; ++i) {
    for (std::int64_t j = 0; j < S.columns; ++j) {
      const std::optional<float> product = product_of(Q, i, K, j);
      S.row(i)[j] = product ? scale * *product : kNotOfSupport;
    }
  }
}

void StartShifts::operator()(TileView m, ConstTileView full) const {
  for (std::int64_t i = 0; i < m.rows; ++i) {
    at(m, i) = at(full, i) != 0 ? -std::numeric_limits<float>::infinity() : 0;
  }
}

void AddSupport::operator()(TileView O, TileView m, TileView l, TileView sum_V, ConstTileView S,
                            ConstTileView full, ConstTileView V_offsets, ConstTileView V_indices,
                            ConstTileView V_values) const {
  const CsrView V{V_offsets, V_indices, V_values};
  for (std::int64_t j = 0; j < V.rows(); ++j) add_row(V, j, 1, sum_V.row(0));
  for (std::int64_t i = 0; i < O.rows; ++i) {
    const float* s = S.row(i);
    float largest = at(m, i);
    for (std::int64_t j = 0; j < S.columns; ++j) largest = std::fmax(largest, s[j]);
    const float factor = raised(at(m, i), largest);
    at(l, i) *= factor;
    for (std::int64_t c = 0; c < O.columns; ++c) O.row(i)[c] *= factor;
    for (std::int64_t j = 0; j < S.columns; ++j) {
      if (std::isnan(s[j])) continue;
      const float G = weight_beyond(s[j], at(m, i), at(full, i));
      at(l, i) += G;
      add_row(V, j, G, O.row(i));
    }
  }
}

void FinishSupport::operator()(TileView O, TileView m, ConstTileView l, ConstTileView sum_V,
                               ConstTileView full) const {
  for (std::int64_t i = 0; i < O.rows; ++i) {
    const float z = background(at(m, i), at(full, i));
    const float sum = at(l, i) + keys * z;
    for (std::int64_t c = 0; c < O.columns; ++c) {
      O.row(i)[c] = (O.row(i)[c] + z * sum_V.row(0)[c]) / sum;
    }
    at(m, i) += std::log(sum);
  }
}

void OuterUpdate::operator()(TileView C_values, ConstTileView C_offsets, ConstTileView C_indices,
                             ConstTileView A_labels, ConstTileView A_indices,
                             ConstTileView A_values, ConstTileView B_labels,
                             ConstTileView B_indices, ConstTileView B_values) const {
  const CsrView C{C_offsets, C_indices, C_values};
  const auto word = [](const ConstTileView& words, std::int64_t e) {
    return std::bit_cast<std::int32_t>(*words.row(e));
  };
  for (std::int64_t a = 0; a < A_indices.rows; ++a) {
    std::int64_t entry = C.begin(word(A_indices, a));
    for (std::int64_t b = 0; b < B_indices.rows; ++b) {
      if (word(A_labels, a) != word(B_labels, b)) continue;
      while (C.column(entry) != word(B_indices, b)) ++entry;  // both ascend; the entry is there
      at(C_values, entry) += at(A_values, a) * at(B_values, b);
    }
  }
}

void InnerProducts::operator()(TileView C_values, ConstTileView C_offsets, ConstTileView C_indices,
                               ConstTileView A_offsets, ConstTileView A_indices,
                               ConstTileView A_values, ConstTileView B_offsets,
                               ConstTileView B_indices, ConstTileView B_values) const {
  const CsrView A{A_offsets, A_indices, A_values}, B{B_offsets, B_indices, B_values};
  const CsrView C{C_offsets, C_indices, C_values};
  for (std::int64_t i = 0; i < C.rows(); ++i) {
    for (std::int64_t e = C.begin(i); e < C.end(i); ++e) {
      at(C_values, e) = product_of(A, i, B, C.column(e)).value_or(0);
    }
  }
}

void RaiseShifts::operator()(TileView m, ConstTileView S_offsets, ConstTileView S_values) const {
  const CsrView S{S_offsets, S_values, S_values};  // no index is looked at
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t e = S.begin(i); e < S.end(i); ++e) {
      at(m, i) = std::max(at(m, i), S.value(e));
    }
  }
}

void AddEntries::operator()(TileView O, TileView l, TileView sum_V, ConstTileView m,
                            ConstTileView full, ConstTileView S_offsets, ConstTileView S_indices,
                            ConstTileView S_values, ConstTileView V_offsets,
                            ConstTileView V_indices, ConstTileView V_values) const {
  const CsrView S{S_offsets, S_indices, S_values}, V{V_offsets, V_indices, V_values};
  for (std::int64_t j = 0; j < V.rows(); ++j) add_row(V, j, 1, sum_V.row(0));
  for (std::int64_t i = 0; i < O.rows; ++i) {
    for (std::int64_t e = S.begin(i); e < S.end(i); ++e) {
      const float G = weight_beyond(S.value(e), at(m, i), at(full, i));
      at(l, i) += G;
      add_row(V, S.column(e), G, O.row(i));
    }
  }
}

}  // namespace attest::sparse
