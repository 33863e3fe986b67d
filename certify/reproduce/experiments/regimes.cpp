// Which devices are on which side of d^2, and what is said of them.
#include <fmt/format.h>

#include <map>

#include "certify/regime/regime_table.hpp"
#include "certify/reproduce/claims/statement_claim.hpp"

namespace attest::certify {
namespace {

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

// M over d^2 as d grows, at the boundary nearest to the arithmetic of each device.
Plot ratios_plot() {
  Plot plot{"regimes_of_devices",
            "16-bit words of fast memory over d^2",
            "head dimension d",
            "M / d^2",
            {}};
  std::map<std::int64_t, std::string> sizes;  // devices by what they have
  std::string device;
  for (const RegimePlace& place : places_of({})) {
    if (place.device == device) continue;
    device = place.device;
    std::string& names = sizes[place.boundary.fast_bytes];
    names += (names.empty() ? "" : ", ") + device;
  }
  for (const auto& [bytes, names] : sizes) {
    Curve curve{names, Curve::Kind::measured, {}};
    for (const std::int64_t d : {32, 64, 128, 256, 512, 1024}) {
      curve.points.emplace_back(static_cast<double>(d),
                                cache_size(bytes, find_word_type("bf16"), d, d).ratio);
    }
    plot.curves.push_back(std::move(curve));
  }
  plot.curves.push_back({"M = d^2", Curve::Kind::bound, {{32, 1}, {1024, 1}}});
  return plot;
}

Findings run(const Laboratory&) {
  Findings findings;
  for (const Statement& statement : statements()) findings.claims.push_back(claim_of(statement));
  findings.plots.push_back(ratios_plot());
  findings.tables.push_back(sizes_table());
  return findings;
}

}  // namespace

Experiment regimes_experiment() { return {"regimes", "devices on both sides of d^2", {}, run, 12}; }

}  // namespace attest::certify
