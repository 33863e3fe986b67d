// Which devices are on which side of d^2, and what is said of them.
#include <fmt/format.h>

#include "certify/regime/regime_table.hpp"
#include "certify/regime/statements.hpp"
#include "certify/reproduce/experiment.hpp"

namespace attest::certify {
namespace {

std::string ratio_text(const CacheSize& size) {
  return fmt::format("{:.3g}{}", size.ratio, size.regime == CacheRegime::small ? "*" : "");
}

Table sizes_table() {
  constexpr std::int64_t kLatentKeys = 576, kLatentValues = 512;
  const std::vector<std::pair<std::int64_t, std::int64_t>> dims{
      {64, 64}, {128, 128}, {256, 256}, {kLatentKeys, kLatentValues}};
  Table table{
      "regimes", "M over d_k d_v; * small cache", {"device", "fast memory", "bytes", "width"}, {}};
  for (const auto& [qk, v] : dims) table.columns.push_back(fmt::format("{}/{}", qk, v));
  for (const RegimePlace& place : places_of({})) {
    for (const WordType& word : word_types()) {
      const std::int64_t bytes = place.boundary.fast_bytes;
      std::vector<std::string> row{place.device, place.boundary.fast, std::to_string(bytes),
                                   word.name};
      for (const auto& [qk, v] : dims) row.push_back(ratio_text(cache_size(bytes, word, qk, v)));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

// The shorter of the two lists says it all.
Claim claim_of(const Statement& statement) {
  std::vector<std::string> right, wrong;
  for (const Figure& figure : figures(statement)) {
    (figure.holds == Figure::Holds::yes ? right : wrong)
        .push_back(fmt::format("{}, {}, d = {}: {}", figure.place, figure.word, figure.head_dim,
                               ratio_text(figure.size)));
  }
  std::string measured =
      fmt::format("right for {} of {} values of M/d^2", right.size(), right.size() + wrong.size());
  if (!wrong.empty() && wrong.size() <= right.size()) {
    measured += fmt::format("; not for {}", fmt::join(wrong, "; "));
  } else if (!right.empty() && !wrong.empty()) {
    measured += fmt::format("; for {}", fmt::join(right, "; "));
  }
  return {statement.text, statement.source, measured,
          wrong.empty()   ? Outcome::reproduced
          : right.empty() ? Outcome::not_reproduced
                          : Outcome::corrected};
}

Findings run(const Laboratory&) {
  Findings findings;
  for (const Statement& statement : statements()) findings.claims.push_back(claim_of(statement));
  findings.tables.push_back(sizes_table());
  return findings;
}

}  // namespace

Experiment regimes_experiment() { return {"regimes", "devices on both sides of d^2", {}, run}; }

}  // namespace attest::certify
