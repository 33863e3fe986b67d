#include "schedules/walks/staircase.hpp"

#include <algorithm>
#include <limits>

#include "cpu/kernels/tiles/running_softmax.hpp"
#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"

namespace attest::schedules {

using namespace cpu;  // its arithmetic
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

}  // namespace

Staircase::Staircase(io::Range queries, io::Range keys) : queries_(queries), keys_(keys) {
  rows_.reserve(static_cast<std::size_t>(queries.count()));
}

Staircase::Staircase(const ScoreRule& rule, io::Range queries, io::Range keys)
    : Staircase(queries, keys) {
  for (std::int64_t i = queries.begin; i < queries.end; ++i) add_row(keys_within(rule, i, keys));
}

Staircase Staircase::of_mask(const ScoreRule& rule, io::Range queries, io::Range keys) {
  Staircase stairs(queries, keys);
  const attest_problem& problem = *rule.problem;
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    io::Range seen = keys_within(rule, i, keys);
    if (problem.mask.boolean != nullptr) {
      const std::uint8_t* row = problem.mask.boolean + i * problem.seqlen_k;
      while (seen.begin < seen.end && row[seen.begin] == 0) ++seen.begin;
      while (seen.begin < seen.end && row[seen.end - 1] == 0) --seen.end;
    }
    stairs.add_row(seen.count() > 0 ? seen : io::Range{keys.begin, keys.begin});
  }
  return stairs;
}

void Staircase::add_row(io::Range seen) {
  rows_.push_back({{seen.begin - keys_.begin, seen.end - keys_.begin}, pairs_});
  pairs_ += seen.count();
}

void StairProducts::operator()(TileView S, ConstTileView a, ConstTileView b) const {
  std::int64_t i = 0;
  for (const Staircase::Row& row : stairs.rows()) {
    const float word = a.row(i++)[0];
    float* pair = S.data + row.place;
    for (std::int64_t j = row.keys.begin; j < row.keys.end; ++j) *pair++ += word * b.row(j)[0];
  }
}

void StairProductsAndDots::operator()(TileView S, ConstTileView a, ConstTileView b, TileView D,
                                      ConstTileView o) const {
  StairProducts{stairs, Passing::queries}(S, a, b);
  for (std::int64_t i = 0; i < D.rows; ++i) D.row(i)[0] += a.row(first + i)[0] * o.row(i)[0];
}

void StairScores::operator()(TileView S) const {
  std::int64_t query = stairs.first_query();
  for (const Staircase::Row& row : stairs.rows()) {
    const ScoreBlock block{rule.head, query++, 1, stairs.first_key() + row.keys.begin,
                           row.keys.count()};
    finish_scores(*rule.problem, rule.batch, block, S.data + row.place, nullptr);
  }
}

void StairSoftmax::operator()(TileView S, TileView m, TileView l, TileView kept, TileView) const {
  std::int64_t i = 0;
  for (const Staircase::Row& row : stairs.rows()) {
    const bool before = i < kept.rows;
    float& maximum = m.row(i)[0];
    maximum = before ? kept.row(i)[0] : kEmpty;
    update_rows(1, row.keys.count(), 0, S.data + row.place, &maximum, l.row(offset + i), nullptr);
    if (before) {
      float& factor = kept.row(i)[0];
      if (factor == kEmpty) {
        factor = 0;
      } else {
        exp_shifted(&factor, 1, maximum);
      }
    }
    ++i;
  }
}

void StairProbabilities::operator()(TileView S, ConstTileView LSE) const {
  std::int64_t i = 0;
  for (const Staircase::Row& row : stairs.rows()) {
    probabilities(LSE.row(i++), 1, row.keys.count(), S.data + row.place);
  }
}

void StairOut::operator()(ConstTileView S, TileView out) const {
  const Staircase::Row& row = stairs.rows()[static_cast<std::size_t>(query)];
  std::copy_n(S.data + row.place, row.keys.count(), out.row(0));
}

void StairGradients::operator()(TileView dP, ConstTileView P, ConstTileView before,
                                ConstTileView D) const {
  const Staircase::Row& row = stairs.rows()[static_cast<std::size_t>(query)];
  const float* delta = query < before.rows ? before.row(query) : D.row(query - before.rows);
  float* pairs = dP.data + row.place;
  score_gradients(P.row(0), nullptr, delta, 1, row.keys.count(), pairs);
  scale_row(pairs, row.keys.count(), scale);
}

void StairSums::operator()(TileView sums, ConstTileView S, ConstTileView x) const {
  std::int64_t i = 0;
  for (const Staircase::Row& row : stairs.rows()) {
    const float* pair = S.data + row.place;
    for (std::int64_t j = row.keys.begin; j < row.keys.end; ++j) {
      if (passing == Passing::keys) {
        sums.row(i)[0] += *pair++ * x.row(j)[0];
      } else {
        sums.row(j)[0] += *pair++ * x.row(i)[0];
      }
    }
    ++i;
  }
}

void StairSum::operator()(TileView sum, ConstTileView S, ConstTileView x) const {
  const Staircase::Row& row = stairs.rows()[static_cast<std::size_t>(query)];
  const float* pair = S.data + row.place;
  for (std::int64_t j = row.keys.begin; j < row.keys.end; ++j) {
    sum.row(0)[0] += *pair++ * x.row(j)[0];
  }
}

void WordsIn::operator()(TileView column, ConstTileView words) const {
  for (std::int64_t i = 0; i < words.rows; ++i) column.row(first + i)[0] = words.row(i)[0];
}

void RescaleColumn::operator()(TileView column, ConstTileView kept) const {
  for (std::int64_t i = 0; i < kept.rows; ++i) column.row(i)[0] *= kept.row(i)[0];
}

void EndStatistics::operator()(TileView m, ConstTileView l) const {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    finish_rows(1, 0, m.row(i), l.row(rows.offset + i), nullptr);
  }
}

void EndOutputs::operator()(TileView column, ConstTileView l) const {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    const float sum = l.row(rows.offset + i)[0];
    if (sum != 0) column.row(i)[0] *= 1.0f / sum;
  }
}

}  // namespace attest::schedules
