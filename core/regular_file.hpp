#pragma once

#include <fstream>
#include <string>

namespace attest {

/// Opens a regular file for reading: a device or pipe need not end. `what` begins the message and
/// `expected` ends it: "mask: '.' is a directory; pass a text file".
/// Throws InvalidProblem for anything else.  [core/pattern_test "a regular file only"]
std::ifstream open_regular_file(const std::string& what, const std::string& path,
                                const std::string& expected);

}  // namespace attest
