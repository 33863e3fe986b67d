#include "certify/reproduce/plot.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "certify/files.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

Plot small_plot() {
  return {"plot_test",
          "a \"title\" \\ with_signs",
          "x",
          "y",
          {{"measured_1", Curve::Kind::measured, {{1, 2}, {2, 4}}},
           {"empty", Curve::Kind::measured, {}},
           {"bound_1", Curve::Kind::bound, {{1, 1}, {2, 2}}}}};
}

TEST_CASE("a script holds the data and quotes every text", "[plot]") {
  const std::string script = gnuplot_script(small_plot());
  CHECK_THAT(script, Catch::Contains("set title \"a \\\"title\\\" \\\\ with_signs\""));
  CHECK_THAT(script, Catch::Contains("1 2\n2 4\nEOD\n"));
  CHECK_THAT(script, !Catch::Contains("empty"));
  CHECK_THAT(script, Catch::Contains("title \"bound_1\""));
  CHECK_THAT(script, Catch::Contains("set output \"plot_test.svg\""));
  CHECK_THAT(script, Catch::Contains("set output \"plot_test.png\""));
}

TEST_CASE("a plot is drawn as SVG and PNG", "[plot]") {
  namespace fs = std::filesystem;
  const fs::path folder = "plot_test folder";
  fs::remove_all(folder);
  fs::create_directory(folder);
  draw(small_plot(), folder.string());
  const std::string svg = read_file((folder / "plot_test.svg").string()),
                    png = read_file((folder / "plot_test.png").string());
  CHECK_THAT(svg, Catch::Contains("measured_1") && Catch::Contains("bound_1"));
  CHECK(png.substr(1, 3) == "PNG");
  const std::string part = inline_svg(svg);
  CHECK_THAT(part, Catch::StartsWith("<svg"));
  CHECK_THAT(part, !Catch::Contains("black"));
  CHECK_FALSE(fs::exists(folder / "plot_test.log"));
  Plot broken = small_plot();
  broken.curves.clear();
  CHECK_THROWS_AS(draw(broken, folder.string()), InternalError);
  fs::remove_all(folder);
}

// The width of the frame of a plot that gnuplot drew, over that of the drawing.
double share_of_width(const std::string& svg) {
  const std::regex size("viewBox=\"0 0 ([0-9.]+) "),
      frame(
          "M([0-9.]+),[0-9.]+ L[0-9.]+,[0-9.]+ L([0-9.]+),[0-9.]+ L[0-9.]+,[0-9.]+ "
          "L[0-9.]+,[0-9.]+ Z");
  std::smatch found, framed;
  REQUIRE(std::regex_search(svg, found, size));
  REQUIRE(std::regex_search(svg, framed, frame));
  return (std::stod(framed[2]) - std::stod(framed[1])) / std::stod(found[1]);
}

TEST_CASE("a legend of long names leaves the plot two thirds of the width", "[plot]") {
  namespace fs = std::filesystem;
  const fs::path folder = "plot_test legend";
  fs::remove_all(folder);
  fs::create_directory(folder);
  Plot plot = small_plot();
  for (int k = 0; k < 9; ++k) {
    plot.curves.push_back(
        {"a schedule with a name that needs much room, and tiles " + std::to_string(k),
         Curve::Kind::measured,
         {{1, 2 + k}, {2, 4 + k}}});
  }
  draw(plot, folder.string());
  const fs::path script = folder / "plot_test.gp", drawing = folder / "plot_test.svg";
  CHECK(share_of_width(read_file(drawing.string())) >= 2. / 3);
  // The same with the legend beside the plot.
  const std::string beside =
      std::regex_replace(read_file(script.string()), std::regex("set rmargin.*\nset key below.*"),
                         "set key outside right top noenhanced");
  write_file(script.string(), beside);
  REQUIRE(std::system(("cd '" + folder.string() + "' && gnuplot plot_test.gp").c_str()) == 0);
  CHECK(share_of_width(read_file(drawing.string())) < 2. / 3);
  fs::remove_all(folder);
}

TEST_CASE("formulas of a plot have the signs of Unicode", "[plot]") {
  Plot plot = small_plot();
  plot.title = "N^2 d^2/M", plot.x = "M >= d^2", plot.curves[0].name = "1/sqrt(M)";
  const std::string script = gnuplot_script(plot);
  CHECK_THAT(script, Catch::Contains("N\u00b2 d\u00b2/M") && Catch::Contains("M \u2265 d\u00b2") &&
                         Catch::Contains("1/\u221aM"));
}

}  // namespace
}  // namespace attest::certify
