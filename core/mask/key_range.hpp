#pragma once

#include <cstdint>

namespace attest {

/// Keys begin .. end-1.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

}  // namespace attest
