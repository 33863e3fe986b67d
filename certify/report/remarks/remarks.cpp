#include "certify/report/remarks/remarks.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

void add_kernel(const json& kernel, const SourcePlace& given, std::vector<Remark>& remarks) {
  const auto name = kernel.at("kernel").get<std::string>();
  const auto add = [&](Weight weight, const std::string& rule, const std::string& message,
                       const std::string& reproduce) {
    remarks.push_back({weight, name, rule, message, reproduce, place_of(name, message, given)});
  };
  for (const json& finding : kernel.at("findings")) {
    add(finding.value("known", false) ? Weight::known : Weight::error, finding.at("law"),
        finding.at("message"), finding.at("reproduce"));
  }
  for (const char* part : {"io", "io_backward"}) {
    const json io = kernel.value(part, json());
    if (!io.is_object()) continue;
    for (const json& violation : io.at("violations")) add(Weight::error, "io", violation, "");
  }
  if (!kernel.at("findings").empty()) return;
  for (const json& gap : kernel.at("incomplete")) add(Weight::warning, "complete", gap, "");
}

}  // namespace

std::vector<Remark> remarks_of(const json& certificate, const SourcePlace& given) {
  std::vector<Remark> remarks;
  try {
    for (const json& kernel : certificate.at("kernels")) add_kernel(kernel, given, remarks);
  } catch (const json::exception& error) {
    throw InvalidProblem(std::string("certificate: not as attest-certificate-1 says: ") +
                         error.what());
  }
  return remarks;
}

}  // namespace attest::certify
