#pragma once

#include <stdexcept>

namespace attest {

/// The caller's mistake: the message names the object, the axis, the value got, the value needed
/// and the remedy. The command line turns it into exit code 2.
struct InvalidProblem : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Our own bug. The command line turns it into exit code 5.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace attest
