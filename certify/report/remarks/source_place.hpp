#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attest::certify {

/// Where in a checkout a remark is shown; an empty file: nowhere, line 0: the whole file.
struct SourcePlace {
  std::string file;
  int line = 0;
};

/// Reads FILE or FILE:LINE. Throws InvalidProblem where nothing is before the colon, or the line is
/// no number from 1 on.  [certify/report/remarks/source_place_test]
SourcePlace parse_place(const std::string& text);

/// Returns the file and line that a message names, as races and tracebacks do; else the place that
/// the caller gave; else the file of the kernel's name, a library or a module in Python.
/// [certify/report/remarks/source_place_test]
SourcePlace place_of(const std::string& kernel, const std::string& message,
                     const SourcePlace& given);

}  // namespace attest::certify
