#include "certify/report/remarks/markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "certify/audit/seal.hpp"
#include "certify/printable.hpp"
#include "certify/report/certificate_fields.hpp"
#include "certify/report/ratio.hpp"
#include "certify/report/remarks/remarks.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// Text between the bars of a table: no markup of its own, one line.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '<') {
      result += "&lt;";
    } else if (std::string_view("|`*_\\[]").find(c) != std::string_view::npos) {
      result += {'\\', c};
    } else {
      result += c;
    }
  }
  return result;
}

std::string worst_text(const json& worst) {
  double most = 0;
  for (const auto& [output, of] : worst.items()) {
    most = std::max(most, ratio_in(of.at("error_over_bound")));
  }
  return worst.empty() ? "" : error_ratio_text(most);
}

std::string row(const json& kernel, const json& seconds) {
  const auto name = kernel.at("kernel").get<std::string>();
  const auto time = seconds.find(name);
  return fmt::format("| {} | **{}** | {} | {} | {} | {} | {} |\n", cell(name),
                     cell(verdict_of(kernel)), count_text(kernel.at("cases")),
                     count_text(kernel.at("checks").at("passed")), kernel.at("findings").size(),
                     worst_text(kernel.at("worst")),
                     time == seconds.end() ? "" : fmt::format("{:.0f}", time->get<double>()));
}

// A fence longer than any run of backticks that a command may hold.
std::string block(const std::string& text) {
  return "\n``````text\n" + printable_lines(text) + "\n``````\n";
}

std::string remark_text(const Remark& remark) {
  const char* const what = remark.weight == Weight::error     ? "Fails"
                           : remark.weight == Weight::warning ? "Incomplete"
                                                              : "Known failure";
  return fmt::format("\n**{}**: {}, {}\n", what, cell(remark.kernel), cell(remark.rule)) +
         block(remark.message +
               (remark.reproduce.empty() ? "" : "\nreproduce: " + remark.reproduce));
}

std::string known_text(const json& known) {
  std::string text;
  for (const json& one : known) {
    const json part_of = one.value("part_of", json(nullptr));  // not in older certificates
    const bool gone = one.at("outcome") == "gone";
    if (!gone && !part_of.is_string()) continue;
    text += fmt::format(
        "- {}, {}: {}\n", cell(one.at("kernel").get<std::string>()),
        cell(one.at("law").get<std::string>()),
        gone ? "did not occur; take it off the list unless other campaigns meet it"
             : "occurs as part of " + cell(part_of.get<std::string>()) + ", which is not listed");
  }
  return text.empty() ? "" : "\n**Known failures**\n\n" + text;
}

std::string document(const json& certificate) {
  const json seconds = certificate.at("timings").value("seconds", json::object());
  const std::string shard = shard_text(certificate), fault = seal_fault(certificate);
  std::string text = fmt::format(
      "## attest certify, tier {}, seed {}{}\n\n{}"
      "| kernel | verdict | cases | checks passed | findings | worst error/bound | seconds |\n"
      "|---|---|--:|--:|--:|--:|--:|\n",
      cell(certificate.at("tier").get<std::string>()), certificate.at("seed").dump(),
      shard.empty() ? "" : ", " + cell(shard),
      fault.empty() ? "" : "**The certificate " + fault + ".**\n\n");
  for (const json& kernel : certificate.at("kernels")) text += row(kernel, seconds);
  for (const Remark& remark : remarks_of(certificate, {})) text += remark_text(remark);
  return text + known_text(certificate.value("known_failures", json::array()));
}

}  // namespace

std::string markdown_report(const json& certificate) {
  return reading_certificate([&] { return document(certificate); });
}

}  // namespace attest::certify
