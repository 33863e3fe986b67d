#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attest::certify {

/// Files beside the first page, as relative paths from it; empty where there is none.
struct IndexLinks {
  std::string report;       // html_report of the certificate
  std::string certificate;  // the file itself
  std::string junit;
  std::string papers;  // the page of attest reproduce
};

/// Returns the first page: the certificate's verdict with a line for each kernel, and how many
/// claims of the papers fared how, with a line for each experiment. Counts come from the two
/// objects. `papers` is an object of the schema attest-reproduce-1, or null.
///
/// Requires: objects of their schemas. Else throws InvalidProblem. [certify/report/html/index_test]
std::string index_page(const nlohmann::json& certificate, const nlohmann::json& papers,
                       const IndexLinks& links);

}  // namespace attest::certify
