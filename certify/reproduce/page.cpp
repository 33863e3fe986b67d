#include "certify/reproduce/page.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "certify/report/html/markup.hpp"
#include "certify/report/html/page_style.hpp"
#include "certify/reproduce/plot.hpp"
#include "io/bounds/bound.hpp"

namespace attest::certify {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char letter : text) {
    if (letter == '"') field += '"';
    field += letter;
  }
  return field + '"';
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    line += csv_field(field);
  }
  return line + "\r\n";
}

std::string_view word(Curve::Kind kind) {
  return kind == Curve::Kind::bound ? "bound" : "measured";
}

const char* tone(Outcome outcome) {
  switch (outcome) {
    case Outcome::reproduced:
      return "good";
    case Outcome::corrected:
    case Outcome::not_compared:
      return "warn";
    case Outcome::not_reproduced:
      break;
  }
  return "bad";
}

std::string claim_html(const Claim& claim) {
  return fmt::format(
      "<div class=\"finding {}\"><div class=\"head\"><span class=\"chip {}\">{}</span>"
      "<b>{}</b></div><p class=\"soft small\">{}</p><p class=\"why\">{}</p></div>\n",
      tone(claim.outcome), tone(claim.outcome), name(claim.outcome), escaped(claim.text),
      escaped(claim.source), escaped(claim.measured));
}

std::string table_html(const Table& table) {
  std::string html =
      fmt::format("<h3>{}</h3><div class=\"scroll\"><table><tr>", escaped(table.title));
  for (const std::string& column : table.columns) html += "<th>" + escaped(column) + "</th>";
  html += "</tr>";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += "<td>" + escaped(cell) + "</td>";
    html += "</tr>";
  }
  return html + "</table></div>\n";
}

std::string plot_html(const Plot& plot, const std::string& command,
                      const std::map<std::string, std::string>& drawings) {
  const auto drawn = drawings.find(plot.name);
  if (drawn == drawings.end()) {
    return fmt::format("<p class=\"soft\">{}: not drawn; the points are in {}.csv</p>\n",
                       escaped(plot.title), escaped(plot.name));
  }
  return fmt::format(
      "<figure class=\"plot\">{}<figcaption>{}; also {}.png, .csv, .gp. "
      "<code>{}</code></figcaption></figure>\n",
      drawn->second, escaped(plot.title), escaped(plot.name), escaped(command));
}

std::string section_html(const Reproduced& one,
                         const std::map<std::string, std::string>& drawings) {
  std::string html = fmt::format("<section class=\"card\" id=\"{0}\"><h2>{1}</h2>",
                                 escaped(one.name), escaped(one.title));
  for (const Claim& claim : one.findings.claims) html += claim_html(claim);
  for (const Plot& plot : one.findings.plots) html += plot_html(plot, one.command, drawings);
  for (const Table& table : one.findings.tables) html += table_html(table);
  return html + fmt::format("<pre>{}</pre></section>\n", escaped(one.command));
}

std::string overview_html(const std::vector<Reproduced>& results) {
  std::string rows;
  for (const Reproduced& one : results) {
    rows += fmt::format("<tr><th colspan=\"2\">{}</th></tr>", escaped(one.title));
    for (const Claim& claim : one.findings.claims) {
      rows += fmt::format(
          "<tr><td><a href=\"#{}\">{}</a></td><td><span class=\"chip {}\">{}"
          "</span></td></tr>",
          escaped(one.name), escaped(claim.text), tone(claim.outcome), name(claim.outcome));
    }
  }
  return "<section class=\"card\"><h2>Claims</h2><table class=\"claims\">" + rows +
         "</table></section>\n";
}

// Plots as wide as the page, and on narrow screens as wide as they must be to be read.
constexpr const char* kPlotStyle =
    "figure.plot{overflow-x:auto;margin:18px 0}figure.plot svg{min-width:620px;width:100%}"
    "@media (prefers-color-scheme:dark){figure.plot svg{filter:brightness(1.4)}}"
    "figure.plot figcaption{max-width:none}.claims "
    ".chip{white-space:normal;border-radius:10px}h3{text-transform:none}";

}  // namespace

std::string csv(const Table& table) {
  std::string text = csv_line(table.columns);
  for (const auto& row : table.rows) text += csv_line(row);
  return text;
}

std::string csv(const Plot& plot) {
  std::string text = csv_line({"curve", "kind", plot.x, plot.y});
  for (const Curve& curve : plot.curves) {
    for (const auto& [x, y] : curve.points) {
      text += csv_line({curve.name, std::string(word(curve.kind)), fmt::format("{:.17g}", x),
                        fmt::format("{:.17g}", y)});
    }
  }
  return text;
}

nlohmann::json reproduce_json(const std::vector<Reproduced>& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const Reproduced& one : results) {
    nlohmann::json object{{"name", one.name},
                          {"title", one.title},
                          {"command", one.command},
                          {"seconds", one.seconds},
                          {"claims", nlohmann::json::array()},
                          {"plots", nlohmann::json::array()},
                          {"tables", nlohmann::json::array()}};
    for (const Claim& claim : one.findings.claims) {
      object["claims"].push_back({{"text", claim.text},
                                  {"source", claim.source},
                                  {"measured", claim.measured},
                                  {"outcome", name(claim.outcome)}});
    }
    for (const Plot& plot : one.findings.plots) {
      nlohmann::json curves = nlohmann::json::array();
      for (const Curve& curve : plot.curves) {
        curves.push_back(
            {{"name", curve.name}, {"kind", word(curve.kind)}, {"points", curve.points}});
      }
      object["plots"].push_back({{"name", plot.name},
                                 {"title", plot.title},
                                 {"x", plot.x},
                                 {"y", plot.y},
                                 {"curves", std::move(curves)}});
    }
    for (const Table& table : one.findings.tables) {
      object["tables"].push_back({{"name", table.name},
                                  {"title", table.title},
                                  {"columns", table.columns},
                                  {"rows", table.rows}});
    }
    list.push_back(std::move(object));
  }
  return {{"schema", "attest-reproduce-1"}, {"experiments", std::move(list)}};
}

std::string reproduce_page(const std::vector<Reproduced>& results,
                           const std::map<std::string, std::string>& drawings,
                           const std::string& about) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>The I/O of attention, counted"
      "</title><style>{}{}</style></head><body><main>\n"
      "<section class=\"card\"><h1>The I/O of attention, counted</h1><p>Claims of the papers on "
      "the "
      "I/O complexity of attention, each beside what was counted or measured here. Words are exact "
      "counts of schedules in a two-level memory; bounds are proved for the class below unless "
      "their "
      "name says that they are none.</p><p>A fitted exponent is that of a power law through "
      "counts, "
      "with its 95 % interval; a claimed one is <i>reproduced</i> when it is the nearest of those "
      "that are claimed anywhere and the interval excludes the others, for constants and terms of "
      "lower order bend the line. <i>With a correction</i>: so with another constant or under a "
      "condition that is named. <i>Not compared</i>: there was nothing to hold the claim "
      "against.</p><details><summary><span class=\"head\">What the bounds "
      "hold for</span></summary><pre>{}"
      "</pre></details><p class=\"soft small\">{}</p></section>\n",
      kPageStyle, kPlotStyle, escaped(io::class_text({})), escaped(about));
  html += overview_html(results);
  for (const Reproduced& one : results) html += section_html(one, drawings);
  return html + "</main></body></html>\n";
}

}  // namespace attest::certify
