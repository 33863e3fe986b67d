#pragma once

#include <cfenv>

#include "gpu/ptx/program/program.hpp"

namespace attest::ptx {

/// The processor's rounding mode for as long as it lives.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding rounding) : is_changed_(rounding != Rounding::nearest) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    if (is_changed_) std::fesetround(kModes[static_cast<int>(rounding)]);
  }
  ~RoundingScope() {
    if (is_changed_) std::fesetround(FE_TONEAREST);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

  /// Keeps the compiler from moving arithmetic with these values out of the scope: it believes that
  /// they may change here.
  template <class... Values>
  static void pin(Values&... values) {
    (pin_one(values), ...);
  }

 private:
  template <class Value>
  static void pin_one(Value& value) {
    asm volatile("" : "+m"(value));
  }

  bool is_changed_;
};

}  // namespace attest::ptx
