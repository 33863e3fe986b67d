#include "gpu/ptx/block_run.hpp"
#include "gpu/ptx/floating.hpp"

/// Approximations of f32, from their values in double.
namespace attest::ptx {
namespace {

// An error that PTX ISA allows, relative to the exact value or absolute, whichever is larger;
// rounded down to a power of two.
struct Error {
  double relative, absolute;
};

// The number farthest from the exact value that is within the error, above or below it by the
// parity of the operand.
float farthest(double exact, Error error, bool is_above) {
  const double most = std::fmax(error.relative * std::fabs(exact), error.absolute);
  if (exact == 0.0 || !std::isfinite(static_cast<float>(exact)) || most == 0.0) {
    return static_cast<float>(exact);
  }
  const auto far = static_cast<float>(is_above ? exact + most : exact - most);
  const bool is_within = std::fabs(static_cast<double>(far) - exact) <= most;
  return is_within ? far : std::nextafter(far, static_cast<float>(exact));
}

template <double (*kFunction)(double), Error kError>
void run_approximate(Warp& warp, const Instruction& in) {
  const bool is_nearest = warp.block().choices().approximation == Approximation::nearest;
  each_lane<float, float>(warp, in, [&](float a) {
    if (in.ftz) a = flushed(a);
    const double exact = kFunction(static_cast<double>(a));
    const bool is_above = (std::bit_cast<std::uint32_t>(a) & 1U) != 0;
    return finished(
        is_nearest || std::isinf(a) ? static_cast<float>(exact) : farthest(exact, kError, is_above),
        in);
  });
}

double exp2_of(double a) { return std::exp2(a); }
double log2_of(double a) { return std::log2(a); }
double sin_of(double a) { return std::sin(a); }
double cos_of(double a) { return std::cos(a); }
double tanh_of(double a) { return std::tanh(a); }
double rsqrt_of(double a) { return 1.0 / std::sqrt(a); }
double sqrt_of(double a) { return std::sqrt(a); }
double rcp_of(double a) { return 1.0 / a; }

struct Quotient {
  float operator()(float a, float b) const { return a / b; }
};
// PTX ISA, div.approx: a divisor between 2^126 and 2^128 gives zero, or NaN for infinity.
struct FastQuotient {
  float operator()(float a, float b) const {
    if (!(std::fabs(b) > 0x1p126F) || std::isinf(b)) return a / b;
    if (std::isinf(a) || a != a) return result_nan<float>();
    return std::signbit(a) == std::signbit(b) ? 0.0F : -0.0F;
  }
};

template <double (*kFunction)(double), Error kError>
Execute function(const Spelling&, Instruction&) {
  return run_approximate<kFunction, kError>;
}
template <class Op>
Execute quotient(const Spelling&, Instruction&) {
  return run_rounded<Op, float, float, float>;
}

constexpr Form kForms[] = {
    {"ex2.approx[.ftz].f32", "d a", function<exp2_of, Error{0x1p-23, 0.0}>},
    {"lg2.approx[.ftz].f32", "d a", function<log2_of, Error{0x1p-23, 0x1p-23}>},
    {"sin.approx[.ftz].f32", "d a", function<sin_of, Error{0.0, 0x1p-21}>},
    {"cos.approx[.ftz].f32", "d a", function<cos_of, Error{0.0, 0x1p-21}>},
    {"tanh.approx.f32", "d a", function<tanh_of, Error{0x1p-11, 0.0}>},
    {"rsqrt.approx[.ftz].f32", "d a", function<rsqrt_of, Error{0x1p-23, 0.0}>},
    {"sqrt.approx[.ftz].f32", "d a", function<sqrt_of, Error{0x1p-23, 0.0}>},
    {"rcp.approx[.ftz].f32", "d a", function<rcp_of, Error{0x1p-23, 0.0}>},
    {"div.full[.ftz].f32", "d a b", quotient<Quotient>},
    {"div.approx[.ftz].f32", "d a b", quotient<FastQuotient>},
};

}  // namespace

std::span<const Form> approximate_forms() { return kForms; }

}  // namespace attest::ptx
