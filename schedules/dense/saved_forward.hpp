#pragma once

#include <optional>

#include "io/machine/guarded_pages.hpp"
#include "schedules/engine/heads.hpp"

namespace attest::schedules {

/// Matrices that the standard forward and flash1 save for their backward and the ABI has no tensor
/// for, made again from Q, K and LSE of one head: P = exp(S - LSE), the row maxima m, and
/// l = exp(LSE - m). Not counted, as the forward that saved them was.
class SavedForward {
 public:
  SavedForward(const attest_backward_args& args, HeadIndex index, io::SlowGuard guard);

  /// Puts the matrices in the head; they live as long as this object.
  void attach(BackwardHead& head) const;

 private:
  std::int64_t q_, k_;
  std::optional<io::SlowFloats> P_, m_, l_;
};

}  // namespace attest::schedules
