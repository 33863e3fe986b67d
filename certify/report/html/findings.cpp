#include "certify/report/html/findings.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "certify/report/certificate_fields.hpp"
#include "certify/report/html/charts.hpp"
#include "certify/report/html/markup.hpp"
#include "certify/report/html/verdicts.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

std::string law_links(const json& laws) {
  std::string html;
  for (const json& law : laws) html += (html.empty() ? "" : " ") + law_link(law.get<std::string>());
  return html;
}

std::string finding_html(const json& finding, const json& schedule) {
  const auto verdict = finding.at("verdict").get<std::string>();
  std::string html = fmt::format(
      "<div class=\"finding {}\"><div class=\"split\"><div class=\"grow\"><div class=\"head\">"
      "<b class=\"mono\">{}</b>{}</div><p class=\"why\">{}</p>",
      tone_of(verdict).style, law_link(finding.at("law").get<std::string>()), chip(verdict),
      text_of(finding, "message"));
  if (const json also = finding.value("also", json::array()); !also.empty()) {
    html += "<p class=\"small\">of the same cause, also fails: <span class=\"mono\">" +
            law_links(also) + "</span></p>";
  }
  if (const std::string term = text_of(finding, "bound_term"); !term.empty()) {
    html += "<p class=\"small soft\">largest term of the bound of " + term + "</p>";
  }
  for (const json& signature : finding.at("signatures")) {
    html += "<p class=\"equals\">equals " + text_of(signature, "equals") + "</p>";
  }
  for (const json& one : finding.value("suspicions", json::array())) {
    html += "<p class=\"equals\">seen: it " + text_of(one, "deed") + "</p>";
  }
  for (const json& hint : finding.value("hints", json::array())) {
    html += "<p class=\"small\">" + escaped(hint.get<std::string>()) + "</p>";
  }
  if (const std::string standing = standing_of(finding); !standing.empty()) {
    html += "<p class=\"small\">" + standing + "</p>";
  }
  html += "<pre>" + text_of(finding, "reproduce") + "</pre>";
  if (finding.at("file").is_string()) {
    html += "<p class=\"small soft\">tensors: <span class=\"mono\">" + text_of(finding, "file") +
            "</span></p>";
  }
  html += "<p class=\"small soft\">found with <span class=\"mono\">" +
          breakable(finding.at("found").at("problem").get<std::string>()) +
          " values=" + text_of(finding.at("found"), "values") + "</span></p></div>";
  if (finding.at("errors").is_object()) html += error_grid_svg(finding.at("errors"), schedule);
  return html + "</div></div>";
}

}  // namespace

std::string law_link(const std::string& law) {
  return fmt::format("<a href=\"#law-{0}\">{0}</a>", escaped(law));
}

std::string findings_html(const json& findings, const json& schedule) {
  constexpr std::size_t kInFull = 3;
  std::string html;
  for (std::size_t k = 0; k < findings.size(); ++k) {
    if (k == kInFull) {
      html += fmt::format("<details class=\"more\"><summary class=\"plain\">{} more</summary>",
                          counted(findings.size() - k, "finding"));
    }
    html += finding_html(findings[k], schedule);
  }
  return html + (findings.size() > kInFull ? "</details>" : "");
}

}  // namespace attest::certify
