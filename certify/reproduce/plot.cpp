#include "certify/reproduce/plot.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "certify/count/program.hpp"
#include "certify/files.hpp"
#include "certify/report/html/mathematics.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

// Okabe and Ito's colours, which the colour-blind tell apart, and points that grey tells apart.
constexpr std::array<const char*, 7> kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                              "#B8860B", "#56B4E9", "#7A5195"};
constexpr std::array<int, 5> kPoints{5, 7, 9, 13, 11};

constexpr std::array<int, 5> kBoundPoints{1, 2, 3, 11, 10};

// Double quotes and backslashes would end or change gnuplot's text.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') safe += '\\';
    safe += letter;
  }
  return '"' + safe + '"';
}

std::string style(const Curve& curve, std::size_t index) {
  if (curve.kind == Curve::Kind::bound) {
    return fmt::format("with linespoints lc rgb \"#707070\" dt {} pt {} ps 0.9 lw 1.2",
                       2 + index % 4, kBoundPoints[index % kBoundPoints.size()]);
  }
  // Where points would cover each other the line alone tells curves apart, by its dashes too.
  constexpr std::size_t kMostPoints = 60;
  if (curve.points.size() > kMostPoints) {
    return fmt::format("with lines lc rgb \"{}\" dt {} lw 1.5", kColours[index % kColours.size()],
                       1 + index % 5);
  }
  // Once every point was used, the lines are dashed.
  return fmt::format("with linespoints lc rgb \"{}\" pt {} dt {} ps 1.1",
                     kColours[index % kColours.size()], kPoints[index % kPoints.size()],
                     1 + index / kPoints.size());
}

std::string axes(const Plot& plot) {
  using Scale = Plot::Scale;
  std::string text;
  text += plot.scale_x == Scale::logarithmic ? "set logscale x 2\nset format x \"%.6g\"\n"
                                             : "set format x \"%.4g\"\n";
  text += plot.scale_y == Scale::logarithmic ? "set logscale y 10\nset format y \"10^{%T}\"\n"
                                             : "set format y \"%.4g\"\n";
  if (plot.mark_x) {
    text += fmt::format(
        "set arrow 1 from first {0:.10g}, graph 0 to first {0:.10g}, graph 1 nohead lc rgb "
        "\"#808080\" dt 3\nset label 1 {1} at first {0:.10g}, graph 0.03 offset 0.6,0 "
        "noenhanced\n",
        *plot.mark_x, quoted(plain_mathematics(plot.mark)));
  }
  return text;
}

// The size of a drawing whose legend lies below the plot, in the fewest lines that its names need:
// it takes height that is added, none of the plot's.
struct Canvas {
  int width = 860, height = 460, legend_columns = 1;
};

Canvas canvas_for(const Plot& plot) {
  // Widths in the font of 13 points; a sample stands before each name.
  constexpr std::size_t kLetter = 8, kSample = 70, kUsable = 820;
  constexpr int kLine = 20;
  std::size_t longest = 1, count = 0;
  for (const Curve& curve : plot.curves) {
    if (curve.points.empty()) continue;
    longest = std::max(longest, plain_mathematics(curve.name).size());
    ++count;
  }
  const std::size_t columns = std::clamp<std::size_t>(kUsable / (longest * kLetter + kSample), 1,
                                                      std::max<std::size_t>(count, 1));
  Canvas canvas;
  canvas.legend_columns = static_cast<int>(columns);
  canvas.height += kLine * static_cast<int>((count + columns - 1) / columns);
  return canvas;
}

}  // namespace

std::string gnuplot_script(const Plot& plot) {
  const Canvas canvas = canvas_for(plot);
  std::string data, curves;
  std::size_t measured = 0, bounds = 0, number = 0;
  for (const Curve& curve : plot.curves) {
    if (curve.points.empty()) continue;
    data += fmt::format("$c{} << EOD\n", number);
    for (const auto& [x, y] : curve.points) data += fmt::format("{:.10g} {:.10g}\n", x, y);
    data += "EOD\n";
    const std::size_t index = curve.kind == Curve::Kind::bound ? bounds++ : measured++;
    curves += fmt::format("{}$c{} using 1:2 {} title {}", number == 0 ? "plot " : ", \\\n  ",
                          number, style(curve, index), quoted(plain_mathematics(curve.name)));
    ++number;
  }
  return fmt::format(
      "# gnuplot {0}.gp\nset encoding utf8\n{1}"
      "set title {2} noenhanced\nset xlabel {3} noenhanced\nset ylabel {4} noenhanced\n"
      "{6}"
      "set xtics rotate by -35\nset grid lt 1 lc rgb \"#a0a0a0\" lw 0.3\n"
      "set rmargin 7\nset key below center horizontal Left reverse maxcols {9} height 1 "
      "noenhanced\n"
      "set terminal svg size {7},{8} dynamic font \"sans,13\" linewidth 1.3\n"
      "set output \"{0}.svg\"\n{5}\n"
      "set terminal pngcairo size {10},{11} font \"sans,24\" linewidth 2.4 background rgb "
      "\"white\"\n"
      "set output \"{0}.png\"\nreplot\n",
      plot.name, data, quoted(plain_mathematics(plot.title)), quoted(plain_mathematics(plot.x)),
      quoted(plain_mathematics(plot.y)), curves, axes(plot), canvas.width, canvas.height,
      canvas.legend_columns, 2 * canvas.width, 2 * canvas.height);
}

void draw(const Plot& plot, const std::string& folder) {
  const std::filesystem::path base = std::filesystem::path(folder) / plot.name;
  write_file(base.string() + ".gp", gnuplot_script(plot));
  const std::string log = base.string() + ".log";
  const int status = run_program(
      {{"sh", "-c", "command -v gnuplot >/dev/null || exit 127; cd -- \"$1\" && gnuplot \"$2\"",
        "sh", folder, plot.name + ".gp"},
       "gnuplot-nox",
       {}},
      log);
  const std::string said = read_file(log);
  std::remove(log.c_str());
  constexpr int kAbsent = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kAbsent) {
    throw InvalidProblem("cannot start gnuplot; install it (apt-get install gnuplot-nox)");
  }
  if (status != 0) throw InternalError("gnuplot " + plot.name + ".gp: " + said);
}

std::string inline_svg(const std::string& svg) {
  const std::size_t begin = svg.find("<svg");
  if (begin == std::string::npos) throw InternalError("gnuplot drew no SVG");
  std::string text = svg.substr(begin);
  const std::array<std::pair<const char*, const char*>, 4> inks{
      {{" color=\"black\"", ""},
       {"=\"black\"", "=\"currentColor\""},
       {"='black'", "='currentColor'"},
       {"<title>Gnuplot</title>", ""}}};
  for (const auto& [from, to] : inks) {
    const std::string old = from;
    for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos;) {
      text.replace(at, old.size(), to);
    }
  }
  return text;
}

}  // namespace attest::certify
