#include "gpu/ptx/arithmetic/floating.hpp"

/// Arithmetic of f32 and f64 that is rounded once, as IEEE 754 has it.
namespace attest::ptx {
namespace {

// The most frequent ones of f32 for all lanes in the widest vectors that there are; without an
// instruction for it, the last one is a call for each lane.
using Values = Lanes<float>;
ATTEST_VECTOR_CLONES
void add(Values& results, const Values& a, const Values& b) {
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) results[lane] = a[lane] + b[lane];
  give_result_nan(results);
}
ATTEST_VECTOR_CLONES
void multiply(Values& results, const Values& a, const Values& b) {
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) results[lane] = a[lane] * b[lane];
  give_result_nan(results);
}
ATTEST_VECTOR_CLONES
void multiply_add(Values& results, const Values& a, const Values& b, const Values& c) {
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    results[lane] = std::fma(a[lane], b[lane], c[lane]);
  }
  give_result_nan(results);
}

struct Add {
  static void all(Values& results, const Values& a, const Values& b) { add(results, a, b); }
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Mul {
  static void all(Values& results, const Values& a, const Values& b) { multiply(results, a, b); }
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Fma {
  static void all(Values& results, const Values& a, const Values& b, const Values& c) {
    multiply_add(results, a, b, c);
  }
  template <class T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct Reciprocal {
  template <class T>
  T operator()(T a) const {
    return T{1} / a;
  }
};
struct Sqrt {
  template <class T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};

// Signs alone: NaN stays as it is.
template <class Op, class T>
void run_sign(Warp& warp, const Instruction& in) {
  each_lane<T, T>(warp, in, [&in](T a) { return Op{}(in.ftz ? flushed(a) : a); });
}
struct Neg {
  template <class T>
  T operator()(T a) const {
    return -a;
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return std::fabs(a);
  }
};
template <class Op>
Execute sign(const Spelling& spelling, Instruction&) {
  return Floats::pick(spelling.last_type(), []<class T>() -> Execute { return run_sign<Op, T>; });
}
// The sign of the first on the second.
struct CopySign {
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};

template <class Op>
Execute extremum(const Spelling& spelling, Instruction& in) {
  return spelling.has("NaN") ? rounded_two<PassingNaN<Op>>(spelling, in)
                             : rounded_two<Op>(spelling, in);
}

constexpr Form kForms[] = {
    {"add[.rn|.rz|.rm|.rp][.ftz][.sat].f32", "d a b", rounded_two<Add>},
    {"add[.rn|.rz|.rm|.rp].f64", "d a b", rounded_two<Add>},
    {"sub[.rn|.rz|.rm|.rp][.ftz][.sat].f32", "d a b", rounded_two<Sub>},
    {"sub[.rn|.rz|.rm|.rp].f64", "d a b", rounded_two<Sub>},
    {"mul[.rn|.rz|.rm|.rp][.ftz][.sat].f32", "d a b", rounded_two<Mul>},
    {"mul[.rn|.rz|.rm|.rp].f64", "d a b", rounded_two<Mul>},
    {"fma(.rn|.rz|.rm|.rp)[.ftz][.sat].f32", "d a b c", rounded_three<Fma>},
    {"fma(.rn|.rz|.rm|.rp).f64", "d a b c", rounded_three<Fma>},
    {"mad(.rn|.rz|.rm|.rp)[.ftz][.sat].f32", "d a b c", rounded_three<Fma>},
    {"mad(.rn|.rz|.rm|.rp).f64", "d a b c", rounded_three<Fma>},
    {"div(.rn|.rz|.rm|.rp)[.ftz].f32", "d a b", rounded_two<Div>},
    {"div(.rn|.rz|.rm|.rp).f64", "d a b", rounded_two<Div>},
    {"rcp(.rn|.rz|.rm|.rp)[.ftz].f32", "d a", rounded_one<Reciprocal>},
    {"rcp(.rn|.rz|.rm|.rp).f64", "d a", rounded_one<Reciprocal>},
    {"sqrt(.rn|.rz|.rm|.rp)[.ftz].f32", "d a", rounded_one<Sqrt>},
    {"sqrt(.rn|.rz|.rm|.rp).f64", "d a", rounded_one<Sqrt>},
    {"neg[.ftz].f32", "d a", sign<Neg>},
    {"neg.f64", "d a", sign<Neg>},
    {"abs[.ftz].f32", "d a", sign<Abs>},
    {"abs.f64", "d a", sign<Abs>},
    {"min[.ftz][.NaN].f32", "d a b", extremum<FloatMin>},
    {"min.f64", "d a b", extremum<FloatMin>},
    {"max[.ftz][.NaN].f32", "d a b", extremum<FloatMax>},
    {"max.f64", "d a b", extremum<FloatMax>},
    {"copysign(.f32|.f64)", "d a b", two_sources<CopySign, Floats>},
};

}  // namespace

std::span<const Form> floating_forms() { return kForms; }

}  // namespace attest::ptx
