#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/numerics.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/bounds/steps/magnitudes.hpp"
#include "reference/bounds/steps/score_error.hpp"
#include "reference/group.hpp"

/// Errors of a backward pass before anything is summed over keys or rows: those of each row's LSE
/// and delta, and those of each entry of P and dS (docs/theory/error-bounds/backward.md).
namespace attest::reference {

/// One group's tensors as matrices; NaN and infinities are 0.
struct GradientInputs {
  const Problem& problem;
  const Numerics& numerics;
  const Group& group;
  Matrix Q, K, V, dO;
  Vector dLSE;
  Vector alike_dO;  // alike_rows(dO)
};

/// Facts known of the stacked rows: exact values, and measured errors of the stored ones.
struct RowErrors {
  Vector lse, delta;                                   // exact
  Vector lse_error, lse_likely;                        // EL, and as the probabilistic bound has it
  Vector lse_shift, lse_rounding;                      // its parts: measured, signed; random
  Vector lse_unseen;                                   // and what may err alike in all rows
  Vector delta_proved, delta_linear, delta_deviation;  // ED and its parts
  Vector delta_bias;  // the part of delta_linear that errs the same way in all rows
  Vector inherited;   // the part that what is stored leaves in delta, signed
};

/// With a delta made of pairs, its own errors are still 0: add_delta_errors adds them.
/// `delta_error` is that of the reference's Backward, `unseen` forward's bound of an LSE that is
/// not stored.
RowErrors row_errors(const GradientInputs& in, LseBase base, const Stored& stored,
                     const ErrorBound& unseen, const Forward& exact, const Tensor& delta_error);

/// Error weights of one summand P or dS per (row, key), as multiples of the operand it meets.
struct WeightedErrors {
  Matrix proved;     // largest error
  Matrix linear;     // its biased part
  Matrix deviation;  // standard deviation of the random part
};

/// Logarithms of errors of P, the largest of a row's keys.
struct LogErrors {
  double likely = 0;    // with the probabilistic bound's confidence
  double possible = 0;  // proved
  double typical = 0;   // by which typical errors grow beyond first order

  void include(const LogErrors& other) {
    likely = std::max(likely, other.likely);
    possible = std::max(possible, other.possible);
    typical = std::max(typical, other.typical);
  }
};

/// A run of keys small enough that the entries of a block of rows with it, a dozen matrices, stay
/// near the processor, and what the products with it need.
struct KeyTile {
  std::int64_t first = 0, count = 0;
  std::int64_t output = 0;  // of its first key, among the keys of all tiles
  Matrix K, V;              // transposed: (head_dim, count)
  Magnitudes of_K, of_V;    // of those
};

/// With `keys` (not null; rising positions) those alone, neighbours together.
std::vector<KeyTile> key_tiles(const GradientInputs& in,
                               const std::vector<std::int64_t>* keys = nullptr);

/// A block of rows of the operands.
struct RowBlock {
  std::int64_t first = 0, count = 0;
  Matrix Q, dO;  // Q with the scale
  Magnitudes of_Q, of_dO;

  RowBlock(const GradientInputs& in, std::int64_t first_row, std::int64_t rows);
};

/// The products of a block of rows and a tile of keys, exact, and what the computed scores err.
struct TileProducts {
  Scores scores;
  ScoreError error;
  Matrix dP;         // (rows, keys): dO V^T
  Magnitudes of_dP;  // |dO| |V|^T

  TileProducts(const GradientInputs& in, const RowBlock& block, const KeyTile& tile);
};

/// A block of rows against a tile of keys; 0 where a key is not visible.
struct EntryErrors {
  Matrix P, dS;               // exact P and |dS|
  Matrix P_slope;             // with a softcap, P times its slope: what an error of delta meets
  WeightedErrors dV, dK, dQ;  // weights of |dO|, |Q|, |K|
  // Errors that the stored LSE and O leave in P and dS: known, signs and all, and in dV and dK
  // their sum.
  Matrix inherited_P, inherited_dS;
  // Deviations that dP's own roundings bring to dS, signed: where rows of dO are alike they add up
  // as they are. Empty where none are.
  Matrix alike;
  // With a bias and a softcap, or a cast that loses more of a scaled dS, |dS| before these, and its
  // errors in sums over rows and what is known of them: what dBias has. Else empty, for they are
  // dS's.
  Matrix raw_dS, inherited_raw;
  WeightedErrors raw;
  Vector row_terms, key_terms;  // visible keys per row, rows that see the key of the tile
  std::vector<LogErrors> logs;  // per row

  const Matrix& magnitude_of_bias() const { return raw_dS.size() > 0 ? raw_dS : dS; }
  const Matrix& inherited_of_bias() const {
    return raw_dS.size() > 0 ? inherited_raw : inherited_dS;
  }
  const WeightedErrors& of_bias() const { return raw_dS.size() > 0 ? raw : dK; }
  const Matrix& delta_weights() const { return P_slope.size() > 0 ? P_slope : P; }
};

/// Errors of one computed weight P, as logarithms: what is biased or shared and what is random
/// depend on what a sum runs over.
struct WeightError {
  SummedError over_keys, over_rows;
  double proved = 0;  // the largest, without that of LSE
  double own = 0;     // e^EL (e^proved - 1): relative, without what the row's LSE leaves
};

/// The errors of weights under one contract.
class WeightErrors {
 public:
  WeightErrors(const Numerics& numerics, const ScoreError& scores);

  /// Returns the error of entry (i, j), whose exact score is s, in a row with LSE and its error EL;
  /// `factor` is e^EL.
  WeightError operator()(Eigen::Index i, Eigen::Index j, double s, double LSE, double EL,
                         double factor) const;

 private:
  const ScoreError& scores_;
  double u_, exponential_;
};

/// Largest relative error of the casts of dS, to P's type and under `score_cast` to that of the
/// scores: before its way through their derivatives, which round it again, and behind it. And what
/// they lose of a small dS.
struct CastsOfDS {
  double raw = 0, raw_lost = 0;
  double all = 0, all_lost = 0;

  CastsOfDS(const Numerics& numerics, const Problem& problem);
};

/// Error that rounding dP to the declared type brings to it, where the sum that made it errs by so
/// much.
class CastOfDP {
 public:
  explicit CastOfDP(const Numerics& numerics)
      : roundoff_(numerics.dp_roundoff), underflow_(numerics.dp_underflow) {}
  double operator()(double dP, double sum_error) const {
    return roundoff_ * (std::abs(dP) + sum_error) + underflow_;
  }

 private:
  double roundoff_, underflow_;
};

/// Beyond this logarithm of an error nothing is proved, and exp stays finite.
inline constexpr double kLargestLogError = 300;

/// Adds to row_terms and logs, which begin_rows empties; replaces all else.
/// [proptest/suites/validation_test]
void begin_rows(const RowBlock& block, EntryErrors& entries);
void entry_errors(const GradientInputs& in, const RowErrors& rows, const RowBlock& block,
                  const KeyTile& tile, EntryErrors& entries);

}  // namespace attest::reference
