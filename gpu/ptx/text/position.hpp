#pragma once

#include <string>

/// PTX on the host: text -> module (parser) -> checked program -> executor.
namespace attest::ptx {

/// Place in a PTX text; lines and columns count from 1.
struct Position {
  int line = 0, column = 0;
};

/// Throws InvalidProblem "PTX line 12, column 3: …".
[[noreturn]] void refuse(Position at, const std::string& message);

}  // namespace attest::ptx
