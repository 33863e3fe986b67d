#include <cstring>

#include "core/vector_clones.hpp"
#include "gpu/ptx/arithmetic/floating.hpp"
#include "gpu/ptx/execution/block_run.hpp"

/// Approximations of f32, from their values in double.
namespace attest::ptx {
namespace {

// The number farthest from the exact value that is within the error and on its side of zero, above
// or below it by the parity of the operand.
float farthest(double exact, const AllowedError& error, bool is_above) {
  const auto nearest = static_cast<float>(exact);
  if (exact == 0.0 || !std::isfinite(nearest)) return nearest;
  const float magnitude = std::fabs(nearest), unit = magnitude - std::nextafter(magnitude, 0.0F);
  const double distance = most(error, exact, static_cast<double>(unit));
  const auto far = static_cast<float>(is_above ? exact + distance : exact - distance);
  if (std::signbit(far) != std::signbit(nearest)) return std::copysign(0.0F, nearest);
  const bool is_within = std::fabs(static_cast<double>(far) - exact) <= distance;
  return is_within ? far : std::nextafter(far, nearest);
}

double exp2_of(double a) { return std::exp2(a); }
constexpr AllowedError kExp2Error{.ulps = 2};

template <double (*kFunction)(double), AllowedError kError>
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

// 2^x of each lane, and whether it is sure to be the nearest number: where two bounds of it round
// to one. 2^x = 2^n e^y for the nearest whole n, e^y by its series, whose first term that is left
// out is below 2^-42 of it. Returns whether all are sure.
ATTEST_VECTOR_CLONES
bool nearest_exp2(const Lanes<float>& x, Lanes<float>& results, Lanes<std::int32_t>& is_sure) {
  constexpr std::size_t kTogether = 8;
  using Values = double __attribute__((vector_size(kTogether * sizeof(double))));
  using Bits = std::uint64_t __attribute__((vector_size(kTogether * sizeof(double))));
  using Narrow = float __attribute__((vector_size(kTogether * sizeof(float))));
  using Truth = std::int32_t __attribute__((vector_size(kTogether * sizeof(float))));
  constexpr double kToWhole = 0x1.8p52, kLn2 = 0.69314718055994530942, kMargin = 0x1p-40;
  constexpr double kEven[] = {1.0 / 3628800, 1.0 / 40320, 1.0 / 720, 1.0 / 24, 0.5, 1.0};
  constexpr double kOdd[] = {0.0, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6, 1.0};
  Truth all = ~Truth{};
  for (std::size_t lane = 0; lane < kWarpLanes; lane += kTogether) {
    Narrow operands;
    std::memcpy(&operands, &x[lane], sizeof operands);
    const Values wide = __builtin_convertvector(operands, Values);
    const Values shifted = wide + kToWhole, y = (wide - (shifted - kToWhole)) * kLn2;
    const Values square = y * y;
    Values even = {}, odd = {};
    for (std::size_t k = 0; k < std::size(kEven); ++k) {
      even = even * square + kEven[k];
      odd = odd * square + kOdd[k];
    }
    const Values sum = even + y * odd;
    const Bits scale = reinterpret_cast<Bits>(shifted) << 52;
    const auto value = reinterpret_cast<Values>(reinterpret_cast<Bits>(sum) + scale);
    const Narrow below = __builtin_convertvector(value * (1.0 - kMargin), Narrow);
    const Narrow above = __builtin_convertvector(value * (1.0 + kMargin), Narrow);
    const Truth sure = (below == above) & (operands > -126.0F) & (operands < 126.0F);
    std::memcpy(&results[lane], &below, sizeof below);
    std::memcpy(&is_sure[lane], &sure, sizeof sure);
    all &= sure;
  }
  for (std::size_t k = 1; k < kTogether; ++k) all[0] &= all[k];
  return all[0] != 0;
}

// The same bits as exp2_of of each lane.
void run_exp2(Warp& warp, const Instruction& in) {
  if (warp.block().choices().approximation != Approximation::nearest) {
    return run_approximate<exp2_of, kExp2Error>(warp, in);
  }
  Lanes<float> operands = warp.read<float>(in.slots[1]), results;
  Lanes<std::int32_t> is_sure;
  if (in.ftz) {
    for (float& operand : operands) operand = flushed(operand);
  }
  if (!nearest_exp2(operands, results, is_sure)) {
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      if (is_sure[lane] != 0) continue;
      const double exact = exp2_of(static_cast<double>(operands[lane]));
      results[lane] = finished(static_cast<float>(exact), in);
    }
  }
  warp.write(in.slots[0], results);
}

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

template <double (*kFunction)(double), AllowedError kError>
constexpr Form row(std::string_view pattern) {
  return {pattern, "d a", as<run_approximate<kFunction, kError>>, kError};
}
template <class Op>
Execute quotient(const Spelling&, Instruction&) {
  return run_rounded<Op, float, float, float>;
}

// Sine and cosine: from -2 pi to 2 pi.
constexpr Form kForms[] = {
    {"ex2.approx[.ftz].f32", "d a", as<run_exp2>, kExp2Error},
    row<log2_of, AllowedError{.relative = -22, .absolute = -22}>("lg2.approx[.ftz].f32"),
    row<sin_of, AllowedError{.absolute = -20.5}>("sin.approx[.ftz].f32"),
    row<cos_of, AllowedError{.absolute = -20.5}>("cos.approx[.ftz].f32"),
    row<tanh_of, AllowedError{.relative = -11}>("tanh.approx.f32"),
    row<rsqrt_of, AllowedError{.relative = -22.9}>("rsqrt.approx[.ftz].f32"),
    row<sqrt_of, AllowedError{.relative = -23}>("sqrt.approx[.ftz].f32"),
    row<rcp_of, AllowedError{.ulps = 1}>("rcp.approx[.ftz].f32"),
    {"div.full[.ftz].f32", "d a b", quotient<Quotient>, {.ulps = 2}},
    {"div.approx[.ftz].f32", "d a b", quotient<FastQuotient>, {.ulps = 2}},
};

}  // namespace

std::span<const Form> approximate_forms() { return kForms; }

}  // namespace attest::ptx
