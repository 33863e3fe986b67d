#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "certify/reproduce/experiment.hpp"

namespace attest::certify {

/// An experiment that was run.
struct Reproduced {
  std::string name, title;
  std::string command;  // the line that makes it again
  double seconds = 0;
  Findings findings;
};

/// A table as CSV, RFC 4180.  [certify/reproduce/page_test "CSV"]
std::string csv(const Table& table);

/// A plot as CSV: curve, kind, x, y.  [certify/reproduce/page_test "CSV"]
std::string csv(const Plot& plot);

/// How many claims fared how, one entry for each outcome in the order of Outcome.
/// [certify/reproduce/page_test "counted from the claims"]
std::vector<std::pair<Outcome, std::size_t>> outcomes(const std::vector<Reproduced>& results);

/// Everything, certify/schemas/reproduce.schema.json.
nlohmann::json reproduce_json(const std::vector<Reproduced>& results);

/// One page that needs nothing beside it, with the class that the bounds hold for. `drawings` has
/// the SVG of every plot by name, as inline_svg() gives it; where one lacks, the page says where
/// the points are; `about` says what made the page, and where.  [certify/reproduce/page_test "the
/// page"]
std::string reproduce_page(const std::vector<Reproduced>& results,
                           const std::map<std::string, std::string>& drawings,
                           const std::string& about);

}  // namespace attest::certify
