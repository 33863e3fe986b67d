#pragma once

#include <initializer_list>

#include "io/replay/accesses.hpp"

namespace attest::io::testing {

/// A trace of addresses below `words`, without scratch.
inline AccessTrace trace_of(std::vector<Access> accesses, std::int64_t words = kLongestLine) {
  AccessTrace trace;
  trace.accesses = std::move(accesses);
  trace.scratch = trace.words = words;
  return trace;
}

/// Reads only.
inline AccessTrace reads(std::initializer_list<std::uint32_t> words) {
  std::vector<Access> accesses;
  for (const std::uint32_t word : words) accesses.push_back({word, Use::read});
  return trace_of(std::move(accesses));
}

}  // namespace attest::io::testing
