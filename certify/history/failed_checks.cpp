#include "certify/history/failed_checks.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "certify/files.hpp"
#include "certify/report/kernel_names.hpp"
#include "core/error.hpp"
#include "core/verdict.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// A last line that was cut off says nothing, nor does an empty file: a run ended before.
std::map<std::string, FailedChecks> read_failed(const std::string& path) {
  std::map<std::string, FailedChecks> failed;
  std::istringstream lines(read_file(path));
  bool first = true;
  for (std::string text; std::getline(lines, text); first = false) {
    const json line = json::parse(text, nullptr, false);
    const std::string event = line.is_object() ? line.value("event", "") : "";
    const bool cut_off = line.is_discarded() && lines.eof() && text.starts_with("{\"");
    if (first && cut_off) return failed;
    if (first && event != "campaign") break;
    const std::string verdict = line.is_object() ? line.value("verdict", "") : "";
    if (event != "check") continue;
    if (verdict != name(Verdict::violated) && verdict != name(Verdict::crashed)) continue;
    failed[line.at("kernel")].emplace(line.at("law"), line.at("position"));
  }
  if (!first || lines.str().empty()) return failed;
  throw InvalidProblem("'" + path +
                       "' is no journal; pass a file that `attest certify --resume` wrote");
}

}  // namespace

std::map<std::string, FailedChecks> failed_checks(const std::string& journal,
                                                  const std::vector<std::string>& kernels) {
  std::map<std::string, FailedChecks> earlier;
  try {
    earlier = read_failed(journal);
  } catch (const json::exception&) {
    throw InvalidProblem("'" + journal + "' holds a line that is no record of a check");
  }
  std::vector<std::string> names;
  for (const auto& [kernel, checks] : earlier) names.push_back(kernel);
  std::map<std::string, FailedChecks> failed;
  for (const auto& [now, before] : same_kernels(names, kernels)) failed[now] = earlier[before];
  return failed;
}

}  // namespace attest::certify
