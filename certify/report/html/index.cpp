#include "certify/report/html/index.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "certify/report/html/frame.hpp"
#include "certify/report/html/html.hpp"
#include "certify/report/html/markup.hpp"
#include "certify/report/html/mathematics.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

struct OutcomeTone {
  const char *outcome, *tone;
};
constexpr std::array<OutcomeTone, 4> kOutcomes{{{"reproduced", "good"},
                                                {"reproduced with a correction", "warn"},
                                                {"not reproduced", "bad"},
                                                {"not compared", "warn"}}};

// Claims of an experiment by outcome.
std::array<std::size_t, kOutcomes.size()> counts_of(const json& experiment) {
  std::array<std::size_t, kOutcomes.size()> counts{};
  for (const json& claim : experiment.at("claims")) {
    const auto outcome = claim.at("outcome").get<std::string>();
    for (std::size_t k = 0; k < kOutcomes.size(); ++k) counts[k] += outcome == kOutcomes[k].outcome;
  }
  return counts;
}

std::string link(const std::string& to, const std::string& text) {
  return to.empty() ? text : fmt::format("<a href=\"{}\">{}</a>", escaped(to), text);
}

std::string files_html(const IndexLinks& links) {
  std::string html;
  const auto add = [&](const std::string& to, const char* text) {
    if (!to.empty()) html += (html.empty() ? "" : " \u00b7 ") + link(to, text);
  };
  add(links.report, "report");
  add(links.certificate, "certificate as JSON");
  add(links.junit, "JUnit XML");
  return html.empty() ? "" : "<p>" + html + "</p>";
}

std::string papers_html(const json& papers, const IndexLinks& links) {
  std::array<std::size_t, kOutcomes.size()> total{};
  std::string rows;
  std::size_t claims = 0;
  for (const json& experiment : papers.at("experiments")) {
    const auto counts = counts_of(experiment);
    const std::string to =
        links.papers.empty()
            ? ""
            : links.papers + "#" + link_path(experiment.at("name").get<std::string>());
    rows += "<tr><td>" + link(to, mathematics(experiment.at("title").get<std::string>())) + "</td>";
    for (std::size_t k = 0; k < counts.size(); ++k) {
      total[k] += counts[k];
      claims += counts[k];
      rows += fmt::format("<td class=\"n{}\">{}</td>", counts[k] == 0 ? " none" : "", counts[k]);
    }
    rows += "</tr>";
  }
  std::string html = fmt::format(
      "<section class=\"card\"><h2>{}</h2><p class=\"soft\">{} claims of the papers on the I/O "
      "complexity of attention, each beside what was counted or measured here.</p>"
      "<div class=\"counts\">",
      link(links.papers, "The I/O of attention, counted"), claims);
  for (std::size_t k = 0; k < total.size(); ++k) {
    html += fmt::format("<div class=\"count {}\"><b>{}</b>{}</div>", kOutcomes[k].tone, total[k],
                        kOutcomes[k].outcome);
  }
  html += "</div>" + open_data_table() + "<thead><tr><th>experiment</th>";
  for (const OutcomeTone& one : kOutcomes) {
    html += fmt::format("<th class=\"n\">{}</th>", one.outcome);
  }
  return html + "</tr></thead><tbody>" + rows + "</tbody>" + close_data_table() + "</section>";
}

std::string page(const json& certificate, const json& papers, const IndexLinks& links) {
  std::string body = "<h1>Attest</h1>" + verdict_banner(certificate);
  body += "<section class=\"card\"><h2>" + link(links.report, "Certificates of kernels") +
          "</h2><p class=\"soft\">Each kernel against an exact reference, with tolerances derived "
          "from its inputs and its declared precision, and the words it moves against proved "
          "bounds.</p>" +
          files_html(links) + kernels_table(certificate, links.report) + "</section>";
  if (!papers.is_null()) body += papers_html(papers, links);
  return framed("Attest", body);
}

}  // namespace

std::string index_page(const json& certificate, const json& papers, const IndexLinks& links) {
  if (!papers.is_null() &&
      (!papers.is_object() || papers.value("schema", json()) != "attest-reproduce-1")) {
    throw InvalidProblem(
        "papers: no object of the schema attest-reproduce-1; pass the "
        "reproduce.json that attest reproduce wrote");
  }
  try {
    return page(certificate, papers,
                {link_path(links.report), link_path(links.certificate), link_path(links.junit),
                 link_path(links.papers)});
  } catch (const json::exception& error) {
    throw InvalidProblem(std::string("first page: an object is not as its schema says: ") +
                         error.what());
  }
}

}  // namespace attest::certify
