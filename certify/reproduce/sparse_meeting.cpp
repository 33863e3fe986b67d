#include "certify/reproduce/sparse_meeting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/fit.hpp"

namespace attest::certify {
namespace {

constexpr const char* kSource = "Li et al. 2024, Theorem 4.5";

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
  // One tile less, or more, matters where there are few: the fit ends before that.
  constexpr double kOfWhole = 8;
  const auto once = static_cast<double>(choices.back().words);
  const double most = std::min(high, static_cast<double>(choices.back().peak) / kOfWhole);
  std::vector<std::pair<double, double>> beyond;
  for (const auto& [size, words] : curve.points) {
    if (size >= low && size <= most && words > once) beyond.emplace_back(size, words - once);
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
Claim meeting_claim(const std::vector<SparseSubject>& subjects, int steps, Table& table) {
  Claim claim{"the cases meet where M = nnz^2 / Z", kSource, "", Outcome::not_reproduced};
  std::vector<std::pair<double, double>> points;
  for (const SparseSubject& subject : subjects) {
    const double expected = subject.dividing_point();
    constexpr double kAround = 32;
    const auto met = crossing(
        grid(expected / kAround, expected * kAround, steps),
        [&](std::int64_t size) { return sparse::fewest_words(subject.words.outer, size); },
        [&](std::int64_t size) { return sparse::fewest_words(subject.words.nested, size); });
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
      "nnz^2 / Z is d^2, at {:.2f} d^2",
      ratio(*least), ratio(*most), grows.to_string(),
      points.back().second /
          static_cast<double>(subjects.back().head_dim * subjects.back().head_dim));
  if (grows.is(1)) claim.outcome = Outcome::corrected;  // up to a constant, which orders leave open
  return claim;
}

}  // namespace

double SparseSubject::dividing_point() const {
  const double nnz = static_cast<double>(words.nonzeros) / 2;
  return nnz * nnz / static_cast<double>(words.pairs);
}

Findings sparse_findings(const std::vector<SparseSubject>& subjects, int steps) {
  const SparseSubject& subject = subjects[subjects.size() / 2];
  const double meeting = subject.dividing_point();
  constexpr double kBelow = 16, kAbove = 64;
  const std::vector<std::int64_t> sizes = grid(meeting / kBelow, meeting * kAbove, steps);
  const Curve nested = curve_of("large cache: nested", subject.words.nested, sizes),
              outer = curve_of("small cache: outer products", subject.words.outer, sizes);
  Table table{"sparse_inputs_meeting",
              "where the large-cache case begins to move fewer words",
              {"entries in a row", "nnz", "Z", "nnz^2/Z", "fast words", "ratio"},
              {}};
  Findings findings;
  findings.claims = {
      exponent_claim("the large-cache case moves words in proportion to nnz^2 / M", nested,
                     subject.words.nested, -1, meeting / kBelow, meeting * kAbove),
      exponent_claim("the small-cache case moves words in proportion to nnz sqrt(Z / M)", outer,
                     subject.words.outer, -0.5, meeting / kBelow, meeting),
      meeting_claim(subjects, steps, table)};
  Plot plot{"sparse_inputs_io",
            fmt::format("sparse Q and K: N = {}, {} of {} entries in a row", subject.seqlen,
                        subject.entries, subject.head_dim),
            "words of fast memory M",
            "words moved",
            {nested, outer}};
  plot.mark_x = meeting;
  plot.mark = "M = nnz^2 / Z";
  findings.plots = {std::move(plot)};
  findings.tables = {std::move(table)};
  return findings;
}

}  // namespace attest::certify
