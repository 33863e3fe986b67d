#include "gpu/ptx/floating.hpp"

/// Approximations of f32. PTX gives an error that a device may have; here each is the nearest
/// number to the exact value (from double, but for a tie that double misses), which is within it.
namespace attest::ptx {
namespace {

// Evaluates in double and rounds once more.
template <double (*kFunction)(double)>
struct ThroughDouble {
  float operator()(float a) const { return static_cast<float>(kFunction(static_cast<double>(a))); }
};

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

template <double (*kFunction)(double)>
Execute function(const Spelling&, Instruction&) {
  return run_rounded<ThroughDouble<kFunction>, float, float>;
}
template <class Op>
Execute quotient(const Spelling&, Instruction&) {
  return run_rounded<Op, float, float, float>;
}

constexpr Form kForms[] = {
    {"ex2.approx[.ftz].f32", "d a", function<exp2_of>},
    {"lg2.approx[.ftz].f32", "d a", function<log2_of>},
    {"sin.approx[.ftz].f32", "d a", function<sin_of>},
    {"cos.approx[.ftz].f32", "d a", function<cos_of>},
    {"tanh.approx.f32", "d a", function<tanh_of>},
    {"rsqrt.approx[.ftz].f32", "d a", function<rsqrt_of>},
    {"sqrt.approx[.ftz].f32", "d a", function<sqrt_of>},
    {"rcp.approx[.ftz].f32", "d a", function<rcp_of>},
    {"div.full[.ftz].f32", "d a b", quotient<Quotient>},
    {"div.approx[.ftz].f32", "d a b", quotient<FastQuotient>},
};

}  // namespace

std::span<const Form> approximate_forms() { return kForms; }

}  // namespace attest::ptx
