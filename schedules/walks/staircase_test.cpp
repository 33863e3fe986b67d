// The arithmetic on the pairs of a band against the same pair by pair.
#include "schedules/walks/staircase.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"

namespace attest::schedules {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

// A column, or a row of pairs.
struct Tile {
  std::vector<float> words;
  std::int64_t stride = 1;

  static Tile random(Rng& rng, std::int64_t count) {
    Tile tile;
    for (std::int64_t n = 0; n < count; ++n) {
      tile.words.push_back(static_cast<float>(rng.between(-8, 8)));
    }
    return tile;
  }
  io::TileView column() { return {words.data(), count(), 1, 1}; }
  io::TileView row() { return {words.data(), 1, count(), count()}; }
  std::int64_t count() const { return static_cast<std::int64_t>(words.size()); }
  float operator[](std::int64_t n) const { return words[static_cast<std::size_t>(n)]; }
};

// A block of queries and keys of a band.
struct Case {
  AbiProblem form;
  ScoreRule rule;
  io::Range queries, keys;
  Staircase stairs;

  Case(const Problem& problem, io::Range block_q, io::Range block_k)
      : form(problem, 1),
        rule{form.get(), batch_of(*form.get(), 0), 0},
        queries(block_q),
        keys(block_k),
        stairs(rule, queries, keys) {}

  // body(query, key, place), all counted from the block's first.
  template <class Body>
  void for_pairs(const Body& body) const {
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < queries.count(); ++i) {
      const io::Range seen = keys_within(rule, queries.begin + i, keys);
      for (std::int64_t j = seen.begin; j < seen.end; ++j) body(i, j - keys.begin, place++);
    }
    REQUIRE(place == stairs.pairs());
  }
};

template <class Body>
void on_random_bands(const Body& body) {
  Rng rng(12);
  for (int round = 0; round < 60; ++round) {
    const std::string window =
        std::to_string(rng.between(0, 6)) + "_" + std::to_string(rng.between(0, 6));
    const Problem problem = Problem::parse("sq=12,sk=11,d=2,mask=window_" + window);
    const std::int64_t q = rng.between(0, 8), k = rng.between(0, 7);
    const Case on(problem, {q, q + rng.between(1, 4)}, {k, k + rng.between(1, 4)});
    INFO(problem.to_string() << " queries from " << q << ", keys from " << k);
    body(on, rng);
  }
}

TEST_CASE("staircases of masks go from the first visible key to the last", "[cpu][schedules]") {
  for (const char* mask : {"pairs_40_2", "dilated_4_4_2", "window_1_2", "none"}) {
    const Problem problem = Problem::parse(std::string("sq=9,sk=8,d=1,mask=") + mask);
    const AbiProblem form(problem, 1);
    const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
    const Sequence sequence = problem.sequences().front();
    const Staircase stairs = Staircase::of_mask(rule, {2, 7}, {1, 7});
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < 5; ++i) {
      const Staircase::Row& row = stairs.rows()[static_cast<std::size_t>(i)];
      INFO(mask << ", query " << 2 + i << ": " << row.keys.begin << " to " << row.keys.end);
      const auto sees = [&](std::int64_t j) {
        return problem.mask.visible(sequence, 2 + i, 1 + j);
      };
      for (std::int64_t j = 0; j < 6; ++j) CHECK((row.sees(j) || !sees(j)));
      if (row.keys.count() > 0) CHECK((sees(row.keys.begin) && sees(row.keys.end - 1)));
      CHECK(row.place == pairs);
      pairs += row.keys.count();
    }
    CHECK(stairs.pairs() == pairs);
  }
}

TEST_CASE("products and sums on a band", "[cpu][schedules]") {
  on_random_bands([](const Case& on, Rng& rng) {
    Tile a = Tile::random(rng, on.queries.count()), b = Tile::random(rng, on.keys.count());
    Tile S = Tile::random(rng, on.stairs.pairs());
    const Tile before = S;
    const std::int64_t first = rng.between(0, on.queries.count());
    Tile o = Tile::random(rng, on.queries.count() - first), D = o, dotted = S;
    const Tile D_before = D;
    StairProducts{on.stairs, Passing::keys}(S.row(), a.column(), b.column());
    StairProductsAndDots{on.stairs, first}(dotted.row(), a.column(), b.column(), D.column(),
                                           o.column());
    CHECK(S.words == dotted.words);
    for (std::int64_t i = 0; i < D.count(); ++i) {
      CHECK(D[i] == D_before[i] + a[first + i] * o[i]);
    }
    Tile of_queries = a, of_keys = b;
    StairSums{on.stairs, Passing::keys}(of_queries.column(), S.row(), b.column());
    StairSums{on.stairs, Passing::queries}(of_keys.column(), S.row(), a.column());
    std::vector<float> rows = a.words, columns = b.words;
    on.for_pairs([&](std::int64_t i, std::int64_t j, std::int64_t place) {
      CHECK(S[place] == before[place] + a[i] * b[j]);
      rows[static_cast<std::size_t>(i)] += S[place] * b[j];
      columns[static_cast<std::size_t>(j)] += S[place] * a[i];
    });
    CHECK(of_queries.words == rows);
    CHECK(of_keys.words == columns);
    for (std::int64_t i = 0; i < on.queries.count(); ++i) {
      Tile sum{{a[i]}};
      StairSum{on.stairs, i}(sum.column(), S.row(), b.column());
      CHECK(sum[0] == of_queries[i]);
    }
  });
}

TEST_CASE("statistics of a band in two pieces are those of all of it", "[cpu][schedules]") {
  Rng rng(13);
  const Problem problem = Problem::parse("sq=9,sk=9,d=2,mask=window_3_2");
  const Case left(problem, {2, 7}, {0, 4}), right(problem, {2, 7}, {4, 9});
  Tile S = Tile::random(rng, left.stairs.pairs()), T = Tile::random(rng, right.stairs.pairs());
  const Tile scores = S, later = T;
  Tile m{std::vector<float>(5)}, l{std::vector<float>(5)}, word{{0}}, nothing;
  StairSoftmax{left.stairs, 0}(S.row(), m.column(), l.column(), nothing.column(), word.column());
  Tile kept = m;
  StairSoftmax{right.stairs, 0}(T.row(), m.column(), l.column(), kept.column(), word.column());
  std::vector<float> maxima(5, kEmpty), before(5, kEmpty), sums(5);
  const auto maximum_of = [](const Tile& of, std::vector<float>& in) {
    return [&](std::int64_t i, std::int64_t, std::int64_t place) {
      float& most = in[static_cast<std::size_t>(i)];
      most = std::max(most, of[place]);
    };
  };
  left.for_pairs(maximum_of(scores, maxima));
  before = maxima;
  right.for_pairs(maximum_of(later, maxima));
  CHECK(m.words == maxima);
  const auto sum_of = [&](const Tile& of) {
    return [&](std::int64_t i, std::int64_t, std::int64_t place) {
      sums[static_cast<std::size_t>(i)] += std::exp(of[place] - m[i]);
    };
  };
  left.for_pairs(sum_of(scores));
  right.for_pairs(sum_of(later));
  for (std::int64_t i = 0; i < 5; ++i) {
    CHECK(l[i] == Approx(sums[static_cast<std::size_t>(i)]));
    CHECK(kept[i] == Approx(std::exp(before[static_cast<std::size_t>(i)] - m[i])));
  }
  Tile O = Tile::random(rng, 5), out = O;
  RescaleColumn{}(out.column(), kept.column());
  for (std::int64_t i = 0; i < 5; ++i) CHECK(out[i] == O[i] * kept[i]);
  // The first three rows end here, the last two do not.
  Tile LSE = m, divided = out;
  EndStatistics{{3, 1}}(LSE.column(), l.column());
  EndOutputs{{3, 1}}(divided.column(), l.column());
  for (std::int64_t i = 0; i < 5; ++i) {
    CHECK(LSE[i] == (i < 3 ? m[i] + std::log(l[i + 1]) : m[i]));
    CHECK(divided[i] == (i < 3 ? out[i] * (1.0f / l[i + 1]) : out[i]));
  }
}

TEST_CASE("a row whose scores are all hidden keeps no sum", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1,sk=2,d=1");
  const Case first(problem, {0, 1}, {0, 1}), second(problem, {0, 1}, {1, 2});
  Tile S{{kEmpty}}, T{{2}}, m{{0}}, l{{0}}, word{{0}}, nothing;
  StairSoftmax{first.stairs, 0}(S.row(), m.column(), l.column(), nothing.column(), word.column());
  CHECK(S[0] == 0);
  CHECK(l[0] == 0);
  CHECK(m[0] == kEmpty);
  Tile kept = m;
  StairSoftmax{second.stairs, 0}(T.row(), m.column(), l.column(), kept.column(), word.column());
  CHECK(kept[0] == 0);
  CHECK(T[0] == 1);
  CHECK(l[0] == 1);
  EndOutputs{{1, 0}}(S.column(), Tile{{0}}.column());
  CHECK(S[0] == 0);  // not divided by nothing
}

TEST_CASE("gradients of a band", "[cpu][schedules]") {
  on_random_bands([](const Case& on, Rng& rng) {
    Tile P = Tile::random(rng, on.stairs.pairs()), dP = Tile::random(rng, on.stairs.pairs());
    const Tile products = dP;
    const std::int64_t passing = rng.between(0, on.queries.count());
    Tile before = Tile::random(rng, passing), D = Tile::random(rng, on.queries.count() - passing);
    for (std::int64_t i = 0; i < on.queries.count(); ++i) {
      const auto& row = on.stairs.rows()[static_cast<std::size_t>(i)];
      Tile words{std::vector<float>(static_cast<std::size_t>(row.keys.count()))};
      StairOut{on.stairs, i}(P.row(), words.row());
      StairGradients{on.stairs, i, 0.5f}(dP.row(), words.row(), before.column(), D.column());
    }
    on.for_pairs([&](std::int64_t i, std::int64_t, std::int64_t place) {
      const float delta = i < passing ? before[i] : D[i - passing];
      CHECK(dP[place] == 0.5f * P[place] * (products[place] - delta));
    });
  });
}

}  // namespace
}  // namespace attest::schedules
