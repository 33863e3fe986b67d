#pragma once

#include <string>
#include <string_view>

#include "gpu/simt/diagnosis.hpp"

namespace attest::simt {

/// The kernel's own line at the call before `return_address`, from the program's debug information,
/// by addr2line (binutils): where functions of the emulation or of the standard library were
/// inlined there, the line that calls them. Line 0 when either is absent.
/// [gpu/simt/hooks_test "every seeded bug is found in every order, at its line"]
///
/// Cost: a process for each address that was not asked for before.
SourceLine line_of_code(const void* return_address);

struct CodeLine {
  std::string file;
  int line = 0;
};

/// The kernel's line among what `addr2line -i` answers: a line for each frame, innermost first.
/// [gpu/simt/source_line_test]
CodeLine kernel_line(std::string_view answer);

}  // namespace attest::simt
