// Sparse Q, K, V: words of both cases of sparse attention, and where they meet.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/fit.hpp"
#include "core/rng.hpp"
#include "sparse/inputs/tile_words.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kHeadDim = 128, kLeastSide = 8;
constexpr const char* kSource = "Li et al. 2024, Theorem 4.5";

// Every row has the same number of entries, in columns drawn. Values are of no account: words are
// counted.
CsrMatrix random_rows(Rng& rng, std::int64_t rows, std::int64_t columns, std::int64_t entries) {
  CsrMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::int32_t> all;
    for (std::int64_t c = 0; c < columns; ++c) all.push_back(static_cast<std::int32_t>(c));
    for (std::int64_t e = 0; e < entries; ++e) {
      std::swap(all[static_cast<std::size_t>(e)],
                all[static_cast<std::size_t>(rng.between(e, columns - 1))]);
    }
    all.resize(static_cast<std::size_t>(entries));
    std::sort(all.begin(), all.end());
    matrix.column_indices.insert(matrix.column_indices.end(), all.begin(), all.end());
    matrix.row_offsets.push_back(static_cast<std::int64_t>(matrix.column_indices.size()));
  }
  matrix.values.assign(matrix.column_indices.size(), 1.0f);
  return matrix;
}

// So many of kHeadDim entries in every row of Q, K and V.
struct Subject {
  std::int64_t seqlen = 0, entries = 0;
  sparse::SparseAttentionWords words;

  // nnz^2 / Z: where the orders of both cases are equal.
  double dividing_point() const {
    const auto nnz = static_cast<double>(words.nonzeros);
    return nnz * nnz / static_cast<double>(words.pairs);
  }
};

Subject subject_of(std::int64_t seqlen, std::int64_t entries) {
  Rng rng(static_cast<std::uint64_t>(entries));
  SparseOperands in;
  in.Q = random_rows(rng, seqlen, kHeadDim, entries);
  in.K = random_rows(rng, seqlen, kHeadDim, entries);
  in.V = random_rows(rng, seqlen, kHeadDim, entries);
  return {seqlen, entries, sparse::words_by_tiles(in, kLeastSide)};
}

// Sizes of fast memory, `steps` to a factor of two.
std::vector<std::int64_t> grid(double low, double high, int steps) {
  std::vector<std::int64_t> sizes;
  for (double size = low; size <= high; size *= std::exp2(1.0 / steps)) {
    sizes.push_back(std::llround(size));
  }
  return sizes;
}

Curve curve_of(const char* name, const std::vector<sparse::TileWords>& choices,
               const std::vector<std::int64_t>& sizes) {
  Curve curve{name, Curve::Kind::measured, {}};
  for (const std::int64_t size : sizes) {
    if (const auto words = sparse::fewest_words(choices, size)) {
      curve.points.emplace_back(static_cast<double>(size), static_cast<double>(*words));
    }
  }
  return curve;
}

// Of the words beyond what everything in one tile moves, which no fast memory saves.
Claim exponent_claim(const char* text, const Curve& curve,
                     const std::vector<sparse::TileWords>& choices, double claimed, double low,
                     double high) {
  const auto once = static_cast<double>(choices.back().words);
  std::vector<std::pair<double, double>> beyond;
  for (const auto& [size, words] : curve.points) {
    if (size >= low && size <= high && words > once) beyond.emplace_back(size, words - once);
  }
  Claim claim{text, kSource, "too few sizes of fast memory", Outcome::not_reproduced};
  constexpr std::size_t kLeastPoints = 4;
  if (beyond.size() < kLeastPoints) return claim;
  const Exponent fitted = fit_exponent(beyond);
  claim.measured =
      fmt::format("words beyond those with everything in one tile: exponent of M {} over {} sizes",
                  fitted.to_string(), fitted.points);
  const bool nearest = std::lround(2 * fitted.value) == std::lround(2 * claimed);
  if (nearest && !fitted.contains(claimed - 0.5) && !fitted.contains(claimed + 0.5)) {
    claim.outcome = Outcome::reproduced;
  }
  return claim;
}

// Where the large-cache case moves no more words than the small-cache case, against nnz^2 / Z.
Claim meeting_claim(const std::vector<Subject>& subjects, int steps, Table& table) {
  Claim claim{"the cases meet where M = nnz^2 / Z", kSource, "", Outcome::not_reproduced};
  std::vector<std::pair<double, double>> points;
  for (const Subject& subject : subjects) {
    const double expected = subject.dividing_point();
    constexpr double kAround = 32;
    const auto met = crossing(
        grid(expected / kAround, expected * kAround, steps),
        [&](std::int64_t size) { return sparse::fewest_words(subject.words.stored, size); },
        [&](std::int64_t size) { return sparse::fewest_words(subject.words.flash, size); });
    table.rows.push_back(
        {std::to_string(subject.entries), std::to_string(subject.words.nonzeros),
         std::to_string(subject.words.pairs), fmt::format("{:.0f}", expected),
         met ? std::to_string(met->last) : "none",
         met ? fmt::format("{:.2f}", static_cast<double>(met->last) / expected) : ""});
    if (met) points.emplace_back(expected, static_cast<double>(met->last));
  }
  if (points.size() < subjects.size()) {
    claim.measured =
        fmt::format("a crossing for {} of {} densities", points.size(), subjects.size());
    return claim;
  }
  const Exponent grows = fit_exponent(points);
  const auto ratio = [](const auto& point) { return point.second / point.first; };
  const auto [least, most] =
      std::minmax_element(points.begin(), points.end(),
                          [&](const auto& a, const auto& b) { return ratio(a) < ratio(b); });
  claim.measured = fmt::format(
      "at {:.2f} to {:.2f} nnz^2 / Z, growing as its power {}; with every entry, where "
      "nnz^2 / Z is 9 d^2, at {:.2f} d^2",
      ratio(*least), ratio(*most), grows.to_string(),
      points.back().second / static_cast<double>(kHeadDim * kHeadDim));
  if (grows.is(1)) claim.outcome = Outcome::corrected;  // up to a constant, which orders leave open
  return claim;
}

Findings run(const Laboratory& lab) {
  const std::int64_t seqlen = lab.seqlen_or(128, 512);
  const int steps = lab.effort == Effort::smoke ? 2 : 4;
  std::vector<Subject> subjects;
  for (const std::int64_t entries : {8, 16, 32, 64, 128}) {
    subjects.push_back(subject_of(seqlen, entries));
  }
  const Subject& middle = subjects[1];
  const double meeting = middle.dividing_point();
  constexpr double kBelow = 16, kAbove = 64;
  const std::vector<std::int64_t> sizes = grid(meeting / kBelow, meeting * kAbove, steps);
  const Curve flash = curve_of("large cache: sparse flash", middle.words.flash, sizes),
              stored = curve_of("small cache: stored support", middle.words.stored, sizes);
  Table table{"sparse_inputs_meeting",
              "where the large-cache case begins to move fewer words",
              {"entries in a row", "nnz", "Z", "nnz^2/Z", "fast words", "ratio"},
              {}};
  Findings findings;
  findings.claims = {
      exponent_claim("the large-cache case moves words in proportion to nnz^2 / M", flash,
                     middle.words.flash, -1, meeting / kBelow, meeting * kAbove),
      exponent_claim("the small-cache case moves words in proportion to nnz sqrt(Z / M)", stored,
                     middle.words.stored, -0.5, meeting / kBelow, meeting),
      meeting_claim(subjects, steps, table)};
  Plot plot{"sparse_inputs_io",
            fmt::format("sparse Q, K, V: N = {}, {} of {} entries in a row", seqlen, middle.entries,
                        kHeadDim),
            "words of fast memory M",
            "words moved",
            {flash, stored}};
  plot.mark_x = meeting;
  plot.mark = "M = nnz^2 / Z";
  findings.plots = {std::move(plot)};
  findings.tables = {std::move(table)};
  return findings;
}

}  // namespace

Experiment sparse_inputs_io_experiment() {
  return {"sparse_inputs_io",
          "attention of sparse Q, K, V in both cases",
          {{"seqlen", 64, 1024}},
          run,
          14};
}

}  // namespace attest::certify
