#pragma once

#include <string>
#include <vector>

namespace attest::certify {

/// A program to run: found on the path, with arguments, and the Debian package that has it.
struct Program {
  std::vector<std::string> words;
  std::string package;
  std::vector<std::string> variables;  // NAME=value, in place of those of the same name
};

/// Runs it with both outputs appended to a file and no input; the status that waiting gave. Throws
/// InvalidProblem, with the line that installs it, when it cannot be started.
/// [certify/count/program_test]
int run_program(Program program, const std::string& output_file);

}  // namespace attest::certify
