#include "certify/reproduce/page.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "certify/report/html/frame.hpp"
#include "certify/report/html/markup.hpp"
#include "certify/report/html/mathematics.hpp"
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

std::string chip(Outcome outcome) {
  return fmt::format("<span class=\"chip {}\">{}</span>", tone(outcome), name(outcome));
}

std::string claim_html(const Claim& claim) {
  return fmt::format(
      "<div class=\"finding {}\"><div class=\"head\">{}<b>{}</b></div><p class=\"soft "
      "small\">{}</p><p class=\"why\">{}</p></div>\n",
      tone(claim.outcome), chip(claim.outcome), mathematics(claim.text), mathematics(claim.source),
      mathematics(claim.measured));
}

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.+-") == std::string::npos;
}

// Whole numbers of five digits and more have their thousands apart.
std::string cell_html(const std::string& text) {
  constexpr std::size_t kFewest = 5, kMost = 15;
  const bool whole = text.find_first_not_of("0123456789") == std::string::npos;
  return whole && text.size() >= kFewest && text.size() <= kMost ? readable(std::stod(text))
                                                                 : mathematics(text);
}

// Columns of numbers are set to the right.
std::string table_html(const Table& table) {
  std::vector<bool> numbers(table.columns.size(), !table.rows.empty());
  for (const auto& row : table.rows) {
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      numbers[k] = numbers[k] && k < row.size() && (row[k].empty() || is_number(row[k]));
    }
  }
  const auto cell = [&](const char* tag, std::size_t column, const std::string& text) {
    const bool right = column < numbers.size() && numbers[column];
    return fmt::format("<{0}{1}>{2}</{0}>", tag, right ? " class=\"n\"" : "", cell_html(text));
  };
  std::string html = fmt::format("<h3 class=\"plain\">{}</h3>{}<thead><tr>",
                                 mathematics(table.title), open_data_table());
  for (std::size_t k = 0; k < table.columns.size(); ++k) html += cell("th", k, table.columns[k]);
  html += "</tr></thead><tbody>";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t k = 0; k < row.size(); ++k) html += cell("td", k, row[k]);
    html += "</tr>";
  }
  return html + "</tbody>" + close_data_table() + "\n";
}

std::string plot_html(const Plot& plot, const std::string& command,
                      const std::map<std::string, std::string>& drawings) {
  const auto drawn = drawings.find(plot.name);
  if (drawn == drawings.end()) {
    return fmt::format("<p class=\"soft\">{}: not drawn; the points are in {}.csv</p>\n",
                       mathematics(plot.title), escaped(plot.name));
  }
  return fmt::format(
      "<figure class=\"plot\">{}<figcaption>{}; also {}.png, .csv, .gp. "
      "<code>{}</code></figcaption></figure>\n",
      drawn->second, mathematics(plot.title), escaped(plot.name), escaped(command));
}

std::string section_html(const Reproduced& one,
                         const std::map<std::string, std::string>& drawings) {
  std::string html = fmt::format("<section class=\"card\" id=\"{0}\"><h2>{1}</h2>",
                                 escaped(one.name), mathematics(one.title));
  for (const Claim& claim : one.findings.claims) html += claim_html(claim);
  for (const Plot& plot : one.findings.plots) html += plot_html(plot, one.command, drawings);
  for (const Table& table : one.findings.tables) html += table_html(table);
  return html + fmt::format("<pre>{}</pre></section>\n", escaped(one.command));
}

std::string counts_html(const std::vector<Reproduced>& results) {
  std::string html = "<div class=\"counts\">";
  for (const auto& [outcome, count] : outcomes(results)) {
    html += fmt::format(
        "<button type=\"button\" class=\"count {}\" data-table=\"claims\" data-key=\"{}\" "
        "aria-pressed=\"false\"><b>{}</b>{}</button>",
        tone(outcome), name(outcome), count, name(outcome));
  }
  return html + "</div>";
}

std::string overview_html(const std::vector<Reproduced>& results) {
  std::string html = "<section class=\"card\"><h2>Claims</h2>" + open_data_table("claims") +
                     "<thead><tr><th>claim</th><th>outcome</th><th>source</th></tr></thead><tbody>";
  for (const Reproduced& one : results) {
    for (const Claim& claim : one.findings.claims) {
      html += fmt::format(
          "<tr data-key=\"{}\"><td><a href=\"#{}\">{}</a><br/><span class=\"soft small\">{}</span>"
          "</td><td>{}</td><td class=\"small\">{}</td></tr>",
          name(claim.outcome), escaped(one.name), mathematics(claim.text), mathematics(one.title),
          chip(claim.outcome), mathematics(claim.source));
    }
  }
  return html + "</tbody>" + close_data_table() + "</section>\n";
}

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

std::vector<std::pair<Outcome, std::size_t>> outcomes(const std::vector<Reproduced>& results) {
  std::vector<std::pair<Outcome, std::size_t>> counts;
  for (const Outcome outcome :
       {Outcome::reproduced, Outcome::corrected, Outcome::not_reproduced, Outcome::not_compared}) {
    std::size_t count = 0;
    for (const Reproduced& one : results) {
      for (const Claim& claim : one.findings.claims) count += claim.outcome == outcome ? 1 : 0;
    }
    counts.emplace_back(outcome, count);
  }
  return counts;
}

std::string reproduce_page(const std::vector<Reproduced>& results,
                           const std::map<std::string, std::string>& drawings,
                           const std::string& about) {
  std::size_t claims = 0;
  for (const auto& [outcome, count] : outcomes(results)) claims += count;
  std::string body = fmt::format(
      "\n<section class=\"card\"><h1>The I/O of attention, counted</h1>"
      "<p>{} claims of the papers on the I/O complexity of attention, each beside what was counted "
      "or measured here. Words are exact counts of schedules in a two-level memory; bounds are "
      "proved for the class below unless their name says that they are none.</p>{}"
      "<p>A fitted exponent is that of a power law through counts, with its 95 % interval; a "
      "claimed one is <i>reproduced</i> when it is the nearest of those that are claimed anywhere "
      "and the interval excludes the others, for constants and terms of lower order bend the line. "
      "<i>With a correction</i>: so with another constant or under a condition that is named. "
      "<i>Not compared</i>: there was nothing to hold the claim against.</p><details><summary>"
      "<span class=\"head\">What the bounds hold for</span></summary><pre>{}</pre></details>"
      "<p class=\"soft small\">{}</p></section>\n",
      claims, counts_html(results), mathematics(io::class_text({})), escaped(about));
  body += overview_html(results);
  for (const Reproduced& one : results) body += section_html(one, drawings);
  return framed("The I/O of attention, counted", body);
}

}  // namespace attest::certify
