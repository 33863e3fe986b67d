#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "io/schedule/schedule.hpp"
#include "proptest/judge/run.hpp"

/// A schedule's direction in the words of cases and of the ABI.
namespace attest::certify {

inline proptest::Direction direction_of(io::Direction direction) {
  switch (direction) {
    case io::Direction::forward:
      return proptest::Direction::forward;
    case io::Direction::backward:
      return proptest::Direction::backward;
    case io::Direction::loss_gradient:
      break;
  }
  return proptest::Direction::loss_gradient;
}

inline std::uint32_t claim_of(io::Direction direction) {
  switch (direction) {
    case io::Direction::forward:
      return ATTEST_FORWARD;
    case io::Direction::backward:
      return ATTEST_BACKWARD;
    case io::Direction::loss_gradient:
      break;
  }
  return ATTEST_LOSS_GRADIENT;
}

}  // namespace attest::certify
