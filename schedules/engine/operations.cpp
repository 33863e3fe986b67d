#include "schedules/engine/operations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/kernels/tiles/running_softmax.hpp"
#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"

namespace attest::schedules {

using namespace cpu;  // its arithmetic
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kPackedColumns = 64;  // columns of B^T packed at a time

// C += A B^T with the rows of B packed as columns.
void add_transposed(TileView C, ConstTileView A, ConstTileView B) {
  if (B.rows == 1) {
    for (std::int64_t i = 0; i < C.rows; ++i) C.row(i)[0] += dot(A.row(i), B.row(0), B.columns);
    return;
  }
  thread_local std::vector<float> packed;
  packed.resize(static_cast<std::size_t>(kPackedColumns * B.columns));
  for (std::int64_t first = 0; first < B.rows; first += kPackedColumns) {
    const std::int64_t count = std::min(kPackedColumns, B.rows - first);
    for (std::int64_t j = 0; j < count; ++j) {
      const float* row = B.row(first + j);
      for (std::int64_t l = 0; l < B.columns; ++l) {
        packed[static_cast<std::size_t>(l * count + j)] = row[l];
      }
    }
    multiply_add(C.data + first, C.stride, {A.data, A.stride, 1}, packed.data(), count, C.rows,
                 count, B.columns);
  }
}

// exp(value - shift), 0 where there is nothing to weigh.
float weight(float value, float shift) {
  if (value == kEmpty) return 0;
  exp_shifted(&value, 1, shift);
  return value;
}

ScoreBlock block_of(const ScoreRule& rule, std::int64_t query, std::int64_t rows, std::int64_t key,
                    std::int64_t keys) {
  return {rule.head, query, rows, key, keys};
}

// Pairs of one key with rows of queries, or of one query with rows of keys. The two words that they
// have in turn lie side by side here, so that the exponentials are taken together.
struct Pairs {
  std::vector<float> p, dS, slope;

  explicit Pairs(std::int64_t count)
      : p(static_cast<std::size_t>(count)), dS(p.size()), slope(p.size()) {}
  std::int64_t count() const { return static_cast<std::int64_t>(p.size()); }

  // p holds Q K^T, dS holds dO V^T of the block; LSE and D with stride 0 or 1.
  void finish(const ScoreRule& rule, const ScoreBlock& block, const float* LSE, const float* D,
              std::int64_t stride) {
    const attest_problem& problem = *rule.problem;
    finish_scores(problem, rule.batch, block, p.data(), slope.data());
    const float scale = softmax_scale(rule);
    const std::int64_t rows = stride == 0 ? 1 : count(), keys = stride == 0 ? count() : 1;
    probabilities(LSE, rows, keys, p.data());
    for (std::size_t e = 0; e < p.size(); ++e) {
      dS[e] = scale * p[e] * (dS[e] - D[static_cast<std::int64_t>(e) * stride]);
    }
    if (!has_slope(problem)) return;
    for (std::size_t e = 0; e < p.size(); ++e) dS[e] *= slope[e];
  }

  void last(TileView pair) const {
    if (p.empty()) return;
    pair.row(0)[0] = p.back();
    pair.row(0)[1] = dS.back();
  }
};

Pairs& pairs_of_thread(std::int64_t count) {
  thread_local Pairs pairs(0);
  for (auto* list : {&pairs.p, &pairs.dS, &pairs.slope}) {
    list->resize(static_cast<std::size_t>(count));
  }
  return pairs;
}

void add_scaled(float* to, float factor, const float* from, std::int64_t count) {
  multiply_add(to, count, {&factor, 1, 1}, from, count, 1, count, 1);
}

// P = exp(scores - shift), divided by `sums` where they are given; a row's derivatives of the
// softcap are kept from its scores.
void capped_gradients(const ScoreRule& rule, std::int64_t query, std::int64_t key, TileView dP,
                      TileView S, ConstTileView shift, const float* sums, ConstTileView D) {
  thread_local std::vector<float> slope;
  slope.resize(static_cast<std::size_t>(S.columns));
  for (std::int64_t i = 0; i < S.rows; ++i) {
    finish_scores(*rule.problem, rule.batch, block_of(rule, query + i, 1, key, S.columns), S.row(i),
                  slope.data());
    probabilities(shift.row(i), 1, S.columns, S.row(i));
    if (sums != nullptr && sums[i] != 0) scale_row(S.row(i), S.columns, 1.0f / sums[i]);
    score_gradients(S.row(i), slope.data(), D.row(i), 1, S.columns, dP.row(i));
  }
  scale_row(dP.data, dP.rows * dP.columns, softmax_scale(rule));
}

}  // namespace

void Fill::operator()(TileView tile) const {
  for (std::int64_t i = 0; i < tile.rows; ++i) std::fill_n(tile.row(i), tile.columns, value);
}

void Product::operator()(TileView all, ConstTileView A, ConstTileView B) const {
  const std::int64_t rows = form == Form::first_transposed ? A.columns : A.rows;
  const TileView C{all.row(first), rows, all.columns, all.stride};
  switch (form) {
    case Form::plain:
      return multiply_add(C.data, C.stride, {A.data, A.stride, 1}, B.data, B.stride, C.rows,
                          C.columns, B.rows);
    case Form::first_transposed:
      return multiply_add(C.data, C.stride, {A.data, 1, A.stride}, B.data, B.stride, C.rows,
                          C.columns, B.rows);
    case Form::second_transposed:
      return add_transposed(C, A, B);
  }
}

void FinishScores::operator()(TileView S) const {
  finish_scores(*rule.problem, rule.batch, block_of(rule, query, S.rows, key, S.columns), S.data,
                nullptr);
}

void StartRows::operator()(TileView m, TileView l) const { start_rows(m.rows, m.data, l.data); }

void UpdateSoftmax::operator()(TileView S, TileView m, TileView l, TileView O, TileView) const {
  update_rows(S.rows, S.columns, O.columns, S.data, m.data, l.data, O.data);
}

void UpdateNormalized::operator()(TileView S, TileView m, TileView l, TileView O, TileView) const {
  for (std::int64_t i = 0; i < S.rows; ++i) {
    const float before = l.data[i];
    // O holds the quotient: back to the sum, update, and divide again.
    scale_row(O.row(i), O.columns, before);
    update_rows(1, S.columns, O.columns, S.row(i), m.data + i, l.data + i, O.row(i));
    if (l.data[i] == 0) continue;
    const float inverse = 1.0f / l.data[i];
    scale_row(O.row(i), O.columns, inverse);
    scale_row(S.row(i), S.columns, inverse);
  }
}

void UpdateStatistics::operator()(TileView m, TileView l, ConstTileView S, TileView) const {
  constexpr std::int64_t kChunk = 64;
  float chunk[kChunk];
  for (std::int64_t i = 0; i < S.rows; ++i) {
    for (std::int64_t j = 0; j < S.columns; j += kChunk) {
      const std::int64_t count = std::min(kChunk, S.columns - j);
      std::copy_n(S.row(i) + j, count, chunk);
      update_rows(1, count, 0, chunk, m.data + i, l.data + i, nullptr);
    }
  }
}

void RaiseMaxima::operator()(TileView m, ConstTileView S) const {
  for (std::int64_t i = 0; i < S.rows; ++i) {
    float& maximum = m.row(i)[0];
    for (std::int64_t j = 0; j < S.columns; ++j) {
      const float score = S.row(i)[j];
      if (score > maximum || std::isnan(score)) maximum = score;
    }
  }
}

void CopyTile::operator()(TileView to, ConstTileView from) const {
  for (std::int64_t i = 0; i < to.rows; ++i) std::copy_n(from.row(i), to.columns, to.row(i));
}

void MergeSplit::operator()(TileView O, TileView m, TileView l, ConstTileView O_split,
                            ConstTileView LSE_split, TileView) const {
  for (std::int64_t i = 0; i < O.rows; ++i) {
    const float other = LSE_split.row(i)[0];
    if (other == kEmpty) continue;
    const float maximum = other > m.data[i] ? other : m.data[i];
    const float keep = weight(m.data[i], maximum), add = weight(other, maximum);
    scale_row(O.row(i), O.columns, keep);
    add_scaled(O.row(i), add, O_split.row(i), O.columns);
    l.data[i] = l.data[i] * keep + add;
    m.data[i] = maximum;
  }
}

void FinishRows::operator()(TileView O, TileView m, ConstTileView l) const {
  finish_rows(O.rows, O.columns, m.data, l.data, O.data);
}

void LogSumExp::operator()(TileView m, ConstTileView l) const {
  finish_rows(m.rows, 0, m.data, l.data, nullptr);
}

void SoftmaxRows::operator()(TileView S, TileView m, TileView l) const {
  start_rows(S.rows, m.data, l.data);
  update_rows(S.rows, S.columns, 0, S.data, m.data, l.data, nullptr);
  for (std::int64_t i = 0; i < S.rows; ++i) {
    if (l.data[i] != 0) scale_row(S.row(i), S.columns, 1.0f / l.data[i]);
  }
}

void Probabilities::operator()(TileView S, ConstTileView LSE) const {
  probabilities(LSE.data, S.rows, S.columns, S.data);
}

void ProbabilitiesOf::operator()(TileView S, ConstTileView m, ConstTileView l) const {
  probabilities(m.data, S.rows, S.columns, S.data);
  for (std::int64_t i = 0; i < S.rows; ++i) {
    if (l.data[i] != 0) scale_row(S.row(i), S.columns, 1.0f / l.data[i]);
  }
}

void Exponentials::operator()(TileView S, TileView d) const {
  for (std::int64_t i = 0; i < S.rows; ++i) {
    exp_shifted(S.row(i), S.columns, 0);
    d.data[i] += row_sum(S.row(i), S.columns);
  }
}

void AddRowSums::operator()(TileView d, ConstTileView P) const {
  for (std::int64_t i = 0; i < P.rows; ++i) d.row(i)[0] += row_sum(P.row(i), P.columns);
}

void DivideRows::operator()(TileView O, ConstTileView d) const {
  for (std::int64_t i = 0; i < O.rows; ++i) {
    if (d.data[i] != 0) scale_row(O.row(i), O.columns, 1.0f / d.data[i]);
  }
}

void AddRowDots::operator()(TileView D, ConstTileView dO, ConstTileView O) const {
  for (std::int64_t i = 0; i < D.rows; ++i) D.row(i)[0] += dot(dO.row(i), O.row(i), O.columns);
}

void ScoreGradients::operator()(TileView dP, ConstTileView P, ConstTileView D) const {
  score_gradients(P.data, nullptr, D.row(first), P.rows, P.columns, dP.row(first));
  scale_row(dP.row(first), P.rows * P.columns, scale);
}

void RowsOut::operator()(ConstTileView tile, TileView out) const {
  for (std::int64_t i = 0; i < out.rows; ++i) {
    std::copy_n(tile.row(first + i), out.columns, out.row(i));
  }
}

void SubtractRows::operator()(TileView D, ConstTileView dLSE) const {
  for (std::int64_t i = 0; i < D.rows; ++i) D.row(i)[0] -= dLSE.row(i)[0];
}

void CappedGradients::operator()(TileView dP, TileView S, ConstTileView LSE,
                                 ConstTileView D) const {
  capped_gradients(rule, query, key, dP, S, LSE, nullptr, D);
}

void CappedGradientsOf::operator()(TileView dP, TileView S, ConstTileView m, ConstTileView l,
                                   ConstTileView D) const {
  capped_gradients(rule, query, key, dP, S, m, l.data, D);
}

void QueryGradients::operator()(TileView dQ, ConstTileView Q, ConstTileView dO, ConstTileView LSE,
                                ConstTileView D, ConstTileView K, ConstTileView V,
                                TileView pair) const {
  Pairs& pairs = pairs_of_thread(Q.rows);
  for (std::int64_t i = 0; i < Q.rows; ++i) {
    pairs.p[static_cast<std::size_t>(i)] = dot(Q.row(i), K.row(0), K.columns);
    pairs.dS[static_cast<std::size_t>(i)] = dot(dO.row(i), V.row(0), V.columns);
  }
  pairs.finish(rule, block_of(rule, query, Q.rows, key, 1), LSE.data, D.data, 1);
  multiply_add(dQ.data, dQ.stride, {pairs.dS.data(), 1, 1}, K.data, K.stride, dQ.rows, dQ.columns,
               1);
  pairs.last(pair);
}

void KeyGradients::operator()(TileView dK, TileView dV, ConstTileView K, ConstTileView V,
                              ConstTileView Q, ConstTileView dO, ConstTileView LSE, ConstTileView D,
                              TileView pair) const {
  Pairs& pairs = pairs_of_thread(K.rows);
  for (std::int64_t j = 0; j < K.rows; ++j) {
    pairs.p[static_cast<std::size_t>(j)] = dot(Q.row(0), K.row(j), K.columns);
    pairs.dS[static_cast<std::size_t>(j)] = dot(dO.row(0), V.row(j), V.columns);
  }
  pairs.finish(rule, block_of(rule, query, 1, key, K.rows), LSE.data, D.data, 0);
  multiply_add(dV.data, dV.stride, {pairs.p.data(), 1, 1}, dO.data, dO.stride, dV.rows, dV.columns,
               1);
  multiply_add(dK.data, dK.stride, {pairs.dS.data(), 1, 1}, Q.data, Q.stride, dK.rows, dK.columns,
               1);
  pairs.last(pair);
}

void KeyGradientsOut::operator()(TileView dK, TileView dV, ConstTileView K, ConstTileView V,
                                 ConstTileView Q, ConstTileView dO, ConstTileView LSE,
                                 ConstTileView D, TileView pair, TileView dS) const {
  gradients(dK, dV, K, V, Q, dO, LSE, D, pair);
  std::copy_n(pairs_of_thread(K.rows).dS.data(), K.rows, dS.row(0));
}

void PairGradients::operator()(TileView dQ, TileView dK, TileView dV, ConstTileView Q,
                               ConstTileView dO, ConstTileView LSE, ConstTileView D,
                               ConstTileView K, ConstTileView V, TileView pair) const {
  KeyGradients{rule, query, key}(dK, dV, K, V, Q, dO, LSE, D, pair);
  add_scaled(dQ.row(0), pair.row(0)[1], K.row(0), dQ.columns);
}

void RowTimesMatrix::operator()(TileView out, TileView word, ConstTileView a,
                                ConstTileView B) const {
  Fill{0}(out);
  Product{}(out, a, B);
  word.row(0)[0] = out.row(0)[out.columns - 1];
}

void Residual::operator()(TileView c, TileView D, ConstTileView E) const {
  for (std::int64_t i = 0; i < c.rows; ++i) {
    float *row = c.row(i), sum = D.row(i)[0];
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const float weighed = row[j];
      row[j] = weighed - E.row(i)[j];
      sum += row[j] * weighed;
    }
    D.row(i)[0] = sum;
  }
}

void WeighGradients::operator()(TileView q, ConstTileView S, ConstTileView LSE,
                                ConstTileView D) const {
  for (std::int64_t i = 0; i < q.rows; ++i) {
    for (std::int64_t j = 0; j < q.columns; ++j) {
      q.row(i)[j] = weight(S.row(i)[j], LSE.row(i)[0]) * (q.row(i)[j] - D.row(i)[0]);
    }
  }
}

void WeighRows::operator()(TileView z, ConstTileView A1, ConstTileView c, ConstTileView LSE,
                           ConstTileView D, ConstTileView y, ConstTileView h, TileView pair) const {
  float* p = pair.row(0);
  for (std::int64_t i = 0; i < A1.rows; ++i) {
    p[0] = weight(dot(A1.row(i), y.row(0), y.columns), LSE.row(i)[0]);
    p[1] = p[0] * (dot(c.row(i), h.row(0), h.columns) - D.row(i)[0]);
    add_scaled(z.row(0), p[1], A1.row(i), z.columns);
  }
}

}  // namespace attest::schedules
