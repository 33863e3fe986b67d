#include "certify/report/html/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "certify/report/html/frame.hpp"
#include "certify/report/html/markup.hpp"
#include "certify/report/ratio.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// A rectangle without a border.
std::string rectangle(double x, double y, double width, double height, const std::string& fill) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
                     coordinate(x), coordinate(y), coordinate(width), coordinate(height), fill);
}

std::string label(double x, double y, const char* anchor, const std::string& text,
                  const char* style = "") {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" class=\"{}\">{}</text>",
                     coordinate(x), coordinate(y), anchor, style, escaped(text));
}

// 0: within the bound; 1 to 4: beyond it by more and more; 5: NaN or infinity out of place.
std::size_t severity(const json& ratio) {
  constexpr std::array<double, 4> kEdges{1, 10, 1000, 1000000};
  if (ratio.is_null()) return kEdges.size() + 1;
  std::size_t level = 0;
  while (level < kEdges.size() && ratio.get<double>() > kEdges[level]) ++level;
  return level;
}

// The size of a tile along an axis, from a schedule such as flash2:bq=128,bk=64; 0: unknown.
std::int64_t tile_of(const json& schedule, const std::string& axis) {
  if (!schedule.is_string()) return 0;
  const std::string key = axis == "seqlen_q" ? "bq=" : axis == "seqlen_k" ? "bk=" : "";
  const auto& text = schedule.get_ref<const std::string&>();
  const std::size_t at = key.empty() ? std::string::npos : text.find(key);
  if (at == std::string::npos) return 0;
  std::int64_t size = 0;
  for (std::size_t k = at + key.size(); k < text.size() && text[k] >= '0' && text[k] <= '9'; ++k) {
    constexpr std::int64_t kMost = 1 << 20;
    size = std::min<std::int64_t>(10 * size + (text[k] - '0'), kMost);
  }
  return size;
}

// Lines between tiles.
std::string tile_lines(std::int64_t extent, std::int64_t tile, double scale, double length,
                       bool across) {
  std::string lines;
  for (std::int64_t at = tile; tile > 0 && at < extent; at += tile) {
    const double place = static_cast<double>(at) * scale;
    lines += across ? fmt::format("M0 {}H{}", coordinate(place), coordinate(length))
                    : fmt::format("M{} 0V{}", coordinate(place), coordinate(length));
  }
  return lines;
}

}  // namespace

std::string histogram_svg(const std::string& output, const json& worst) {
  constexpr double kWidth = 228, kHeight = 118, kLeft = 4, kTop = 24, kBase = 96;
  const auto counts = worst.at("histogram").get<std::vector<double>>();
  const double most = std::max(1.0, *std::max_element(counts.begin(), counts.end()));
  const double step = (kWidth - 2 * kLeft) / static_cast<double>(counts.size());
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\">", kWidth, kHeight, kWidth);
  const auto place = [&](double bin) { return kWidth - kLeft - step * bin; };
  double total = 0;
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    total += counts[bin];
    if (counts[bin] <= 0) continue;
    constexpr double kLeast = 1.5;
    const double height = std::max(kLeast, (kBase - kTop) * counts[bin] / most);
    const double x = place(static_cast<double>(bin) + 1);
    const std::string range = bin + 1 == counts.size()
                                  ? fmt::format("up to 2^-{}", bin)
                                  : fmt::format("2^-{} to 2^-{}", bin + 1, bin);
    svg += "<g><title>" + escaped(fmt::format("{:.0f} checks, {}", counts[bin], range)) +
           "</title>" + rectangle(x + 1, kBase - height, step - 2, height, "var(--accent)") +
           "</g>";
  }
  svg += rectangle(kLeft, kBase, kWidth - 2 * kLeft, 1, "var(--line)");
  svg += rectangle(kWidth - kLeft - 1, kTop - 6, 1.5, kBase - kTop + 8, "var(--bad)");
  svg += label(kLeft, 12, "start", output, "strong");
  constexpr std::size_t kShort = 16;  // of a longer name the number alone has room beside it
  svg += label(kWidth - kLeft, 12, "end",
               (output.size() <= kShort ? "worst " : "") +
                   error_ratio_text(ratio_in(worst.at("error_over_bound"))));
  svg += label(kWidth - kLeft, kHeight - 8, "end", "bound");
  for (const int bin : {4, 8, 12}) {
    svg += label(place(bin), kHeight - 8, "middle", fmt::format("1/{}", 1 << bin));
  }
  return svg + fmt::format("<title>{}: worst error over bound of {:.0f} checks</title></svg>",
                           escaped(output), total);
}

std::string error_grid_svg(const json& errors, const json& schedule) {
  const auto rows = errors.at("rows").get<std::int64_t>();
  const auto columns = errors.at("columns").get<std::int64_t>();
  const auto row_step = errors.at("row_step").get<std::int64_t>();
  const auto column_step = errors.at("column_step").get<std::int64_t>();
  const auto row_axis = errors.at("row_axis").get<std::string>();
  const auto column_axis = errors.at("column_axis").get<std::string>();
  const json& cells = errors.at("error_over_bound");
  const std::int64_t across = (columns + column_step - 1) / column_step;
  const std::int64_t down = (rows + row_step - 1) / row_step;
  if (across < 1 || down < 1 || cells.size() != static_cast<std::size_t>(across * down)) return "";
  constexpr double kSide = 256, kLargestCell = 22;
  const double cell = std::min(kLargestCell, kSide / static_cast<double>(std::max(across, down)));
  const double width = cell * static_cast<double>(across);
  const double height = cell * static_cast<double>(down);
  std::array<std::string, 6> paths;
  std::array<std::int64_t, 6> counts{};
  for (std::int64_t i = 0; i < down; ++i) {
    for (std::int64_t j = 0; j < across; ++j) {
      const std::size_t level = severity(cells[static_cast<std::size_t>(i * across + j)]);
      ++counts[level];
      if (level == 0) continue;
      paths[level] += fmt::format("M{} {}h{}v{}h-{}z", coordinate(static_cast<double>(j) * cell),
                                  coordinate(static_cast<double>(i) * cell), coordinate(cell),
                                  coordinate(cell), coordinate(cell));
    }
  }
  std::string svg =
      fmt::format("<figure><svg viewBox=\"-1 -1 {} {}\" width=\"{}\" role=\"img\">",
                  coordinate(width + 2), coordinate(height + 2), coordinate(width + 2));
  svg += "<title>error over bound, cell by cell</title>" +
         rectangle(0, 0, width, height, "var(--mark)");
  for (std::size_t level = 1; level < paths.size(); ++level) {
    if (paths[level].empty()) continue;
    svg += fmt::format("<path fill=\"var(--e{})\" d=\"{}\"/>", level, paths[level]);
  }
  const std::int64_t row_tile = tile_of(schedule, row_axis);
  svg +=
      "<path fill=\"none\" stroke=\"var(--ink)\" stroke-opacity=\".55\" stroke-width=\"1\" d=\"" +
      tile_lines(rows, row_tile, cell / static_cast<double>(row_step), width, true) +
      fmt::format("M0 0H{0}V{1}H0z\"/></svg>", coordinate(width), coordinate(height));
  constexpr std::array<const char*, 6> kWords{"within the bound",
                                              "up to 10\u00d7 the bound",
                                              "up to 1000\u00d7 the bound",
                                              "up to 10\u2076\u00d7 the bound",
                                              "further beyond",
                                              "NaN or infinity"};
  svg += "<div class=\"legend\">";
  for (std::size_t level = 0; level < counts.size(); ++level) {
    if (counts[level] == 0) continue;
    svg += fmt::format("<span><i style=\"background:var({})\"></i>{}</span>",
                       level == 0 ? "--mark" : "--e" + std::to_string(level), kWords[level]);
  }
  svg += "</div><figcaption>" + escaped(fmt::format("largest |result \u2212 exact| over its bound "
                                                    "in each cell; {} of batch {}, head {}: {} {} "
                                                    "down, {} {} across",
                                                    errors.at("output").get<std::string>(),
                                                    errors.at("batch").get<std::int64_t>(),
                                                    errors.at("head").get<std::int64_t>(), rows,
                                                    row_axis, columns, column_axis));
  if (row_step * column_step > 1) {
    svg += fmt::format("; a cell is {} \u00d7 {}", row_step, column_step);
  }
  if (row_tile > 0 && row_tile < rows) {
    svg += fmt::format("; lines between the schedule's tiles of {}", row_tile);
  }
  return svg + "</figcaption></figure>";
}

std::string coverage_html(const json& description, const json& coverage) {
  const json &dtypes = description.at("dtypes"), &matrix = coverage.at("matrix");
  std::vector<std::string> rows{"any"};
  for (const json& feature : description.at("features")) rows.push_back(feature.get<std::string>());
  double most = 1;
  for (const auto& [dtype, features] : matrix.items()) {
    for (const auto& [feature, count] : features.items()) {
      if (feature != "any") most = std::max(most, count.get<double>());
    }
  }
  std::string html = "<div class=\"scroll\"><table class=\"matrix\"><tr><th></th>";
  for (const json& dtype : dtypes) {
    html += "<th class=\"mono\" style=\"text-align:center\">" + escaped(dtype.get<std::string>()) +
            "</th>";
  }
  html += "</tr>";
  for (const std::string& row : rows) {
    html += "<tr><th class=\"mono\">" + escaped(row == "any" ? "all checks" : row) + "</th>";
    for (const json& dtype : dtypes) {
      const auto of = matrix.find(dtype.get<std::string>());
      const double count = of == matrix.end() ? 0 : of->value(row, 0.0);
      if (count <= 0) {
        html += "<td class=\"missing\" title=\"claimed, no check counted\">0</td>";
        continue;
      }
      constexpr double kLeast = 8, kMost = 62;
      const double share =
          kLeast + (kMost - kLeast) * std::log1p(count) / std::log1p(std::max(most, count));
      html += fmt::format(
          "<td style=\"background-color:color-mix(in srgb,var(--accent) {:.0f}%,var(--card))\">"
          "{}</td>",
          row == "any" ? 0 : share, readable(count));
    }
    html += "</tr>";
  }
  return html + "</table></div>";
}

// The conditions under which the bounds of a table hold.
std::string class_html(const json& kernel_class) {
  std::string html =
      "<details><summary class=\"plain\">the class of kernels that the bounds hold "
      "for</summary><ul>";
  for (const json& condition : kernel_class.at("conditions")) {
    html += "<li>" + escaped(condition.at("name").get<std::string>()) + " " +
            escaped(condition.at("text").get<std::string>());
    if (!condition.at("met").get<bool>()) {
      html += ": fails, " + escaped(condition.at("found").get<std::string>());
    }
    html += "</li>";
  }
  if (kernel_class.at("evaluates_once").get<bool>()) {
    html += "<li>declared: no score, P or dP is evaluated twice</li>";
  }
  if (kernel_class.at("moves_whole_rows").get<bool>()) {
    html += "<li>declared: all rows of an index enter and leave together</li>";
  }
  if (kernel_class.value("reads_saved_outputs", false)) {  // older certificates do not say
    html += "<li>declared: O and LSE of the forward pass are read</li>";
  }
  return html + "</ul></details>";
}

std::string io_html(const json& io) {
  std::string html = open_data_table() +
                     "<thead><tr><th>problem</th><th class=\"n\">words moved</th>"
                     "<th class=\"n\">lower bound</th><th>bound</th><th class=\"n\">ratio</th>"
                     "<th>log scale to 64\u00d7</th></tr></thead><tbody>";
  for (const json& row : io.at("table")) {
    const json of_code = row.value("of_code", json());
    const json &lower = (of_code.is_object() ? of_code : row).at("lower"), &ratio = row.at("ratio");
    const json& moved =
        of_code.is_object() ? of_code.at("moved") : row.at("counted").at("moved").at("words");
    const bool bounded = lower.is_object() && ratio.is_number();
    html += "<tr><td class=\"mono problem\">" + breakable(row.at("problem").get<std::string>()) +
            "</td><td class=\"n\">" + readable(moved.get<double>()) + "</td>";
    if (!bounded) {
      html += "<td class=\"n none\">none applies</td><td></td><td></td><td></td></tr>";
      continue;
    }
    constexpr double kMostDoublings = 6;
    const double over = ratio.get<double>();
    const double part = std::clamp(std::log2(over) / kMostDoublings, 0.0, 1.0);
    html += "<td class=\"n\">" + readable(lower.at("words").get<double>()) +
            "</td><td class=\"mono\">" + escaped(lower.at("name").get<std::string>()) +
            fmt::format(
                "</td><td class=\"n\">{:.2f}\u00d7</td><td class=\"wide\"><div "
                "class=\"bar\"><i style=\"width:{}%;background:var(--accent)\"></i></div>"
                "</td></tr>",
                over, coordinate(std::max(1.0, 100 * part)));
  }
  html += "</tbody>" + close_data_table();
  return io.at("table").empty() ? html : html + class_html(io.at("table").front().at("class"));
}

}  // namespace attest::certify
