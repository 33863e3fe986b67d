#include "certify/report/remarks/remarks.hpp"

#include <nlohmann/json.hpp>

#include "certify/report/certificate_fields.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// The message, the mistake whose results the outputs equal, and the laws that fail by the same.
std::string message_of(const json& finding) {
  auto text = finding.at("message").get<std::string>();
  for (const json& signature : finding.value("signatures", json::array())) {
    text += "\nequals " + signature.at("equals").get<std::string>();
  }
  const json also = finding.value("also", json::array());
  return also.empty() ? text : text + "\nalso fails: " + names_text(also);
}

void add_kernel(const json& kernel, const SourcePlace& given, std::vector<Remark>& remarks) {
  const auto name = kernel.at("kernel").get<std::string>();
  const auto add = [&](Weight weight, const std::string& rule, const std::string& message,
                       const std::string& reproduce, const std::string& fault = "") {
    remarks.push_back(
        {weight, name, rule, message, reproduce, place_of(name, message, given), fault});
  };
  for (const json& finding : kernel.at("findings")) {
    const json kind = finding.value("kind", json());
    add(finding.value("known", false)       ? Weight::known
        : finding.value("undecided", false) ? Weight::warning
                                            : Weight::error,
        finding.at("law"), message_of(finding), finding.at("reproduce"),
        kind.is_string() ? kind.get<std::string>() : "");
  }
  for (const char* part : {"io", "io_backward"}) {
    const json io = kernel.value(part, json());
    if (!io.is_object()) continue;
    for (const json& violation : io.at("violations")) add(Weight::error, "io", violation, "");
  }
  // A finding ended its law before its cases met all that is claimed.
  const json gaps = kernel.at("findings").empty() ? kernel.at("incomplete")
                                                  : kernel.value("not_judged", json::array());
  for (const json& gap : gaps) add(Weight::warning, "complete", gap, "");
}

}  // namespace

std::vector<Remark> remarks_of(const json& certificate, const SourcePlace& given) {
  std::vector<Remark> remarks;
  reading_certificate([&] {
    for (const json& kernel : certificate.at("kernels")) add_kernel(kernel, given, remarks);
  });
  return remarks;
}

}  // namespace attest::certify
