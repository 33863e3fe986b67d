#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "gpu/ptx/testing/definitions.hpp"

namespace attest::ptx::testing {
namespace {

struct Layout {
  int exponent_bits, mantissa_bits;
};
Layout layout_of(Type type) {
  switch (type) {
    case Type::f16:
      return {5, 10};
    case Type::bf16:
      return {8, 7};
    case Type::tf32:
      return {8, 10};
    case Type::f64:
      return {11, 52};
    default:
      return {8, 23};
  }
}

mpfr_rnd_t rounding_of(const Spelling& spelling) {
  if (spelling.has("rz") || spelling.has("rzi")) return MPFR_RNDZ;
  if (spelling.has("rm") || spelling.has("rmi")) return MPFR_RNDD;
  return spelling.has("rp") || spelling.has("rpi") ? MPFR_RNDU : MPFR_RNDN;
}

// A number of MPFR for as long as it lives.
class Number {
 public:
  explicit Number(mpfr_prec_t precision) { mpfr_init2(value_, precision); }
  ~Number() { mpfr_clear(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

constexpr mpfr_prec_t kExact = 2400;  // any sum and product of two doubles

using Operation = std::function<int(mpfr_ptr result, mpfr_rnd_t rounding)>;

// The operation rounded once to the type, subnormal numbers too.
double once_rounded(Type type, mpfr_rnd_t rounding, const Operation& operation) {
  const Layout layout = layout_of(type);
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  Number result(layout.mantissa_bits + 1);
  int inexact = operation(result.get(), rounding);
  const mpfr_exp_t old_least = mpfr_get_emin(), old_most = mpfr_get_emax();
  mpfr_set_emin(2 - bias - layout.mantissa_bits);
  mpfr_set_emax(bias + 1);
  inexact = mpfr_check_range(result.get(), inexact, rounding);
  mpfr_subnormalize(result.get(), inexact, rounding);
  const double value = mpfr_get_d(result.get(), MPFR_RNDN);
  mpfr_set_emin(old_least);
  mpfr_set_emax(old_most);
  return value;
}

std::uint64_t bits_of(double value, Type type) {
  switch (type) {
    case Type::f16:
      return value != value ? 0x7FFF : f16_from_float(static_cast<float>(value));
    case Type::bf16:
      return value != value ? 0x7FFF : bf16_from_float(static_cast<float>(value));
    case Type::f64:
      return std::bit_cast<std::uint64_t>(value);
    default:
      return value != value ? 0x7FFFFFFF : std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }
}

double least_normal(Type type) {
  return std::ldexp(1.0, 2 - (1 << (layout_of(type).exponent_bits - 1)));
}
double flushed(double value, Type type) {
  return std::fabs(value) < least_normal(type) ? std::copysign(0.0, value) : value;
}
double saturated(double value) {
  return value != value || value <= 0.0 ? 0.0 : std::min(value, 1.0);
}

double finished(double value, Type type, const Spelling& spelling) {
  if (spelling.has("ftz")) value = flushed(value, type);
  return spelling.has("sat") ? saturated(value) : value;
}

double smaller(double a, double b) {
  if (a != a || b != b) return a != a ? b : a;
  if (a == b) return std::signbit(a) ? a : b;
  return std::min(a, b);
}

// Result for operands that the type has.
double computed(const Spelling& spelling, Type type, std::vector<double> s) {
  const std::string name = name_of(spelling);
  const mpfr_rnd_t rounding = rounding_of(spelling);
  for (double& each : s) each = spelling.has("ftz") ? flushed(each, type) : each;
  if (name == "neg") return -s[0];
  if (name == "abs") return std::signbit(s[0]) ? -s[0] : s[0];
  if (name == "copysign") return std::signbit(s[0]) == std::signbit(s[1]) ? s[1] : -s[1];
  if (name == "min" || name == "max") {
    if (spelling.has("NaN") && (s[0] != s[0] || s[1] != s[1])) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return name == "min" ? smaller(s[0], s[1]) : -smaller(-s[0], -s[1]);
  }
  Number a(53), b(53), c(53);
  mpfr_set_d(a.get(), s[0], MPFR_RNDN);
  if (s.size() > 1) mpfr_set_d(b.get(), s[1], MPFR_RNDN);
  if (s.size() > 2) mpfr_set_d(c.get(), s[2], MPFR_RNDN);
  const Operation operation = [&](mpfr_ptr r, mpfr_rnd_t rnd) {
    if (name == "add") return mpfr_add(r, a.get(), b.get(), rnd);
    if (name == "sub") return mpfr_sub(r, a.get(), b.get(), rnd);
    if (name == "mul") return mpfr_mul(r, a.get(), b.get(), rnd);
    if (name == "div") return mpfr_div(r, a.get(), b.get(), rnd);
    if (name == "sqrt") return mpfr_sqrt(r, a.get(), rnd);
    if (name == "rcp") return mpfr_ui_div(r, 1, a.get(), rnd);
    if (name == "fma" || name == "mad") return mpfr_fma(r, a.get(), b.get(), c.get(), rnd);
    throw InternalError("no definition of " + std::string(spelling.form->pattern));
  };
  return finished(once_rounded(type, rounding, operation), type, spelling);
}

}  // namespace

double value_of(std::uint64_t bits_of_it, Type type) {
  const Layout layout = layout_of(type);
  const auto mantissa =
      static_cast<std::int64_t>(bits_of_it & ((std::uint64_t{1} << layout.mantissa_bits) - 1));
  const int most = (1 << layout.exponent_bits) - 1, bias = most / 2;
  const int exponent = static_cast<int>(bits_of_it >> layout.mantissa_bits) & most;
  const bool is_negative = (bits_of_it >> (layout.mantissa_bits + layout.exponent_bits) & 1U) != 0;
  double value = 0.0;
  if (exponent == most) {
    value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  } else {
    const std::int64_t hidden = exponent == 0 ? 0 : std::int64_t{1} << layout.mantissa_bits;
    value = std::ldexp(static_cast<double>(mantissa + hidden),
                       std::max(exponent, 1) - bias - layout.mantissa_bits);
  }
  return is_negative ? -value : value;
}

bool is_nan(std::uint64_t bits_of_it, Type type) {
  const double value = value_of(bits_of_it, type);
  return value != value;
}

std::uint64_t defined_float(const Spelling& spelling, const Bits& sources) {
  const Type type = spelling.last_type();
  std::vector<double> values;
  for (const std::uint64_t each : sources) values.push_back(value_of(each, type));
  return bits_of(computed(spelling, type, values), type);
}

std::uint64_t defined_half(const Spelling& spelling, const Bits& sources) {
  const Type whole = spelling.last_type();
  const Type type = whole == Type::f16 || whole == Type::f16x2 ? Type::f16 : Type::bf16;
  std::uint64_t result = 0;
  for (std::uint32_t shift = 0; shift < bits(whole); shift += 16) {
    std::vector<double> values;
    for (const std::uint64_t each : sources)
      values.push_back(value_of(each >> shift & 0xFFFF, type));
    result |= bits_of(computed(spelling, type, values), type) << shift;
  }
  return result;
}

std::uint64_t defined_conversion(const Spelling& spelling, const Bits& sources) {
  const Type to = spelling.first_type(), from = spelling.last_type();
  const auto is_float = [](Type type) { return info(type).type_class == TypeClass::floating; };
  const auto width = bits(to);
  const auto kept = [&](__int128 value) {
    return static_cast<std::uint64_t>(value) &
           (width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1);
  };
  const __int128 one = 1;
  const bool is_signed = info(to).type_class == TypeClass::signed_integer;
  const __int128 least = is_signed ? -(one << (width - 1)) : 0;
  const __int128 most = is_signed ? (one << (width - 1)) - 1 : (one << width) - 1;
  if (!is_float(to) && !is_float(from)) {
    const __int128 value = integer_of(sources[0], from);
    return kept(spelling.has("sat") ? std::clamp(value, least, most) : value);
  }
  Number exact(kExact);
  double value = 0.0;
  if (is_float(from)) {
    value = value_of(sources[0], from);
    if (spelling.has("ftz") && from == Type::f32) value = flushed(value, from);
    mpfr_set_d(exact.get(), value, MPFR_RNDN);
  } else {
    const __int128 integer = integer_of(sources[0], from);
    const auto magnitude = static_cast<std::uint64_t>(integer < 0 ? -integer : integer);
    mpfr_set_ui(exact.get(), magnitude, MPFR_RNDN);
    if (integer < 0) mpfr_neg(exact.get(), exact.get(), MPFR_RNDN);
  }
  const mpfr_rnd_t rounding = rounding_of(spelling);
  const bool to_whole =
      spelling.has("rni") || spelling.has("rzi") || spelling.has("rmi") || spelling.has("rpi");
  if (!is_float(to)) {
    if (value != value) {
      return from == Type::f64 || width == 64 ? std::uint64_t{1} << (width - 1) : 0;
    }
    mpfr_rint(exact.get(), exact.get(), rounding);
    if (mpfr_cmp_d(exact.get(), std::ldexp(1.0, 70)) > 0) return kept(most);
    if (mpfr_cmp_d(exact.get(), -std::ldexp(1.0, 70)) < 0) return kept(least);
    const auto whole = static_cast<__int128>(mpfr_get_ld(exact.get(), MPFR_RNDN));
    return kept(std::clamp(whole, least, most));
  }
  if (to_whole) mpfr_rint(exact.get(), exact.get(), rounding);
  if (spelling.has("rna") && std::isfinite(value)) {
    const std::uint64_t half_unit = std::uint64_t{1} << 12;
    return (sources[0] + half_unit) & ~(2 * half_unit - 1);
  }
  const double result = once_rounded(
      to, rounding, [&](mpfr_ptr r, mpfr_rnd_t rnd) { return mpfr_set(r, exact.get(), rnd); });
  const Type flushes = to == Type::f32 ? to : Type::f64;
  return bits_of(finished(result, flushes, spelling), to);
}

std::uint64_t defined_comparison(const Spelling& spelling, const Bits& s) {
  const std::string name = name_of(spelling);
  if (name == "selp") return s[2] != 0 ? s[0] : s[1];
  if (name == "slct") {
    if (spelling.last_type() == Type::s32) return integer_of(s[2], Type::s32) >= 0 ? s[0] : s[1];
    double value = value_of(s[2], Type::f32);
    if (spelling.has("ftz")) value = flushed(value, Type::f32);
    return value >= 0.0 ? s[0] : s[1];
  }
  const Type type = spelling.last_type();
  const std::string relation(spelling.modifiers[0]);
  bool is_less = false, is_equal = false, is_unordered = false;
  if (info(type).type_class == TypeClass::floating) {
    double a = value_of(s[0], type), b = value_of(s[1], type);
    if (spelling.has("ftz")) a = flushed(a, type), b = flushed(b, type);
    is_unordered = a != a || b != b;
    is_less = a < b;
    is_equal = a == b;
  } else {
    const __int128 a = integer_of(s[0], type), b = integer_of(s[1], type);
    is_less = a < b;
    is_equal = a == b;
  }
  const bool is_greater = !is_less && !is_equal && !is_unordered;
  bool holds = false;
  if (relation == "num" || relation == "nan") {
    holds = is_unordered == (relation == "nan");
  } else {
    const bool passes_nan = relation.size() == 3;  // "ltu"
    const std::string order = relation.substr(0, 2);
    if (order == "eq") holds = is_equal;
    if (order == "ne") holds = is_less || is_greater;
    if (order == "lt" || order == "lo") holds = is_less;
    if (order == "le" || order == "ls") holds = is_less || is_equal;
    if (order == "gt" || order == "hi") holds = is_greater;
    if (order == "ge" || order == "hs") holds = is_greater || is_equal;
    if (is_unordered) holds = passes_nan;
  }
  const bool c = s.size() > 2 && s[2] != 0;
  if (spelling.has("and")) holds = holds && c;
  if (spelling.has("or")) holds = holds || c;
  if (spelling.has("xor")) holds = holds != c;
  return holds ? 1 : 0;
}

}  // namespace attest::ptx::testing
