#pragma once

#include <fstream>
#include <string>

namespace attest {

/// Opens a regular file for reading: a device or pipe need not end. `what` begins the message and
/// `expected` ends it: "mask: '.' is a directory; pass a text file".
/// Throws InvalidProblem for anything else.  [core/mask/pattern_test "a regular file only"]
std::ifstream open_regular_file(const std::string& what, const std::string& path,
                                const std::string& expected);

/// All its bytes. Throws InvalidProblem as above, for more than 4 GiB or than memory holds, and
/// when reading fails.  [core/mask/sparsity/pattern_file_test "too large"]
std::string read_regular_file(const std::string& what, const std::string& path,
                              const std::string& expected);

}  // namespace attest
