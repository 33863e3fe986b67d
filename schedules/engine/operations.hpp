#pragma once

#include <cstdint>

#include "io/machine/tile_view.hpp"
#include "schedules/engine/head.hpp"

/// The arithmetic of the schedules, a whole tile at a time; machines that hold data run it as it
/// stands here. Scratch tiles are row-major without gaps.
///
/// The words an operation touches are those of its tiles: each can be carried out one word at a
/// time, a result in the place of an operand, as schedules/engine/trace.hpp writes it down. Vector
/// lanes and a packed copy of an operand are a matter of speed only. A tile named `word` is one
/// word for what a row needs for a moment.  [schedules/recording_test]
namespace attest::schedules {

using io::ConstTileView;
using io::TileView;

struct Fill {
  float value;
  void operator()(TileView tile) const;
};

/// C += A B, A B^T or A^T B, in the rows of C from `first` on; each element a sum over the inner
/// extent in ascending order. B may be a stream of rows.
enum class Form : std::uint8_t { plain, second_transposed, first_transposed };
struct Product {
  Form form = Form::plain;
  std::int64_t first = 0;
  void operator()(TileView C, ConstTileView A, ConstTileView B) const;
};

/// S = softcap(scale S) + ALiBi, -inf where masked; S holds Q K^T of queries and keys from `query`
/// and `key` on.
struct FinishScores {
  const ScoreRule& rule;
  std::int64_t query, key;
  void operator()(TileView S) const;
};

/// m = -inf, l = 0: statistics of rows without scores.
struct StartRows {
  void operator()(TileView m, TileView l) const;
};

/// Takes a tile of scores in: m and l of the rows so far, S becomes exp(S - m), O is rescaled.
struct UpdateSoftmax {
  void operator()(TileView S, TileView m, TileView l, TileView O, TileView word) const;
};

/// The same, with O divided by l after each tile as FlashAttention stores it: S becomes
/// exp(S - m) / l.
struct UpdateNormalized {
  void operator()(TileView S, TileView m, TileView l, TileView O, TileView word) const;
};

/// Takes a tile of scores into m and l only.
struct UpdateStatistics {
  void operator()(TileView m, TileView l, ConstTileView S, TileView word) const;
};

/// m = the larger of m and the scores of its row; NaN if one of these is.
struct RaiseMaxima {
  void operator()(TileView m, ConstTileView S) const;
};

/// to = from.
struct CopyTile {
  void operator()(TileView to, ConstTileView from) const;
};

/// Takes the result of a split of the keys in: O_split (normalized) with its LSE_split.
struct MergeSplit {
  void operator()(TileView O, TileView m, TileView l, ConstTileView O_split,
                  ConstTileView LSE_split, TileView word) const;
};

/// O /= l (rows with l = 0 stay), m becomes LSE = m + log l.
struct FinishRows {
  void operator()(TileView O, TileView m, ConstTileView l) const;
};

/// m becomes LSE = m + log l.
struct LogSumExp {
  void operator()(TileView m, ConstTileView l) const;
};

/// S becomes softmax of its rows; m and l are left with their statistics.
struct SoftmaxRows {
  void operator()(TileView S, TileView m, TileView l) const;
};

/// S becomes exp(S - LSE), 0 in rows with LSE = -inf.
struct Probabilities {
  void operator()(TileView S, ConstTileView LSE) const;
};

/// S becomes exp(S - m) / l: probabilities from what FlashAttention saves.
struct ProbabilitiesOf {
  void operator()(TileView S, ConstTileView m, ConstTileView l) const;
};

/// S becomes exp(S), d += its row sums. Overflows above 88 (Saha and Ye 2024, Algorithm 1).
struct Exponentials {
  void operator()(TileView S, TileView d) const;
};

/// d(i) += sum over j of P(i, j).
struct AddRowSums {
  void operator()(TileView d, ConstTileView P) const;
};

/// Rows of O divided by d; rows with d = 0 stay.
struct DivideRows {
  void operator()(TileView O, ConstTileView d) const;
};

/// D(i) += sum over c of dO(i, c) O(i, c).
struct AddRowDots {
  void operator()(TileView D, ConstTileView dO, ConstTileView O) const;
};

/// D(i) -= dLSE(i).
struct SubtractRows {
  void operator()(TileView D, ConstTileView dLSE) const;
};

/// The rows of a tile from `first` on leave, as many as are taken.
struct RowsOut {
  std::int64_t first;
  void operator()(ConstTileView tile, TileView out) const;
};

/// dP becomes dS = scale P (dP - D), in the rows from `first` on that P has.
struct ScoreGradients {
  float scale;
  std::int64_t first = 0;
  void operator()(TileView dP, ConstTileView P, ConstTileView D) const;
};

/// S = Q K^T becomes P = exp(scores - LSE), dP becomes dS = scale P (dP - D) times the derivative
/// of the softcap: pair by pair, S is used for the derivative before it becomes P.
struct CappedGradients {
  const ScoreRule& rule;
  std::int64_t query, key;
  void operator()(TileView dP, TileView S, ConstTileView LSE, ConstTileView D) const;
};

/// The same with P = exp(scores - m) / l, from what FlashAttention saves.
struct CappedGradientsOf {
  const ScoreRule& rule;
  std::int64_t query, key;
  void operator()(TileView dP, TileView S, ConstTileView m, ConstTileView l, ConstTileView D) const;
};

/// One key against the resident queries, a pair at a time in the two words of `pair`:
/// dQ += dS K with dS = scale exp(s - LSE) (dO V^T - D).
struct QueryGradients {
  const ScoreRule& rule;
  std::int64_t query, key;
  void operator()(TileView dQ, ConstTileView Q, ConstTileView dO, ConstTileView LSE,
                  ConstTileView D, ConstTileView K, ConstTileView V, TileView pair) const;
};

/// One query against the resident keys: dK += dS^T Q, dV += P^T dO.
struct KeyGradients {
  const ScoreRule& rule;
  std::int64_t query, key;
  void operator()(TileView dK, TileView dV, ConstTileView K, ConstTileView V, ConstTileView Q,
                  ConstTileView dO, ConstTileView LSE, ConstTileView D, TileView pair) const;
};

/// The same, each dS leaving as it is made.
struct KeyGradientsOut {
  KeyGradients gradients;
  void operator()(TileView dK, TileView dV, ConstTileView K, ConstTileView V, ConstTileView Q,
                  ConstTileView dO, ConstTileView LSE, ConstTileView D, TileView pair,
                  TileView dS) const;
};

/// One query and one key: dQ += dS K, dK += dS Q, dV += P dO.
struct PairGradients {
  const ScoreRule& rule;
  std::int64_t query, key;
  void operator()(TileView dQ, TileView dK, TileView dV, ConstTileView Q, ConstTileView dO,
                  ConstTileView LSE, ConstTileView D, ConstTileView K, ConstTileView V,
                  TileView pair) const;
};

/// out = a B, a row whose elements leave one by one from `word`.
struct RowTimesMatrix {
  void operator()(TileView out, TileView word, ConstTileView a, ConstTileView B) const;
};

/// Forms the attention loss's residual: c holds f h and becomes f h - E, D += rowsum(c o f h).
struct Residual {
  void operator()(TileView c, TileView D, ConstTileView E) const;
};

/// Forms the attention loss's weighted gradients: q = c h^T becomes p = exp(S - LSE) (q - D).
struct WeighGradients {
  void operator()(TileView q, ConstTileView S, ConstTileView LSE, ConstTileView D) const;
};

/// One key of the attention loss, a row of A1 and c at a time in the two words of `pair`:
/// z += p_i A1_i with p_i = exp(A1_i y - LSE_i) (c_i h - D_i).
struct WeighRows {
  void operator()(TileView z, ConstTileView A1, ConstTileView c, ConstTileView LSE, ConstTileView D,
                  ConstTileView y, ConstTileView h, TileView pair) const;
};

/// The factor of Q K^T as the arithmetic uses it.
inline float softmax_scale(const ScoreRule& rule) {
  return static_cast<float>(rule.problem->softmax_scale);
}

}  // namespace attest::schedules
