#include "certify/reproduce/claims/sparse_meeting.hpp"

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
  for (int step = 0;; ++step) {
    const double size = low * std::exp2(static_cast<double>(step) / steps);
    if (size > high) break;
    sizes.push_back(std::llround(size));
  }
  return sizes;
}

Curve curve_of(const std::string& name, const std::vector<sparse::TileWords>& choices,
               const std::vector<std::int64_t>& sizes) {
  Curve curve{name, Curve::Kind::measured, {}};
  for (const std::int64_t size : sizes) {
    if (const auto words = sparse::fewest_words(choices, size)) {
      curve.points.emplace_back(static_cast<double>(size), static_cast<double>(*words));
    }
  }
  return curve;
}

// Claims the exponent of the words beyond what everything in one tile moves, which no fast memory
// saves.
Claim exponent_claim(const std::string& text, const Curve& curve,
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
  Claim claim{text, kSource, "too few sizes of fast memory", Outcome::not_compared};
  constexpr std::size_t kLeastPoints = 4;
  if (beyond.size() < kLeastPoints) return claim;
  const Exponent fitted = fit_exponent(beyond);
  claim.measured =
      fmt::format("words beyond those with everything in one tile: exponent of M {} over {} sizes",
                  fitted.to_string(), fitted.points);
  const bool holds_another = fitted.contains(claimed - 0.5) || fitted.contains(claimed + 0.5);
  if (fitted.contains(claimed) && holds_another) {
    claim.measured += "; the interval holds another multiple of 1/2 too: too few sizes";
    return claim;
  }
  // Words of lower order bend the line, so that an interval may leave out the exponent claimed.
  const bool nearest = std::lround(2 * fitted.value) == std::lround(2 * claimed) && !holds_another;
  claim.outcome = !nearest                   ? Outcome::not_reproduced
                  : fitted.contains(claimed) ? Outcome::reproduced
                                             : Outcome::corrected;
  return claim;
}

// From where on the large-cache case moves no more words than the small-cache case.
std::optional<std::int64_t> meeting_of(const SparseSubject& subject, int steps) {
  const auto [least, most] = std::minmax_element(subject.dividing.begin(), subject.dividing.end());
  constexpr double kAround = 32;
  const auto met = crossing(
      grid(*least / kAround, *most * kAround, steps),
      [&](std::int64_t size) { return sparse::fewest_words(subject.words.outer, size); },
      [&](std::int64_t size) { return sparse::fewest_words(subject.words.nested, size); });
  return met ? std::optional(met->last) : std::nullopt;
}

using Meetings = std::vector<std::optional<std::int64_t>>;

Table meeting_table(const std::vector<SparseSubject>& subjects, const Meetings& met,
                    const SparseForms& forms) {
  Table table{forms.file + "_meeting",
              forms.of + ": where the large-cache case begins to move fewer words",
              {"entries in a row", "nnz", "Z", "fast words"},
              {}};
  for (const Dividing& point : forms.points) {
    table.columns.insert(table.columns.end(), {point.name, "ratio"});
  }
  for (std::size_t k = 0; k < subjects.size(); ++k) {
    const SparseSubject& subject = subjects[k];
    table.rows.push_back({std::to_string(subject.entries), std::to_string(subject.words.nonzeros),
                          std::to_string(subject.words.pairs),
                          met[k] ? std::to_string(*met[k]) : "none"});
    for (const double expected : subject.dividing) {
      table.rows.back().push_back(fmt::format("{:.0f}", expected));
      table.rows.back().push_back(
          met[k] ? fmt::format("{:.2f}", static_cast<double>(*met[k]) / expected) : "");
    }
  }
  return table;
}

// Where the cases meet, against one of the points at which orders are equal.
Claim meeting_claim(const std::vector<SparseSubject>& subjects, const Meetings& met,
                    const SparseForms& forms, std::size_t point) {
  Claim claim{fmt::format("{}: the cases meet where M = {}", forms.of, forms.points[point].name),
              forms.points[point].source, "", Outcome::not_reproduced};
  std::vector<std::pair<double, double>> points;
  for (std::size_t k = 0; k < subjects.size(); ++k) {
    if (met[k]) points.emplace_back(subjects[k].dividing[point], static_cast<double>(*met[k]));
  }
  if (points.size() < subjects.size()) {
    claim.measured =
        fmt::format("a crossing for {} of {} densities", points.size(), subjects.size());
    return claim;
  }
  const Exponent grows = fit_exponent(points);
  const auto ratio = [](const auto& at) { return at.second / at.first; };
  const auto [least, most] =
      std::minmax_element(points.begin(), points.end(),
                          [&](const auto& a, const auto& b) { return ratio(a) < ratio(b); });
  claim.measured = fmt::format(
      "at {:.2f} to {:.2f} times that, growing as its power {}; with every entry, where that is "
      "{:.2f} d^2, at {:.2f} d^2",
      ratio(*least), ratio(*most), grows.to_string(),
      points.back().first /
          static_cast<double>(subjects.back().head_dim * subjects.back().head_dim),
      points.back().second /
          static_cast<double>(subjects.back().head_dim * subjects.back().head_dim));
  // Up to a constant, which orders leave open.
  if (grows.is(1) && grows.contains(1)) claim.outcome = Outcome::corrected;
  return claim;
}

}  // namespace

double product_dividing_point(const sparse::ProductWords& words) {
  const double nnz = static_cast<double>(words.nonzeros) / 2;  // of one of two matrices alike
  return nnz * nnz / static_cast<double>(words.pairs);
}

double dividing_point(const io::AttentionEntries& entries) {
  const auto A = static_cast<double>(entries.A), X = static_cast<double>(entries.X),
             AX = static_cast<double>(entries.AX), AXA = static_cast<double>(entries.AXA);
  const double root = (A * A + A * X) / (A * std::sqrt(AXA) + std::sqrt(A * X * AX));
  return root * root;
}

double dense_output_dividing_point(double nnz, double dense, double pairs) {
  const double root =
      nnz * (nnz + dense) / (nnz * std::sqrt(pairs) + std::sqrt(pairs * nnz * dense));
  return root * root;
}

Findings sparse_findings(const std::vector<SparseSubject>& subjects, int steps,
                         const SparseForms& forms) {
  const SparseSubject& subject = subjects[subjects.size() / 2];
  const double meeting = subject.dividing.front();
  constexpr double kBelow = 16, kAbove = 64;
  const std::vector<std::int64_t> sizes = grid(meeting / kBelow, meeting * kAbove, steps);
  const Curve nested = curve_of("large cache: " + forms.large, subject.words.nested, sizes),
              outer = curve_of("small cache: " + forms.small, subject.words.outer, sizes);
  Meetings met;
  for (const SparseSubject& each : subjects) met.push_back(meeting_of(each, steps));
  Findings findings;
  findings.claims = {
      exponent_claim(forms.of + ": the large-cache case moves words in proportion to 1 / M", nested,
                     subject.words.nested, -1, meeting / kBelow, meeting * kAbove),
      exponent_claim(forms.of + ": the small-cache case moves words in proportion to 1 / sqrt(M)",
                     outer, subject.words.outer, -0.5, meeting / kBelow, meeting)};
  for (std::size_t point = 0; point < forms.points.size(); ++point) {
    findings.claims.push_back(meeting_claim(subjects, met, forms, point));
  }
  Plot plot{forms.file,
            fmt::format("{} of sparse inputs: N = {}, {} of {} entries in a row", forms.of,
                        subject.seqlen, subject.entries, subject.head_dim),
            "words of fast memory M",
            "words moved",
            {nested, outer}};
  plot.mark_x = meeting;
  plot.mark = "M = " + forms.points.front().name;
  findings.plots = {std::move(plot)};
  findings.tables = {meeting_table(subjects, met, forms)};
  return findings;
}

Claim dense_special_case(const std::string& of, const Curve& sparse, const Curve& dense) {
  Claim claim{of + ": with every entry, a constant times the words of dense schedules", kSource,
              "a size of fast memory in which one of them has no tiles", Outcome::not_compared};
  if (sparse.points.size() != dense.points.size() || sparse.points.size() < 3) return claim;
  std::vector<std::pair<double, double>> ratios;
  for (std::size_t k = 0; k < sparse.points.size(); ++k) {
    ratios.emplace_back(sparse.points[k].first, sparse.points[k].second / dense.points[k].second);
  }
  const Exponent grows = fit_exponent(ratios);
  const auto [least, most] =
      std::minmax_element(ratios.begin(), ratios.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  claim.measured = fmt::format(
      "{:.2f} to {:.2f} times as many from M = {:.0f} to {:.0f}, which changes as M to the {}",
      least->second, most->second, ratios.front().first, ratios.back().first, grows.to_string());
  claim.outcome = grows.bounded() ? Outcome::reproduced : Outcome::not_reproduced;
  return claim;
}

}  // namespace attest::certify
