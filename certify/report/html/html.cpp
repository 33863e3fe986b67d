#include "certify/report/html/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "certify/audit/seal.hpp"
#include "certify/plan/sizes.hpp"
#include "certify/report/certificate_fields.hpp"
#include "certify/report/html/charts.hpp"
#include "certify/report/html/findings.hpp"
#include "certify/report/html/frame.hpp"
#include "certify/report/html/markup.hpp"
#include "certify/report/html/mathematics.hpp"
#include "certify/report/html/sampled.hpp"
#include "certify/report/html/verdicts.hpp"
#include "certify/report/ratio.hpp"
#include "proptest/laws/law.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

std::string kernel_chip(const json& kernel) {
  const Tone tone = tone_of(kernel.at("verdict").get<std::string>());
  return fmt::format("<span class=\"chip {}\">{}</span>", tone.style, escaped(verdict_of(kernel)));
}

// Where the kernel ran, to stand beside its verdict. Older certificates do not say.
std::string place(const json& kernel) {
  if (!kernel.contains("ran")) return "";
  return " <span class=\"small\">" + text_of(kernel, "ran") + "</span>";
}

constexpr const char* kThisPage = "#";

// Names of places within the page.
std::string anchor(std::size_t index) { return fmt::format("kernel-{}", index + 1); }

double worst_of(const json& kernel) {
  double worst = 0;
  for (const auto& [output, one] : kernel.at("worst").items()) {
    worst = std::max(worst, ratio_in(one.at("error_over_bound")));
  }
  return worst;
}

std::string banner(const json& certificate) {
  const json& kernels = certificate.at("kernels");
  const int code = certificate.at("exit_code").get<int>();
  // All kernels that succeed have one verdict: it follows from the options of the run.
  const Success* success = &certified();
  std::size_t good = 0, findings = 0;
  double cases = 0, passed = 0;
  for (const json& kernel : kernels) {
    if (const Success* one = success_of(kernel.at("verdict").get<std::string>())) {
      success = one;
      ++good;
    }
    findings += kernel.at("findings").size();
    cases += kernel.at("cases").get<double>();
    passed += kernel.at("checks").at("passed").get<double>();
  }
  const Tone tone = code == 0 && good == kernels.size() ? Tone{"good", success->banner}
                    : code == 0                         ? Tone{"warn", "Known failures alone"}
                    : code == 1                         ? Tone{"bad", "Refused"}
                    : code == 4                         ? Tone{"crash", "A kernel crashed"}
                                : Tone{"warn", "Not certified: nothing failed, not all is proven"};
  const json& host = certificate.at("host");
  const std::string fault = seal_fault(certificate), shard = shard_text(certificate);
  return fmt::format(
      "<div class=\"card banner {}\"><div class=\"word\">{}</div>{}<div class=\"facts\">{}"
      "<span>{}<b>{} of {}</b> {}{}</span><span><b>{}</b> {}</span>"
      "<span><b>{}</b> cases</span><span><b>{}</b> checks passed</span>"
      "<span class=\"soft\">tier {}, seed {}</span><span class=\"soft\">Attest {}</span>"
      "<span class=\"soft\">{}, {} threads{}</span></div></div>",
      fault.empty() ? tone.style : "warn", escaped(tone.word),
      fault.empty() ? "" : "<p><b>The certificate " + fault + ".</b></p>",
      shard.empty() ? "" : "<span>" + escaped(shard) + "</span>", success->before, good,
      kernels.size(), kernels.size() == 1 ? "kernel" : "kernels", success->after, findings,
      findings == 1 ? "finding" : "findings", readable(cases), readable(passed),
      text_of(certificate, "tier"), certificate.at("seed").dump(),
      text_of(certificate.at("build"), "version"), text_of(host, "processor"),
      host.at("threads").dump(), escaped(processors_text(host)));
}

// Older certificates do not say how many were planned.
std::string cases_cell(const json& kernel) {
  const auto cases = kernel.at("cases").get<double>();
  const double planned = kernel.value("planned_cases", cases);
  return readable(cases) + (planned == cases ? "" : " of " + readable(planned));
}

// A kernel's name, which leads to its part of the page named; of no page where there is none.
std::string kernel_link(const std::string& page, std::size_t index, const std::string& name) {
  if (page.empty()) return "<span class=\"mono\">" + escaped(name) + "</span>";
  const std::string file = page == kThisPage ? "" : page;
  return fmt::format("<a href=\"{}#{}\" class=\"mono\">{}</a>", escaped(file), anchor(index),
                     escaped(name));
}

std::string overview(const json& certificate, const std::string& page) {
  const json& kernels = certificate.at("kernels");
  const json seconds = certificate.at("timings").value("seconds", json::object());
  std::string html =
      open_data_table() +
      "<thead><tr><th>kernel</th><th>verdict</th>"
      "<th class=\"n\">cases</th><th class=\"n\">checks passed</th><th class=\"n\">vacuous</th>"
      "<th class=\"n\">findings</th><th class=\"n\">worst error/bound</th>"
      "<th class=\"n\">seconds</th></tr></thead><tbody>";
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const json& kernel = kernels[k];
    const auto name = kernel.at("kernel").get<std::string>();
    const auto time = seconds.find(name);
    const double worst = worst_of(kernel);
    html += fmt::format(
        "<tr><td>{}</td><td>{}{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        kernel_link(page, k, name), kernel_chip(kernel), place(kernel), cases_cell(kernel),
        readable(kernel.at("checks").at("passed").get<double>()),
        readable(kernel.at("checks").at("vacuous").get<double>()), kernel.at("findings").size(),
        worst > 0 ? error_ratio_text(worst) : "",
        time == seconds.end() ? "" : fmt::format("{:.1f}", time->get<double>()));
  }
  return html + "</tbody>" + close_data_table();
}

std::string words_html(const json& words) {
  std::string text;
  for (const json& word : words) text += (text.empty() ? "" : " ") + word.get<std::string>();
  return escaped(text);
}

std::string laws_html(const json& laws) {
  struct Part {
    const char *key, *colour, *words;
  };
  constexpr Part kParts[] = {{"passed", "--good", "passed"},
                             {"failed", "--bad", "failed"},
                             {"vacuous", "--warn", "vacuous: could not have failed"},
                             {"unsupported", "--faint", "unsupported: not claimed, or no bound"}};
  std::string html =
      open_data_table() +
      "<thead><tr><th>law</th><th class=\"n\">passed</th>"
      "<th class=\"n\">failed</th><th class=\"n\">vacuous</th><th class=\"n\">unsupported</th>"
      "<th></th></tr></thead><tbody>";
  for (const auto& [law, count] : laws.items()) {
    html += "<tr><td class=\"mono\">" + law_link(law) + "</td>";
    double total = 0;
    for (const Part& part : kParts) {
      const double value = count.at(part.key).get<double>();
      total += value;
      html += fmt::format("<td class=\"n\">{}</td>",
                          value > 0 ? readable(value) : "<span class=\"none\">0</span>");
    }
    html += "<td class=\"wide\"><div class=\"bar\">";
    for (const Part& part : kParts) {
      const double value = count.at(part.key).get<double>();
      if (value <= 0) continue;
      html += fmt::format("<i style=\"width:{}%;background:var({})\"></i>",
                          coordinate(100 * value / total), part.colour);
    }
    html += "</div></td></tr>";
  }
  html += "</tbody>" + close_data_table() + "<div class=\"legend\">";
  for (const Part& part : kParts) {
    html +=
        fmt::format("<span><i style=\"background:var({})\"></i>{}</span>", part.colour, part.words);
  }
  return html + "</div>";
}

std::string list_html(const json& lines) {
  std::string html = "<ul>";
  for (const json& line : lines) html += "<li>" + escaped(line.get<std::string>()) + "</li>";
  return html + "</ul>";
}

// Older certificates have one text for each check.
std::string refused_html(const json& refused) {
  json lines = json::array();
  for (const json& one : refused) {
    lines.push_back(one.is_string() ? one.get<std::string>()
                                    : fmt::format("{} ({} checks), first: {}",
                                                  one.at("message").get<std::string>(),
                                                  readable(one.at("checks").get<double>()),
                                                  one.at("example").get<std::string>()));
  }
  return list_html(lines);
}

// A declared value, or one for each type of tensors.
std::string declared_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return value.dump();
  std::string text;
  for (const auto& [key, one] : value.items()) {
    text += (text.empty() ? "" : ", ") + key + " " + one.dump();
  }
  return text;
}

std::string description_html(const json& description) {
  const json &numerics = description.at("numerics"), &conventions = description.at("conventions");
  std::string html =
      "<details><summary class=\"plain\">what the kernel declares</summary>"
      "<p class=\"small mono\">directions: " +
      words_html(description.at("directions"));
  for (const json* part : {&conventions, &numerics}) {
    for (const auto& [key, value] : part->items()) {
      html += "<br>" + escaped(key) + ": " + escaped(declared_text(value));
    }
  }
  if (description.at("schedule").is_string()) {
    html += "<br>schedule: " + text_of(description, "schedule");
  }
  return html + "</p></details>";
}

// Older certificates do not say.
std::string sizes_html(const json& coverage) {
  const json sizes = coverage.value("sizes", json::object());
  if (sizes.empty()) return "";
  std::string html = "<p class=\"small\">sizes covered:</p><ul class=\"small\">";
  for (const auto& [mask, covered] : sizes.items()) {
    html += "<li><span class=\"mono\">" + escaped(mask) +
            "</span>: " + escaped(sizes_text(covered)) + "</li>";
  }
  const std::string sampled = sampled_words(coverage.value("sampled_positions", std::int64_t{0}));
  return html + "</ul>" + (sampled.empty() ? "" : "<p class=\"small\">" + sampled + "</p>");
}

std::string pairs_html(const json& pairs) {
  const json& not_met = pairs.at("not_met");
  std::string html = fmt::format(
      "<p class=\"small\">pairs of properties met against the reference: {} of {}</p>",
      readable(pairs.at("met").get<double>()), readable(pairs.at("claimed").get<double>()));
  if (not_met.empty()) return html;
  return html +
         fmt::format("<details><summary class=\"plain\">the {} not met</summary>", not_met.size()) +
         list_html(not_met) + "</details>";
}

std::string kernel_html(const json& kernel, std::size_t index, const char* state) {
  const json &description = kernel.at("description"), &coverage = kernel.at("coverage");
  std::string html = fmt::format(
      "<details class=\"card\" id=\"{}\"{}><summary><div class=\"head\"><h2 class=\"mono\">{}</h2>"
      "{}{}</div><p class=\"soft small\">{}</p></summary>",
      anchor(index), state, text_of(kernel, "kernel"), kernel_chip(kernel), place(kernel),
      text_of(description, "summary"));
  // Older certificates do not say.
  if (const json id = kernel.value("library_sha256", json()); id.is_string()) {
    html += "<p class=\"soft small\">SHA-256 of the file: <span class=\"mono\">" +
            escaped(id.get<std::string>()) + "</span></p>";
  }
  for (const json& one : kernel.value("needed", json::array())) {
    html += "<p class=\"soft small\">linked with <span class=\"mono\">" + text_of(one, "file") +
            "</span>, SHA-256 <span class=\"mono\">" + text_of(one, "sha256") + "</span></p>";
  }
  if (!kernel.at("findings").empty()) {
    html += "<h3>Findings</h3>" + findings_html(kernel.at("findings"), description.at("schedule"));
  }
  const json mask = kernel.value("mask", json(nullptr));
  if (mask.is_string()) {
    html += "<p>Every case has the mask " + escaped(mask.get<std::string>()) +
            "; nothing here is about others.</p>";
  }
  constexpr const char* kCounted[] = {"io", "io_backward"};
  for (const char* part : kCounted) {
    const json io = kernel.value(part, json());
    if (io.is_object() && !io.at("violations").empty()) {
      html += "<h3>I/O violated</h3>" + list_html(io.at("violations"));
    }
  }
  if (!kernel.at("incomplete").empty()) {
    html += "<h3>What is missing for a certificate</h3>" + list_html(kernel.at("incomplete"));
  }
  if (!kernel.at("worst").empty()) {
    html +=
        "<h3>Error over bound: the checks that passed, and the worst of all</h3><div "
        "class=\"charts\">";
    for (const auto& [output, worst] : kernel.at("worst").items()) {
      html += histogram_svg(output, worst);
    }
    html += "</div>";
  }
  html += "<div class=\"split\"><div><h3>Coverage: checks that counted</h3>" +
          coverage_html(description, coverage) + pairs_html(coverage.at("pairs")) +
          sizes_html(coverage);
  if (!coverage.at("not_claimed").empty()) {
    html += "<p class=\"small soft\">not covered:";
    const char* separator = " ";
    for (const auto& [feature, count] : coverage.at("not_claimed").items()) {
      html += separator + escaped(feature) + " (" + count.dump() + ")";
      separator = ", ";
    }
    html += "</p>";
  }
  html += "</div><div class=\"grow\"><h3>Laws</h3>" + laws_html(kernel.at("laws")) + "</div></div>";
  if (!coverage.at("refused").empty()) {
    html += "<h3>Refused although claimed</h3>" + refused_html(coverage.at("refused"));
  }
  for (const char* part : kCounted) {
    const json io = kernel.value(part, json());
    if (!io.is_object()) continue;
    const json& table = io.at("table");
    const bool of_code = !table.empty() && table.front().value("of_code", json()).is_object();
    html += "<h3>Words moved by <code>" + text_of(io, "schedule") + "</code>" +
            (of_code ? ", counted in the code as it ran on one thread," : "") +
            " against proved bounds</h3>" + io_html(io);
    if (!io.at("not_counted").empty()) {
      html += "<p class=\"small soft\">not counted:</p>" + list_html(io.at("not_counted"));
    }
  }
  return html + "<p></p>" + description_html(description) + "</details>";
}

// The statement of every law that the certificate names. This program may not know those of others.
std::string statements_html(const json& kernels) {
  std::set<std::string> named;
  for (const json& kernel : kernels) {
    for (const auto& [law, count] : kernel.at("laws").items()) named.insert(law);
    for (const json& finding : kernel.at("findings")) {
      named.insert(finding.at("law").get<std::string>());
      for (const json& law : finding.value("also", json::array())) {
        named.insert(law.get<std::string>());
      }
    }
  }
  if (named.empty()) return "";
  std::string html = "<section class=\"card\"><h2>What the laws say</h2><dl>";
  for (const std::string& law : named) {
    const auto& known = proptest::laws();
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const proptest::Law& one) { return one.name == law; });
    html += fmt::format("<dt class=\"mono law\" id=\"law-{0}\">{0}</dt><dd>{1}</dd>", escaped(law),
                        found == known.end() ? "not a law of this version of Attest"
                                             : mathematics(found->statement));
  }
  return html + "</dl></section>";
}

// Older certificates have neither date, commit nor SHA-256.
std::string origin_html(const json& certificate) {
  std::string html;
  const auto add = [&html](const json& object, const char* key, const char* before,
                           const char* after) {
    const json value = object.value(key, json());
    if (!value.is_string() || value.get<std::string>().empty()) return;
    html += (html.empty() ? "" : ", ") + (before + escaped(value.get<std::string>())) + after;
  };
  add(certificate.at("timings"), "date", "made ", "");
  add(certificate.at("build"), "commit", "by Attest of commit <span class=\"mono\">", "</span>");
  add(certificate, "sha256", "SHA-256 of the certificate <span class=\"mono\">", "</span>");
  return html.empty() ? "" : html + "<br/>";
}

std::string footer(const json& certificate) {
  const json& build = certificate.at("build");
  return "<footer>" + origin_html(certificate) + text_of(certificate, "schema") + ", ABI " +
         certificate.at("abi_version").dump() + ", random-number stream " +
         certificate.at("stream_version").dump() + "; compiler " + text_of(build, "compiler") +
         ", <span class=\"mono\">" + text_of(build, "flags") + "</span></footer>";
}

std::string page(const json& certificate) {
  const json& kernels = certificate.at("kernels");
  std::string html = banner(certificate);
  if (kernels.size() > 1) {
    html += "<div class=\"card\">" + overview(certificate, kThisPage) + "</div>";
  }
  constexpr std::size_t kAllOpen = 2;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const bool open = kernels.size() <= kAllOpen || !kernels[k].at("findings").empty();
    html += kernel_html(kernels[k], k, open ? " open" : "");
  }
  html += statements_html(kernels) + footer(certificate);
  return framed("Attest certificate", html);
}

}  // namespace

std::string verdict_banner(const json& certificate) { return banner(certificate); }

std::string kernels_table(const json& certificate, const std::string& report) {
  return overview(certificate, report);
}

std::string html_report(const json& certificate) {
  return reading_certificate([&] { return page(certificate); });
}

}  // namespace attest::certify
