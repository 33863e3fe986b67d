#pragma once

#include <string_view>

#include "gpu/ptx/text/module.hpp"

namespace attest::ptx {

/// Reads a PTX text of version 7 to 9, as nvcc and Triton write it. Sections of debug information
/// are skipped; a comment is none of the program.
///
/// Throws InvalidProblem with line, column and text for all that is not PTX, and for directives
/// that are not carried out. [gpu/ptx/text/parser_test]
Module parse(std::string_view text);

}  // namespace attest::ptx
