#include "certify/reproduce/plot.hpp"

#include <filesystem>
#include <fstream>

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

}  // namespace
}  // namespace attest::certify
