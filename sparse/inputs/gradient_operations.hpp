#pragma once

#include "sparse/inputs/operations.hpp"

/// Arithmetic on tiles for the backward pass of sparse attention, float32. Tiles of scores hold NaN
/// where a pair is not of the support. m is LSE: e^-m is what every key weighs.
namespace attest::sparse {

/// D(i) += the product of rows i of dO and O.
struct AddDeltas {
  void operator()(io::TileView D, io::ConstTileView dO, io::ConstTileView O) const;
};

/// sum += the rows of a sparse matrix.
struct AddSparseRows {
  void operator()(io::TileView sum, io::ConstTileView offsets, io::ConstTileView indices,
                  io::ConstTileView values) const;
};

/// C(c, l) += sum over rows j of V(j, first + c) K(j, l), for the columns of V that C has.
struct AddInnerSums {
  std::int64_t first;
  void operator()(io::TileView C, io::ConstTileView V_offsets, io::ConstTileView V_indices,
                  io::ConstTileView V_values, io::ConstTileView K_offsets,
                  io::ConstTileView K_indices, io::ConstTileView K_values) const;
};

/// A(c, l) += sum over rows i of e^-m(i) dO(i, c) Q(i, l); where sum has a row also
/// sum(c) += e^-m(i) dO(i, c).
struct AddWeightedSums {
  void operator()(io::TileView A, io::TileView sum, io::ConstTileView dO, io::ConstTileView m,
                  io::ConstTileView full, io::ConstTileView Q_offsets, io::ConstTileView Q_indices,
                  io::ConstTileView Q_values) const;
};

/// b(l) += sum over rows i of e^-m(i) D(i) Q(i, l).
struct AddWeightedRows {
  void operator()(io::TileView b, io::ConstTileView D, io::ConstTileView m, io::ConstTileView full,
                  io::ConstTileView Q_offsets, io::ConstTileView Q_indices,
                  io::ConstTileView Q_values) const;
};

/// dQ(i) += sum over the rows c of X of dO(i, first + c) X(c).
struct AddDenseProduct {
  std::int64_t first;
  void operator()(io::TileView dQ, io::ConstTileView dO, io::ConstTileView X) const;
};

/// dQ(i) = e^-m(i) (dQ(i) - D(i) sum): what is common to all keys.
struct WeighCommon {
  void operator()(io::TileView dQ, io::ConstTileView sum, io::ConstTileView D, io::ConstTileView m,
                  io::ConstTileView full) const;
};

/// dK(j) += sum over the rows c of A of V(j, first + c) A(c).
struct AddSparseProduct {
  std::int64_t first;
  void operator()(io::TileView dK, io::ConstTileView A, io::ConstTileView V_offsets,
                  io::ConstTileView V_indices, io::ConstTileView V_values) const;
};

/// Every row plus a factor times the same row.
struct AddToRows {
  float factor;
  void operator()(io::TileView tile, io::ConstTileView row) const;
};

/// Scores become weights beyond the background, G.
struct WeighSupport {
  void operator()(io::TileView S, io::ConstTileView m, io::ConstTileView full) const;
};

/// Weights G become H(i, j) = G(i, j) (dO(i) V(j) - D(i)).
struct SupportGradients {
  void operator()(io::TileView G, io::ConstTileView dO, io::ConstTileView D,
                  io::ConstTileView V_offsets, io::ConstTileView V_indices,
                  io::ConstTileView V_values) const;
};

/// dQ(i) += sum over the support of H(i, j) K(j).
struct AddSupportRows {
  void operator()(io::TileView dQ, io::ConstTileView H, io::ConstTileView K_offsets,
                  io::ConstTileView K_indices, io::ConstTileView K_values) const;
};

/// dV(j) += sum over the support of G(i, j) dO(i).
struct AddSupportColumns {
  void operator()(io::TileView dV, io::ConstTileView G, io::ConstTileView dO) const;
};

/// dK(j) += sum over the support of H(i, j) Q(i).
struct AddSparseColumns {
  void operator()(io::TileView dK, io::ConstTileView H, io::ConstTileView Q_offsets,
                  io::ConstTileView Q_indices, io::ConstTileView Q_values) const;
};

// The same of compressed tiles, which have the pairs of the support alone.

/// Scores become weights beyond the background, G.
struct WeighEntries {
  void operator()(io::TileView S_values, io::ConstTileView S_offsets, io::ConstTileView m,
                  io::ConstTileView full) const;
};

/// dP(i, j) += dO(i) V(j).
struct AddEntryProducts {
  void operator()(io::TileView dP_values, io::ConstTileView offsets, io::ConstTileView indices,
                  io::ConstTileView dO, io::ConstTileView V_offsets, io::ConstTileView V_indices,
                  io::ConstTileView V_values) const;
};

/// dP becomes H(i, j) = G(i, j) (dP(i, j) - D(i)).
struct EntryGradients {
  void operator()(io::TileView dP_values, io::ConstTileView offsets, io::ConstTileView G_values,
                  io::ConstTileView D) const;
};

/// dQ(i) += sum over the support of H(i, j) K(j).
struct AddEntryRows {
  void operator()(io::TileView dQ, io::ConstTileView H_offsets, io::ConstTileView H_indices,
                  io::ConstTileView H_values, io::ConstTileView K_offsets,
                  io::ConstTileView K_indices, io::ConstTileView K_values) const;
};

/// dK(j) += sum over the support of H(i, j) Q(i).
struct AddEntryColumns {
  void operator()(io::TileView dK, io::ConstTileView H_offsets, io::ConstTileView H_indices,
                  io::ConstTileView H_values, io::ConstTileView Q_offsets,
                  io::ConstTileView Q_indices, io::ConstTileView Q_values) const;
};

/// dV(j) += sum over the support of G(i, j) dO(i).
struct AddEntryDense {
  void operator()(io::TileView dV, io::ConstTileView G_offsets, io::ConstTileView G_indices,
                  io::ConstTileView G_values, io::ConstTileView dO) const;
};

}  // namespace attest::sparse
