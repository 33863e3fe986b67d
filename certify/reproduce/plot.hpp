#pragma once

#include <string>

#include "certify/reproduce/experiment.hpp"

namespace attest::certify {

/// The gnuplot script that draws a plot as `name`.svg and `name`.png in its own folder, its data
/// inside, the legend below the plot, which keeps its width. Curves differ by colour, by point and,
/// bounds, by dashes, so that grey prints read. [certify/reproduce/plot_test]
std::string gnuplot_script(const Plot& plot);

/// Writes `name`.gp in the folder and runs it. Throws InvalidProblem when there is no gnuplot,
/// InternalError with its words when it fails.
void draw(const Plot& plot, const std::string& folder);

/// The drawn SVG as a part of a page: without prologue, black taken from the page's ink.
std::string inline_svg(const std::string& svg);

}  // namespace attest::certify
