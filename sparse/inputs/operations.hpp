#pragma once

#include <bit>
#include <cstdint>

#include "io/machine/tile_view.hpp"

/// Arithmetic on tiles of sparse matrices, float32.
namespace attest::sparse {

/// Some rows of a sparse matrix as an operation sees them.
struct CsrView {
  io::ConstTileView offsets, indices, values;

  std::int64_t rows() const { return offsets.rows - 1; }
  std::int64_t begin(std::int64_t row) const { return word(offsets, row) - word(offsets, 0); }
  std::int64_t end(std::int64_t row) const { return begin(row + 1); }
  std::int64_t column(std::int64_t entry) const { return word(indices, entry); }
  float value(std::int64_t entry) const { return *values.row(entry); }

 private:
  static std::int32_t word(const io::ConstTileView& words, std::int64_t i) {
    return std::bit_cast<std::int32_t>(*words.row(i));
  }
};

struct FillWith {
  float value;
  void operator()(io::TileView tile) const;
};

/// Every element times a factor.
struct Multiply {
  float factor;
  void operator()(io::TileView tile) const;
};

/// S(i, j) = scale times the product of rows i of Q and j of K, NaN where they share no column.
struct SupportScores {
  float scale;
  void operator()(io::TileView S, io::ConstTileView Q_offsets, io::ConstTileView Q_indices,
                  io::ConstTileView Q_values, io::ConstTileView K_offsets,
                  io::ConstTileView K_indices, io::ConstTileView K_values) const;
};

/// The shift of a row before any key: 0, or -inf in rows whose support is every key (full is 1).
struct StartShifts {
  void operator()(io::TileView m, io::ConstTileView full) const;
};

/// O and l, sums over the support of weights beyond the background, take in the keys of S (NaN:
/// not of the support); their shift m rises where a score is larger. sum_V adds V.
struct AddSupport {
  void operator()(io::TileView O, io::TileView m, io::TileView l, io::TileView sum_V,
                  io::ConstTileView S, io::ConstTileView full, io::ConstTileView V_offsets,
                  io::ConstTileView V_indices, io::ConstTileView V_values) const;
};

/// O = (z sum_V + O) / l', m becomes LSE = m + log l', with z = e^-m and l' = l + keys z; z = 0 in
/// full rows.
struct FinishSupport {
  float keys;
  void operator()(io::TileView O, io::TileView m, io::ConstTileView l, io::ConstTileView sum_V,
                  io::ConstTileView full) const;
};

/// Entries of a product: C(i, j) += a(i) b(j) for entries of A and of B whose labels, their column,
/// are equal, at the entries of C that its offsets and indices name.
struct OuterUpdate {
  void operator()(io::TileView C_values, io::ConstTileView C_offsets, io::ConstTileView C_indices,
                  io::ConstTileView A_labels, io::ConstTileView A_indices,
                  io::ConstTileView A_values, io::ConstTileView B_labels,
                  io::ConstTileView B_indices, io::ConstTileView B_values) const;
};

/// Entries of a product: C(i, j) = the product of rows i of A and j of B.
struct InnerProducts {
  void operator()(io::TileView C_values, io::ConstTileView C_offsets, io::ConstTileView C_indices,
                  io::ConstTileView A_offsets, io::ConstTileView A_indices,
                  io::ConstTileView A_values, io::ConstTileView B_offsets,
                  io::ConstTileView B_indices, io::ConstTileView B_values) const;
};

/// m(i) = max of m(i) and the scores of a row; which keys they belong to is not needed.
struct RaiseShifts {
  void operator()(io::TileView m, io::ConstTileView S_offsets, io::ConstTileView S_values) const;
};

/// As AddSupport for entries of S, with the row's final shift m.
struct AddEntries {
  void operator()(io::TileView O, io::TileView l, io::TileView sum_V, io::ConstTileView m,
                  io::ConstTileView full, io::ConstTileView S_offsets, io::ConstTileView S_indices,
                  io::ConstTileView S_values, io::ConstTileView V_offsets,
                  io::ConstTileView V_indices, io::ConstTileView V_values) const;
};

}  // namespace attest::sparse
