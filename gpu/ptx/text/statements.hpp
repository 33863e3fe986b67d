#pragma once

#include "gpu/ptx/text/cursor.hpp"
#include "gpu/ptx/text/module.hpp"

namespace attest::ptx {

/// Reads the body of a function, from its "{" to its "}".
void take_body(Cursor& cursor, Function& function);

}  // namespace attest::ptx
