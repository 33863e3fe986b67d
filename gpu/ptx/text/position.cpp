#include "gpu/ptx/text/position.hpp"

#include "core/error.hpp"

namespace attest::ptx {

void refuse(Position at, const std::string& message) {
  throw InvalidProblem("PTX line " + std::to_string(at.line) + ", column " +
                       std::to_string(at.column) + ": " + message);
}

}  // namespace attest::ptx
