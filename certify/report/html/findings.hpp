#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

/// Writes what a certificate found, as parts of its page.
namespace attest::certify {

/// A law's name, which leads to its statement at the end of the page.
std::string law_link(const std::string& law);

/// The findings of a kernel with the schedule that it names: the first ones in full, the others
/// folded, for one mistake breaks many laws.  [certify/report/html/html_test]
std::string findings_html(const nlohmann::json& findings, const nlohmann::json& schedule);

}  // namespace attest::certify
