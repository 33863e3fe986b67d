#pragma once

#include <vector>

#include "schedules/engine/operations.hpp"
#include "schedules/walks/band.hpp"

/// The pairs that bands leave of a block of queries and keys, held without gaps, and the arithmetic
/// on them: a tile of one row with the pairs of the first query, then those of the second, and so
/// on, while columns of the matrices pass by. One side's column stays, the other side's words come
/// one by one. [schedules/walks/staircase_test]
namespace attest::schedules {

/// Which pairs of a block of queries and keys are in a band, and where they lie.
/// Cost: time and memory linear in the queries.
class Staircase {
 public:
  Staircase(const ScoreRule& rule, io::Range queries, io::Range keys);

  /// Cuts each query's keys, too, to those from the first to the last that its boolean mask shows.
  static Staircase of_mask(const ScoreRule& rule, io::Range queries, io::Range keys);

  /// A query's keys, counted from the block's first, and the place of the first of these pairs.
  struct Row {
    io::Range keys;
    std::int64_t place;

    /// Where the pair with a key lies. Requires: it is one of `keys`.
    std::int64_t at(std::int64_t key) const { return place + key - keys.begin; }
    bool sees(std::int64_t key) const { return key >= keys.begin && key < keys.end; }
  };
  const std::vector<Row>& rows() const { return rows_; }

  std::int64_t pairs() const { return pairs_; }
  std::int64_t first_query() const { return queries_.begin; }
  std::int64_t first_key() const { return keys_.begin; }
  std::int64_t keys() const { return keys_.count(); }

 private:
  Staircase(io::Range queries, io::Range keys);
  void add_row(io::Range seen);

  io::Range queries_, keys_;
  std::vector<Row> rows_;
  std::int64_t pairs_ = 0;
};

/// Side whose words come one by one, in a stream of one column.
enum class Passing : std::uint8_t { queries, keys };

/// S += a b^T of a column of the queries' rows and one of the keys'.
struct StairProducts {
  const Staircase& stairs;
  Passing passing;
  void operator()(TileView S, ConstTileView a, ConstTileView b) const;
};

/// The same, queries passing, and D += a o of the queries from `first` on, whose words o come
/// with those of a.
struct StairProductsAndDots {
  const Staircase& stairs;
  std::int64_t first;
  void operator()(TileView S, ConstTileView a, ConstTileView b, TileView D, ConstTileView o) const;
};

/// Products become scores: scale, softcap, ALiBi, -inf where a boolean mask hides a pair.
struct StairScores {
  const ScoreRule& rule;
  const Staircase& stairs;
  void operator()(TileView S) const;
};

/// Takes scores into the rows' statistics: S becomes exp(S - m), m the maxima so far; l, of which
/// the first row stands at `offset`, their sums. `kept` has the maxima that the first queries had
/// before, and becomes what the sums from before are multiplied with.
struct StairSoftmax {
  const Staircase& stairs;
  std::int64_t offset;
  void operator()(TileView S, TileView m, TileView l, TileView kept, TileView word) const;
};

/// S becomes exp(S - LSE), 0 in rows with LSE = -inf; LSE passes by.
struct StairProbabilities {
  const Staircase& stairs;
  void operator()(TileView S, ConstTileView LSE) const;
};

/// The pairs of one query leave.
struct StairOut {
  const Staircase& stairs;
  std::int64_t query;  // counted from the first
  void operator()(ConstTileView S, TileView out) const;
};

/// dP of one query becomes dS = scale P (dP - D), P passing. The D of the first queries, one after
/// another, passes as `before`, that of the others stays in `D`.
struct StairGradients {
  const Staircase& stairs;
  std::int64_t query;  // counted from the first
  float scale;
  void operator()(TileView dP, ConstTileView P, ConstTileView before, ConstTileView D) const;
};

/// sums += S x, a column of the queries' rows, keys passing; or S^T x of the keys', queries
/// passing.
struct StairSums {
  const Staircase& stairs;
  Passing passing;
  void operator()(TileView sums, ConstTileView S, ConstTileView x) const;
};

/// sum += S x of one query, x the keys' column.
struct StairSum {
  const Staircase& stairs;
  std::int64_t query;  // counted from the first
  void operator()(TileView sum, ConstTileView S, ConstTileView x) const;
};

/// Words of a column come in, from a row on.
struct WordsIn {
  std::int64_t first = 0;
  void operator()(TileView column, ConstTileView words) const;
};

/// The first rows of a column times `kept`.
struct RescaleColumn {
  void operator()(TileView column, ConstTileView kept) const;
};

/// The first `count` rows have seen all of their keys; the sum of the first stands at `offset` of
/// l.
struct EndedRows {
  std::int64_t count, offset;
};

/// m becomes LSE = m + log l in these.
struct EndStatistics {
  EndedRows rows;
  void operator()(TileView m, ConstTileView l) const;
};

/// A column of O is divided by l in these, where l is not 0.
struct EndOutputs {
  EndedRows rows;
  void operator()(TileView column, ConstTileView l) const;
};

// Word by word, for a recorder: schedules/engine/trace.hpp.

template <class R, class Tile>
void trace(R& recorder, const StairProducts& products, const Tile& S, const Tile& a,
           const Tile& b) {
  const auto& rows = products.stairs.rows();
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto row = [&](std::int64_t i) { return rows[static_cast<std::size_t>(i)]; };
  if (products.passing == Passing::queries) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t word = a.word(i, 0);  // of a stream, used once
      for (std::int64_t j = row(i).keys.begin; j < row(i).keys.end; ++j) {
        recorder.accumulate(S.word(0, row(i).at(j)), {word, b.word(j, 0)});
      }
    }
    return;
  }
  for (std::int64_t j = 0; j < products.stairs.keys(); ++j) {
    const std::int64_t word = b.word(j, 0);
    for (std::int64_t i = 0; i < count; ++i) {
      if (row(i).sees(j)) recorder.accumulate(S.word(0, row(i).at(j)), {a.word(i, 0), word});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const StairProductsAndDots& products, const Tile& S, const Tile& a,
           const Tile& b, const Tile& D, const Tile& o) {
  std::int64_t i = 0;
  for (const Staircase::Row& row : products.stairs.rows()) {
    const std::int64_t word = a.word(i, 0);
    for (std::int64_t j = row.keys.begin; j < row.keys.end; ++j) {
      recorder.accumulate(S.word(0, row.at(j)), {word, b.word(j, 0)});
    }
    const std::int64_t fresh = i++ - products.first;
    if (fresh >= 0) recorder.accumulate(D.word(fresh, 0), {word, o.word(fresh, 0)});
  }
}

template <class R, class Tile>
void trace(R&, const StairScores&, const Tile&) {}

template <class R, class Tile>
void trace(R& recorder, const StairSoftmax& softmax, const Tile& S, const Tile& m, const Tile& l,
           const Tile& kept, const Tile& word) {
  const std::int64_t maximum = word.word(0, 0);
  std::int64_t i = 0;
  for (const Staircase::Row& row : softmax.stairs.rows()) {
    const std::int64_t sum = l.word(softmax.offset + i, 0);
    const bool before = i < kept.rows();
    if (before) {
      recorder.copy(maximum, kept.word(i, 0));
    } else {
      recorder.clear(maximum);
    }
    for (std::int64_t j = row.keys.begin; j < row.keys.end; ++j) {
      recorder.accumulate(maximum, {S.word(0, row.at(j))});
    }
    if (before) {
      recorder.form(kept.word(i, 0), {kept.word(i, 0), maximum});
      recorder.rescale(sum, {kept.word(i, 0)});
    }
    recorder.copy(m.word(i, 0), maximum);
    recorder.clear(maximum);
    for (std::int64_t j = row.keys.begin; j < row.keys.end; ++j) {
      recorder.form(S.word(0, row.at(j)), {S.word(0, row.at(j)), m.word(i, 0)});
      recorder.accumulate(sum, {S.word(0, row.at(j))});
    }
    ++i;
  }
}

template <class R, class Tile>
void trace(R& recorder, const StairProbabilities& probabilities, const Tile& S, const Tile& LSE) {
  std::int64_t i = 0;
  for (const Staircase::Row& row : probabilities.stairs.rows()) {
    const std::int64_t word = LSE.word(i++, 0);
    for (std::int64_t j = row.keys.begin; j < row.keys.end; ++j) {
      recorder.form(S.word(0, row.at(j)), {S.word(0, row.at(j)), word});
    }
  }
}

template <class R, class Tile>
void trace(R&, const StairOut& pairs, const Tile& S, const Tile& out) {
  const Staircase::Row& row = pairs.stairs.rows()[static_cast<std::size_t>(pairs.query)];
  for (std::int64_t j = 0; j < row.keys.count(); ++j) out.send(0, j, S.word(0, row.place + j));
}

template <class R, class Tile>
void trace(R& recorder, const StairGradients& gradients, const Tile& dP, const Tile& P,
           const Tile& before, const Tile& D) {
  const Staircase::Row& row = gradients.stairs.rows()[static_cast<std::size_t>(gradients.query)];
  const std::int64_t passed = before.rows();
  const bool passes = gradients.query < passed;
  const std::int64_t delta =
      passes ? before.word(gradients.query, 0) : D.word(gradients.query - passed, 0);
  for (std::int64_t j = 0; j < row.keys.count(); ++j) {
    const std::int64_t pair = dP.word(0, row.place + j);
    recorder.form(pair, {pair, P.word(0, j), delta});
  }
}

template <class R, class Tile>
void trace(R& recorder, const StairSums& sums, const Tile& to, const Tile& S, const Tile& x) {
  const auto& rows = sums.stairs.rows();
  const auto count = static_cast<std::int64_t>(rows.size());
  const bool queries = sums.passing == Passing::queries;
  for (std::int64_t n = 0; n < x.rows(); ++n) {
    const std::int64_t word = x.word(n, 0);
    const Staircase::Row* passing = queries ? &rows[static_cast<std::size_t>(n)] : nullptr;
    for (std::int64_t other = 0; other < (queries ? sums.stairs.keys() : count); ++other) {
      const auto& row = queries ? *passing : rows[static_cast<std::size_t>(other)];
      const std::int64_t key = queries ? other : n;
      if (row.sees(key)) recorder.accumulate(to.word(other, 0), {S.word(0, row.at(key)), word});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const StairSum& sum, const Tile& to, const Tile& S, const Tile& x) {
  const Staircase::Row& row = sum.stairs.rows()[static_cast<std::size_t>(sum.query)];
  for (std::int64_t j = row.keys.begin; j < row.keys.end; ++j) {
    recorder.accumulate(to.word(0, 0), {S.word(0, row.at(j)), x.word(j, 0)});
  }
}

template <class R, class Tile>
void trace(R& recorder, const WordsIn& in, const Tile& column, const Tile& words) {
  for (std::int64_t i = 0; i < words.rows(); ++i) {
    recorder.copy(column.word(in.first + i, 0), words.word(i, 0));
  }
}

template <class R, class Tile>
void trace(R& recorder, const RescaleColumn&, const Tile& column, const Tile& kept) {
  for (std::int64_t i = 0; i < kept.rows(); ++i) {
    recorder.rescale(column.word(i, 0), {kept.word(i, 0)});
  }
}

template <class R, class Tile>
void trace(R& recorder, const EndStatistics& end, const Tile& m, const Tile& l) {
  for (std::int64_t i = 0; i < end.rows.count; ++i) {
    recorder.form(m.word(i, 0), {m.word(i, 0), l.word(end.rows.offset + i, 0)});
  }
}

template <class R, class Tile>
void trace(R& recorder, const EndOutputs& end, const Tile& column, const Tile& l) {
  for (std::int64_t i = 0; i < end.rows.count; ++i) {
    recorder.form(column.word(i, 0), {column.word(i, 0), l.word(end.rows.offset + i, 0)});
  }
}

}  // namespace attest::schedules
