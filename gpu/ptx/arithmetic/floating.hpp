#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "core/vector_clones.hpp"
#include "gpu/ptx/arithmetic/lanes.hpp"
#include "gpu/ptx/arithmetic/rounding_scope.hpp"

/// Parts of floating-point instructions: .ftz, .sat and NaN as PTX has them.
namespace attest::ptx {

/// The NaN that an operation gives, of f32 the canonical one.
template <class T>
T result_nan() {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(0x7FFFFFFFU);
  return std::numeric_limits<T>::quiet_NaN();
}

/// Subnormal numbers become zero of the same sign.
template <class T>
T flushed(T value) {
  return std::fabs(value) < std::numeric_limits<T>::min() ? std::copysign(T{0}, value) : value;
}

/// To 0 … 1, NaN to 0.
template <class T>
T saturated(T value) {
  return value > T{0} ? (value < T{1} ? value : T{1}) : T{0};
}

template <class T>
T finished(T value, const Instruction& in) {
  if (value != value) value = result_nan<T>();
  if (in.ftz) value = flushed(value);
  return in.sat ? saturated(value) : value;
}

/// Gives NaN its bits in all lanes.
template <class T>
ATTEST_INLINE_CLONE void give_result_nan(Lanes<T>& values) {
  for (T& value : values) value = value != value ? result_nan<T>() : value;
}
template <class T>
void flush(Lanes<T>& values) {
  for (T& value : values) value = flushed(value);
}

/// One operation in each lane; `Op` may have a function of all lanes, which gives the NaN, too.
template <class Op, class T, class... S>
void operate(Lanes<T>& results, const Lanes<S>&... sources) {
  if constexpr (requires { Op::all(results, sources...); }) {
    Op::all(results, sources...);
  } else {
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) results[lane] = Op{}(sources[lane]...);
    give_result_nan(results);
  }
}

/// One rounded operation in each lane.
template <class Op, class T, class... S>
void run_rounded(Warp& warp, const Instruction& in) {
  const auto run = [&]<std::size_t... K>(std::index_sequence<K...>) {
    Lanes<T> results;
    if (in.rounding == Rounding::nearest && !in.ftz) {  // on the registers themselves
      operate<Op>(results, warp.read<S>(in.slots[K + 1])...);
    } else {
      std::tuple<Lanes<S>...> sources{warp.read<S>(in.slots[K + 1])...};
      if (in.ftz) (flush(std::get<K>(sources)), ...);
      const RoundingScope scope(in.rounding);
      RoundingScope::pin(std::get<K>(sources)...);
      operate<Op>(results, std::get<K>(sources)...);
      RoundingScope::pin(results);
    }
    if (in.ftz) flush(results);
    if (in.sat) {
      for (T& value : results) value = saturated(value);
    }
    warp.write(in.slots[0], results);
  };
  run(std::index_sequence_for<S...>{});
}

template <class Op>
Execute rounded_one(const Spelling& spelling, Instruction&) {
  return Floats::pick(spelling.last_type(),
                      []<class T>() -> Execute { return run_rounded<Op, T, T>; });
}
template <class Op>
Execute rounded_two(const Spelling& spelling, Instruction&) {
  return Floats::pick(spelling.last_type(),
                      []<class T>() -> Execute { return run_rounded<Op, T, T, T>; });
}
template <class Op>
Execute rounded_three(const Spelling& spelling, Instruction&) {
  return Floats::pick(spelling.last_type(),
                      []<class T>() -> Execute { return run_rounded<Op, T, T, T, T>; });
}

/// The largest distance from the exact value; the last place of the nearest result has `unit`.
inline double most(const AllowedError& error, double exact, double unit) {
  return std::fmax(error.ulps * unit, std::fmax(std::exp2(error.relative) * std::fabs(exact),
                                                std::exp2(error.absolute)));
}

/// The smaller of two; NaN only where both are, -0 below +0.
struct FloatMin {
  template <class T>
  T operator()(T a, T b) const {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
};
struct FloatMax {
  template <class T>
  T operator()(T a, T b) const {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
};
/// .NaN: NaN where one is.
template <class Op>
struct PassingNaN {
  template <class T>
  T operator()(T a, T b) const {
    if (a != a || b != b) return result_nan<T>();
    return Op{}(a, b);
  }
};

}  // namespace attest::ptx
