#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "gpu/ptx/execution/choices.hpp"
#include "gpu/ptx/program/program.hpp"
#include "gpu/simt/launch.hpp"

namespace attest::ptx {

/// Values of a kernel's parameters, in their order.
class Parameters {
 public:
  /// Throws InvalidProblem for one too many, or of another size than the kernel's.
  explicit Parameters(const Program& program) : program_(program) {
    bytes_.resize(program.parameter_bytes);
  }

  template <class T>
  Parameters& add(const T& value) {
    add_bytes(&value, sizeof value);
    return *this;
  }
  void add_bytes(const void* value, std::size_t bytes);
  /// Throws InvalidProblem where some are missing.
  std::span<const std::byte> bytes() const;

 private:
  const Program& program_;
  std::vector<std::byte> bytes_;
  std::size_t count_ = 0;
};

/// Executes a kernel: warps take turns at barriers, blocks run on several threads.
///
/// Pointers among the parameters are the host's; each access must stay within a buffer of `global`
/// to the byte. With checks on, races in shared and global memory are found, and words of shared
/// memory that are read before they are written. Diagnoses name the line of the PTX, and of what
/// was compiled to it (.loc). Words are counted by buffer; a module's variables come after these.
///
/// Requires: extents as a device takes them, a block of .reqntid threads, shared memory within the
///           emulation's limit. Else throws InvalidProblem.
/// [gpu/ptx/execution/executor_test]
simt::LaunchReport execute(const Program& program, const simt::LaunchShape& shape,
                           const simt::Emulation& emulation, const simt::GlobalMemory& global,
                           const Parameters& parameters, const Choices& choices = {});

}  // namespace attest::ptx
