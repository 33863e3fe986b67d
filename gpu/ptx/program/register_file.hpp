#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/ptx/text/types.hpp"

namespace attest::ptx {

/// Layout of a warp's registers: 32 lanes of each in a row, a predicate as 32 bits. Registers begin
/// as NaN, constants with their value in every lane.
class RegisterFile {
 public:
  /// Returns the slot of a new register.
  std::uint32_t add(Type type);
  /// The slot of a constant of that many bits; equal ones share it.
  std::uint32_t constant(std::uint64_t value, std::uint32_t bits);
  /// A predicate that is the same in every lane.
  std::uint32_t constant_predicate(bool value);

  /// Where results go that nobody reads.
  std::uint32_t sink();

  std::vector<std::byte> take_bytes() { return std::move(bytes_); }

 private:
  std::uint32_t allocate(std::size_t bytes);

  std::vector<std::byte> bytes_;
  std::optional<std::uint32_t> sink_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> constants_;
};

}  // namespace attest::ptx
