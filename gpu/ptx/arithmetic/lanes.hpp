#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "gpu/ptx/execution/warp.hpp"

/// Instructions that do the same in each lane, from a function of one lane's values.
namespace attest::ptx {

/// Result of a function of one value of each type S, for all lanes: inactive ones compute, too, so
/// that the loop has no branch.
template <class D, class... S, class F>
void each_lane(Warp& warp, const Instruction& in, F&& function) {
  const auto run = [&]<std::size_t... K>(std::index_sequence<K...>) {
    const std::tuple<const Lanes<S>&...> sources{warp.read<S>(in.slots[K + 1])...};
    Lanes<D> results;
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      results[lane] = function(std::get<K>(sources)[lane]...);
    }
    warp.write(in.slots[0], results);
  };
  run(std::index_sequence_for<S...>{});
}

template <class Op, class D, class... S>
void run_lanes(Warp& warp, const Instruction& in) {
  each_lane<D, S...>(warp, in, Op{});
}

/// Tells whether values of a PTX type are computed with in T.
template <class T>
bool is_computed_in(Type type) {
  const TypeInfo& known = info(type);
  if (known.bits != 8 * sizeof(T)) return false;
  switch (known.type_class) {
    case TypeClass::signed_integer:
      return std::is_integral_v<T> && std::is_signed_v<T>;
    case TypeClass::unsigned_integer:
    case TypeClass::bits:
      return std::is_integral_v<T> && std::is_unsigned_v<T>;
    case TypeClass::floating:
      return std::is_floating_point_v<T> && (type == Type::f32 || type == Type::f64);
    case TypeClass::predicate:
      break;
  }
  return false;
}

/// A list of types, one of which `function` is called with: function.operator()<T>().
template <class... Ts>
struct TypeList {
  template <class F>
  static Execute pick(Type type, F&& function) {
    Execute chosen = nullptr;
    ((is_computed_in<Ts>(type) ? void(chosen = function.template operator()<Ts>()) : void()), ...);
    return chosen;
  }
};
using Words = TypeList<std::uint16_t, std::uint32_t, std::uint64_t>;
using Integers =
    TypeList<std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
using Floats = TypeList<float, double>;

/// Forms whose operands all have the opcode's type.
template <class Op, class List>
Execute one_source(const Spelling& spelling, Instruction&) {
  return List::pick(spelling.last_type(), []<class T>() -> Execute { return run_lanes<Op, T, T>; });
}
template <class Op, class List>
Execute two_sources(const Spelling& spelling, Instruction&) {
  return List::pick(spelling.last_type(),
                    []<class T>() -> Execute { return run_lanes<Op, T, T, T>; });
}
template <class Op, class List>
Execute three_sources(const Spelling& spelling, Instruction&) {
  return List::pick(spelling.last_type(),
                    []<class T>() -> Execute { return run_lanes<Op, T, T, T, T>; });
}

/// Forms of one type alone.
template <class Op, class D, class... S>
Execute only(const Spelling&, Instruction&) {
  return run_lanes<Op, D, S...>;
}

}  // namespace attest::ptx
