#include "certify/report/remarks/sarif.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "certify/printable.hpp"
#include "certify/report/kernel_names.hpp"
#include "proptest/laws/law.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

std::string statement_of(const std::string& rule) {
  if (rule == "io") return "the words moved are those of the schedule that the kernel names";
  if (rule == "complete") return "all that the kernel claims was judged";
  for (const proptest::Law& law : proptest::laws()) {
    if (law.name == rule) return std::string(law.statement);
  }
  return rule;  // of a certificate of another version
}

// A path in a URI: what is neither letter, digit nor one of a few signs is percent-encoded.
std::string uri_of(const std::string& path) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string uri;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += {'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return uri.rfind('/', 0) == 0 ? "file://" + uri : uri;
}

json location(const SourcePlace& place) {
  json physical{{"artifactLocation", {{"uri", uri_of(place.file)}}}};
  physical["region"] = {{"startLine", place.line > 0 ? place.line : 1}};
  return {{"physicalLocation", physical}};
}

json result(const Remark& remark) {
  std::string text = remark.kernel + ": " + printable_lines(remark.message);
  if (!remark.reproduce.empty()) text += "\nreproduce: " + remark.reproduce;
  // A law may fail by a fault beside the wrong results that are known of it.
  const std::string fault = remark.fault.empty() ? "" : " " + remark.fault;
  json one{{"ruleId", remark.rule},
           {"level", remark.weight == Weight::warning ? "warning" : "error"},
           {"message", {{"text", text}}},
           {"locations", json::array()},
           {"partialFingerprints",
            {{"kernelAndRule/v1", without_folder(remark.kernel) + " " + remark.rule + fault}}},
           {"properties", {{"kernel", remark.kernel}, {"reproduce", remark.reproduce}}}};
  if (!remark.place.file.empty()) one["locations"].push_back(location(remark.place));
  if (remark.weight == Weight::known) {
    one["suppressions"] = {{{"kind", "external"}, {"justification", "a known failure"}}};
  }
  return one;
}

}  // namespace

std::string sarif_report(const std::vector<Remark>& remarks, const std::string& version) {
  json results = json::array(), rules = json::array();
  std::set<std::string> names;
  for (const Remark& remark : remarks) {
    results.push_back(result(remark));
    if (!names.insert(remark.rule).second) continue;
    rules.push_back(
        {{"id", remark.rule}, {"shortDescription", {{"text", statement_of(remark.rule)}}}});
  }
  const json log{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       {{{"tool", {{"driver", {{"name", "attest"}, {"version", version}, {"rules", rules}}}}},
         {"columnKind", "utf16CodeUnits"},
         {"results", results}}}}};
  return log.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace attest::certify
