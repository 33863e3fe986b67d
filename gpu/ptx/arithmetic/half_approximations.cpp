#include <cmath>

#include "gpu/ptx/arithmetic/floating.hpp"
#include "gpu/ptx/arithmetic/half_values.hpp"
#include "gpu/ptx/execution/block_run.hpp"

/// Approximations of f16 and bf16, each value from its exact one in double.
namespace attest::ptx {
namespace {

double exp2_of(double a) { return std::exp2(a); }
double tanh_of(double a) { return std::tanh(a); }

template <class Half>
double flushed_to_zero(double value) {
  const double least = std::ldexp(1.0, Half::kFormat.least_exponent);
  return std::fabs(value) < least ? std::copysign(0.0, value) : value;
}

// The nearest number, or the farthest within the error, above or below by the operand's parity.
template <class Half, double (*kFunction)(double), AllowedError kError>
std::uint16_t approximation_of(std::uint16_t operand, bool is_nearest, bool ftz) {
  double a = Half::decode(operand);
  if (ftz) a = flushed_to_zero<Half>(a);
  const double exact = kFunction(a);
  double value = rounded(exact, Half::kFormat, Rounding::nearest);
  if (!is_nearest && exact != 0.0 && std::isfinite(value) && !std::isinf(a)) {
    const bool is_above = operand % 2 != 0;
    const double distance = most(kError, exact, 0.0);
    const double far = is_above ? rounded(exact + distance, Half::kFormat, Rounding::down)
                                : rounded(exact - distance, Half::kFormat, Rounding::up);
    if (std::fabs(far - exact) <= distance) value = far;
  }
  if (ftz) value = flushed_to_zero<Half>(value);
  return encode<Half>(value, Rounding::nearest);
}

template <class Half, class Word, double (*kFunction)(double), AllowedError kError>
void run(Warp& warp, const Instruction& in) {
  const bool is_nearest = warp.block().choices().approximation == Approximation::nearest;
  each_lane<Word, Word>(warp, in, [&](Word word) {
    Word results = 0;
    for (std::size_t shift = 0; shift < 8 * sizeof(Word); shift += 16) {
      const auto operand = static_cast<std::uint16_t>(word >> shift);
      const Word result = approximation_of<Half, kFunction, kError>(operand, is_nearest, in.ftz);
      results = static_cast<Word>(results | result << shift);
    }
    return results;
  });
}

template <class Half, double (*kFunction)(double), AllowedError kError>
Execute function(const Spelling& spelling, Instruction&) {
  return bits(spelling.last_type()) == 32 ? run<Half, std::uint32_t, kFunction, kError>
                                          : run<Half, std::uint16_t, kFunction, kError>;
}

template <class Half, double (*kFunction)(double), AllowedError kError>
constexpr Form row(std::string_view pattern) {
  return {pattern, "d a", function<Half, kFunction, kError>, kError};
}

constexpr Form kForms[] = {
    row<F16, exp2_of, AllowedError{.relative = -9.9}>("ex2.approx(.f16|.f16x2)"),
    row<Bf16, exp2_of, AllowedError{.relative = -7}>("ex2.approx.ftz(.bf16|.bf16x2)"),
    row<F16, tanh_of, AllowedError{.absolute = -10.987}>("tanh.approx(.f16|.f16x2)"),
    row<Bf16, tanh_of, AllowedError{.absolute = -8}>("tanh.approx(.bf16|.bf16x2)"),
};

}  // namespace

std::span<const Form> half_approximation_forms() { return kForms; }

}  // namespace attest::ptx
