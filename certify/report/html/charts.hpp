#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

/// The pictures of a report: inline SVG and tables in HTML, coloured by the page's style sheet.
/// Their arguments are parts of a certificate; a part that is not as the schema says throws
/// nlohmann::json::exception.
namespace attest::certify {

/// One output's `worst`: how the worst error over bound of its checks are distributed.
std::string histogram_svg(const std::string& output, const nlohmann::json& worst);

/// A finding's `errors`: where in the output they lie, with the schedule's tiles as lines.
std::string error_grid_svg(const nlohmann::json& errors, const nlohmann::json& schedule);

/// Features by dtypes: the number of checks that counted, what is missing.
std::string coverage_html(const nlohmann::json& description, const nlohmann::json& coverage);

/// Words of every problem of `io` over the greatest lower bound that applies.
std::string io_html(const nlohmann::json& io);

}  // namespace attest::certify
