#include "gpu/ptx/arithmetic/floating.hpp"
#include "gpu/ptx/arithmetic/half_values.hpp"

/// Arithmetic of f16 and bf16, and of pairs of them in 32 bits.
namespace attest::ptx {
namespace {

// Each in double: exact, or rounded to odd.
struct Add {
  double operator()(double a, double b) const { return sum_to_odd(a, b); }
};
struct Sub {
  double operator()(double a, double b) const { return sum_to_odd(a, -b); }
};
struct Mul {
  double operator()(double a, double b) const { return a * b; }
};
struct Fma {
  double operator()(double a, double b, double c) const { return sum_to_odd(a * b, c); }
};
template <class Half>
double decoded(std::uint16_t bits, bool ftz) {
  const double value = Half::decode(bits);
  const double least = std::ldexp(1.0, Half::kFormat.least_exponent);
  return ftz && std::fabs(value) < least ? std::copysign(0.0, value) : value;
}

template <class Half>
std::uint16_t finished(double value, const Instruction& in) {
  if (in.sat) value = saturated(value);
  const std::uint16_t result = encode<Half>(value, in.rounding);
  return in.ftz ? Half::encode_exact(decoded<Half>(result, true)) : result;
}

// Words of one value or of two, the first in the low half.
template <class Half, class Op, class Word, class... Words>
void run_halves(Warp& warp, const Instruction& in) {
  each_lane<Word, Words...>(warp, in, [&in](auto... words) {
    Word result = 0;
    for (std::size_t shift = 0; shift < 8 * sizeof(Word); shift += 16) {
      const auto half = [shift](Word word) { return static_cast<std::uint16_t>(word >> shift); };
      const double value = Op{}(decoded<Half>(half(words), in.ftz)...);
      result = static_cast<Word>(result | Word{finished<Half>(value, in)} << shift);
    }
    return result;
  });
}

template <class Half, class Op, std::size_t kSources>
Execute by_word(Type type) {
  using Single = std::uint16_t;
  using Pair = std::uint32_t;
  const bool is_pair = bits(type) == 32;
  if constexpr (kSources == 1) {
    return is_pair ? run_halves<Half, Op, Pair, Pair> : run_halves<Half, Op, Single, Single>;
  } else if constexpr (kSources == 2) {
    return is_pair ? run_halves<Half, Op, Pair, Pair, Pair>
                   : run_halves<Half, Op, Single, Single, Single>;
  } else {
    return is_pair ? run_halves<Half, Op, Pair, Pair, Pair, Pair>
                   : run_halves<Half, Op, Single, Single, Single, Single>;
  }
}

template <class Op, std::size_t kSources>
Execute half(const Spelling& spelling, Instruction&) {
  const Type type = spelling.last_type();
  const bool is_f16 = type == Type::f16 || type == Type::f16x2;
  return is_f16 ? by_word<F16, Op, kSources>(type) : by_word<Bf16, Op, kSources>(type);
}
template <class Op>
Execute extremum(const Spelling& spelling, Instruction& in) {
  return spelling.has("NaN") ? half<PassingNaN<Op>, 2>(spelling, in) : half<Op, 2>(spelling, in);
}

// Signs alone, bit by bit: NaN stays as it is.
template <class Word, bool kNegates>
void run_sign(Warp& warp, const Instruction& in) {
  constexpr auto kSigns = static_cast<Word>(0x80008000U);
  each_lane<Word, Word>(warp, in, [](Word a) {
    return static_cast<Word>(kNegates ? a ^ kSigns : a & static_cast<Word>(~kSigns));
  });
}
template <bool kNegates>
Execute sign(const Spelling& spelling, Instruction&) {
  return bits(spelling.last_type()) == 32 ? run_sign<std::uint32_t, kNegates>
                                          : run_sign<std::uint16_t, kNegates>;
}

constexpr Form kForms[] = {
    {"add[.rn][.ftz][.sat](.f16|.f16x2)", "d a b", half<Add, 2>},
    {"sub[.rn][.ftz][.sat](.f16|.f16x2)", "d a b", half<Sub, 2>},
    {"mul[.rn][.ftz][.sat](.f16|.f16x2)", "d a b", half<Mul, 2>},
    {"fma.rn[.ftz][.sat](.f16|.f16x2)", "d a b c", half<Fma, 3>},
    {"add[.rn](.bf16|.bf16x2)", "d a b", half<Add, 2>},
    {"sub[.rn](.bf16|.bf16x2)", "d a b", half<Sub, 2>},
    {"mul[.rn](.bf16|.bf16x2)", "d a b", half<Mul, 2>},
    {"fma.rn(.bf16|.bf16x2)", "d a b c", half<Fma, 3>},
    {"neg(.f16|.f16x2|.bf16|.bf16x2)", "d a", sign<true>},
    {"abs(.f16|.f16x2|.bf16|.bf16x2)", "d a", sign<false>},
    {"min[.NaN](.f16|.f16x2|.bf16|.bf16x2)", "d a b", extremum<FloatMin>},
    {"max[.NaN](.f16|.f16x2|.bf16|.bf16x2)", "d a b", extremum<FloatMax>},
};

}  // namespace

std::span<const Form> half_forms() { return kForms; }

}  // namespace attest::ptx
