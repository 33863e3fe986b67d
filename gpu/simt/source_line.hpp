#pragma once

#include "gpu/simt/diagnosis.hpp"

namespace attest::simt {

/// The line of the call before `return_address`, from the program's debug information, by
/// addr2line (binutils). Line 0 when either is absent.  [gpu/simt/hooks_test]
///
/// Cost: a process for each address that was not asked for before.
SourceLine line_of_code(const void* return_address);

}  // namespace attest::simt
