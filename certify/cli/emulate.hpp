#pragma once

#include <cstdint>
#include <string>

namespace attest::certify::cli {

/// Options of `attest check --emulate`.
struct EmulateOptions {
  std::string kernel, problem, values;
  std::uint64_t seed = 1;
  bool races = false, json = false;
};

/// Becomes attest-emulate, which lies beside this program and has the emulated kernels with hooks.
/// Throws InvalidProblem when it is not there.  [ci/check_console on cli/approved/output.txt]
[[noreturn]] void become_emulation(const EmulateOptions& options);

}  // namespace attest::certify::cli
