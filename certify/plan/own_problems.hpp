#pragma once

#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"

/// Problems of the caller's own that a campaign takes in: --problem and --problems.
namespace attest::certify {

/// The problems of a file, one a line, in canonical spelling; '#' begins a comment, and lines
/// without a problem are left out. Throws InvalidProblem with file and line of the first that is
/// none, and for a file that cannot be read or holds none. [certify/plan/own_problems_test]
std::vector<std::string> read_problems(const std::string& path);

/// The problems of the command line, then those of the file ("": none), each once, canonical.
/// [certify/plan/own_problems_test]
std::vector<std::string> own_problems(const std::vector<std::string>& given,
                                      const std::string& path);

/// Throws InvalidProblem where a problem needs more memory than the machine has, by the kernel.
void require_affordable_problems(const attest_kernel& kernel,
                                 const std::vector<std::string>& problems);

}  // namespace attest::certify
