#include "certify/reproduce/claims/multiplication_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "certify/reproduce/counted.hpp"
#include "io/bounds/dense/products.hpp"

namespace attest::certify {
namespace {

// The largest power of two of rows at which tiles of Q, K, S and the scratch fit; 0: none.
std::int64_t largest_tile(std::int64_t fast_words, std::int64_t rows, std::int64_t d,
                          Multiplication how, const Multipliers& multipliers) {
  std::int64_t tile = 0;
  for (std::int64_t side = 1; side <= rows; side *= 2) {
    const ProductTask one{side, side, d, {}, {}};
    if (multipliers.resident(one, side, how).peak > fast_words) break;
    tile = side;
  }
  return tile;
}

// Counts of all sizes.
struct Tally {
  int compared = 0, above = 0;  // of the bound
  int tiles = 0, equal = 0,
      fewer = 0;     // Strassen's tiles: equal words at equal tiles; fewer at equal M
  double worst = 0;  // Strassen's words over the classical at equal M
};

void count_size(const ProductTask& task, std::int64_t fast_words, const Multipliers& multipliers,
                Plot& plot, Table& table, Tally& tally) {
  const auto x = static_cast<double>(fast_words);
  const Problem problem = square_problem(task.rows_q, task.head_dim);
  const io::Bound bound =
      io::fast_multiplication(io::extent_of(problem), io::plain_class(problem), fast_words);
  std::vector<std::string> row{std::to_string(fast_words)};
  const auto add = [&](std::size_t curve, std::int64_t words) {
    plot.curves[curve].points.emplace_back(x, static_cast<double>(words));
    row.push_back(std::to_string(words));
    ++tally.compared;
    tally.above += words >= bound.words ? 1 : 0;
  };
  const std::vector<Multiplication> both{Multiplication::strassen, Multiplication::classical};
  for (std::size_t k = 0; k < both.size(); ++k) {
    add(k, multipliers.depth_first(task, fast_words, both[k]).moved());
  }
  std::vector<std::int64_t> tiles, words;
  for (std::size_t k = 0; k < both.size(); ++k) {
    tiles.push_back(largest_tile(fast_words, task.rows_q, task.head_dim, both[k], multipliers));
    if (tiles.back() == 0) return;
    words.push_back(multipliers.resident(task, tiles.back(), both[k]).moved());
    add(2 + k, words.back());
    row.push_back(std::to_string(tiles.back()));
  }
  ++tally.tiles;
  const ProductWords fast = multipliers.resident(task, tiles[0], Multiplication::strassen),
                     plain = multipliers.resident(task, tiles[0], Multiplication::classical);
  tally.equal += fast.read == plain.read && fast.written == plain.written ? 1 : 0;
  tally.fewer += words[0] < words[1] ? 1 : 0;
  tally.worst =
      std::max(tally.worst, static_cast<double>(words[0]) / static_cast<double>(words[1]));
  row.push_back(std::to_string(bound.words));
  table.rows.push_back(std::move(row));
  if (bound.words > 0) plot.curves[4].points.emplace_back(x, static_cast<double>(bound.words));
}

}  // namespace

Multipliers counted_multipliers() {
  return {[](const ProductTask& task, std::int64_t fast_words, Multiplication how) {
            return depth_first_product(task, fast_words, how).words;
          },
          [](const ProductTask& task, std::int64_t tile, Multiplication how) {
            return resident_product(task, tile, how).words;
          }};
}

Findings multiplication_words(std::int64_t rows, std::int64_t d, const Multipliers& multipliers) {
  const ProductTask task{rows, rows, d, {}, {}};
  Plot plot{"fast_multiplication",
            fmt::format("words for S = QK^T, N = {}, d = {}", rows, d),
            "words of fast memory M",
            "words moved",
            {{"depth-first Strassen, S written", Curve::Kind::measured, {}},
             {"depth-first classical, S written", Curve::Kind::measured, {}},
             {"Strassen on tiles in fast memory", Curve::Kind::measured, {}},
             {"classical on tiles in fast memory", Curve::Kind::measured, {}},
             {"lower bound, any multiplication", Curve::Kind::bound, {}}}};
  Table table{"fast_multiplication_words",
              plot.title,
              {"M", "depth-first Strassen", "depth-first classical", "Strassen on tiles", "tile",
               "classical on tiles", "tile", "bound"},
              {}};
  Tally tally;
  constexpr int kLow = -4, kHigh = 6;
  for (const std::int64_t fast_words : fast_memory_grid(d, kLow, kHigh, 1)) {
    count_size(task, fast_words, multipliers, plot, table, tally);
  }
  const auto& strassen = plot.curves[0].points;
  double least = strassen.front().second;
  for (const auto& [x, words] : strassen) least = std::min(least, words);
  Findings findings;
  findings.claims = {
      {"fast matrix multiplication does not beat the bound on forming the scores",
       "Saha and Ye 2024, Theorem 4.8 (over large finite fields); ours in docs/theory",
       fmt::format("{} of {} counts are at or above the bound for any multiplication; depth-first "
                   "Strassen, with S in slow memory, moves at least {:.1f} N^2 words",
                   tally.above, tally.compared,
                   least / static_cast<double>(rows) / static_cast<double>(rows)),
       tally.compared > 0 && tally.above == tally.compared ? Outcome::reproduced
                                                           : Outcome::not_reproduced},
      {"in fast memory, fast multiplication saves no words",
       "Saha and Ye 2024, consequence of Theorem 4.8",
       fmt::format("with tiles that fit beside its scratch Strassen moves fewer words at {} of {} "
                   "sizes, up to {:.2f} times as many; at equal tiles the words are equal by "
                   "construction ({} of {}): neither loads anything while it multiplies",
                   tally.fewer, tally.tiles, tally.worst, tally.equal, tally.tiles),
       tally.tiles > 0 && tally.equal == tally.tiles && tally.fewer == 0
           ? Outcome::reproduced
           : Outcome::not_reproduced}};
  findings.plots.push_back(std::move(plot));
  findings.tables.push_back(std::move(table));
  return findings;
}

}  // namespace attest::certify
