#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "gpu/ptx/arithmetic/floating.hpp"
#include "gpu/ptx/arithmetic/half_values.hpp"
#include "gpu/ptx/arithmetic/lanes.hpp"
#include "gpu/ptx/memory/addresses.hpp"

/// Atomic operations, with and without a result. Blocks run on several threads of the host: these
/// are atomic there, too.
namespace attest::ptx {
namespace {

constexpr std::size_t kMostElements = 4;  // of a vector

struct Add {
  template <class T>
  T operator()(T there, T value) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T sum = there + value;
      return sum == sum ? sum : result_nan<T>();
    }
    return static_cast<T>(static_cast<std::uint64_t>(there) + static_cast<std::uint64_t>(value));
  }
};
struct Min {
  template <class T>
  T operator()(T there, T value) const {
    return std::min(there, value);
  }
};
struct Max {
  template <class T>
  T operator()(T there, T value) const {
    return std::max(there, value);
  }
};
struct And {
  template <class T>
  T operator()(T there, T value) const {
    return there & value;
  }
};
struct Or {
  template <class T>
  T operator()(T there, T value) const {
    return there | value;
  }
};
struct Xor {
  template <class T>
  T operator()(T there, T value) const {
    return there ^ value;
  }
};
struct Exchange {
  template <class T>
  T operator()(T, T value) const {
    return value;
  }
};
struct Increment {
  std::uint32_t operator()(std::uint32_t there, std::uint32_t value) const {
    return there >= value ? 0 : there + 1;
  }
};
struct Decrement {
  std::uint32_t operator()(std::uint32_t there, std::uint32_t value) const {
    return there == 0 || there > value ? value : there - 1;
  }
};

// Replaces what is at `place`; returns what was.
template <class T, class F>
T update(std::byte* place, F&& function) {
  auto* const word = reinterpret_cast<T*>(place);
  T seen, next;
  __atomic_load(word, &seen, __ATOMIC_SEQ_CST);
  do {
    next = function(seen);
  } while (
      !__atomic_compare_exchange(word, &seen, &next, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return seen;
}

template <class T, class F>
void for_each_place(Warp& warp, const Instruction& in, bool has_result, Use use, F&& next) {
  Lanes<T> before{};
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) == 0) continue;
    std::byte* const place = access(warp, in, lane, sizeof(T), use);
    if (place == nullptr) continue;
    before[lane] = update<T>(place, [&](T there) { return next(there, lane); });
    warp.block().note_operation(warp, lane, place);
  }
  if (has_result) warp.write(in.slots[0], before);
}

template <class Op, class T>
void run_atomic(Warp& warp, const Instruction& in) {
  const bool has_result = in.slots.size() == 2;
  const Lanes<T> values = warp.read<T>(in.slots.back());
  constexpr Use kUse = std::is_same_v<Op, Exchange> ? Use::exchange : Use::add;
  for_each_place<T>(warp, in, has_result, kUse,
                    [&](T there, std::uint32_t lane) { return Op{}(there, values[lane]); });
}

// Each element of a vector is added to alone.
template <bool kHasResult>
void run_add_vector(Warp& warp, const Instruction& in) {
  const std::size_t count = in.elements, first = kHasResult ? count : 0;
  std::array<Lanes<float>, kMostElements> before{};
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) == 0) continue;
    std::byte* const place = access(warp, in, lane, count * sizeof(float), Use::add);
    for (std::size_t k = 0; place != nullptr && k < count; ++k) {
      const float value = warp.read<float>(in.slots[first + k])[lane];
      before[k][lane] = update<float>(place + k * sizeof(float),
                                      [&](float there) { return Add{}(there, value); });
    }
    if (place != nullptr) warp.block().note_operation(warp, lane, place);
  }
  for (std::size_t k = 0; kHasResult && k < count; ++k) warp.write(in.slots[k], before[k]);
}

// Each half of a word is added to alone; PTX does not say that both are at once.
template <class Half, class Word>
void run_add_halves(Warp& warp, const Instruction& in) {
  const bool has_result = in.slots.size() == 2;
  const Lanes<Word> values = warp.read<Word>(in.slots.back());
  for_each_place<Word>(warp, in, has_result, Use::add, [&](Word there, std::uint32_t lane) {
    Word sums = 0;
    for (std::size_t shift = 0; shift < 8 * sizeof(Word); shift += 16) {
      const auto value = [shift](Word word) {
        return Half::decode(static_cast<std::uint16_t>(word >> shift));
      };
      const double sum = sum_to_odd(value(there), value(values[lane]));
      sums = static_cast<Word>(sums | Word{encode<Half>(sum, Rounding::nearest)} << shift);
    }
    return sums;
  });
}
template <class Half>
Execute add_halves(Type type) {
  return bits(type) == 32 ? run_add_halves<Half, std::uint32_t>
                          : run_add_halves<Half, std::uint16_t>;
}
Execute atomic_halves(const Spelling& spelling, Instruction&) {
  const Type type = spelling.last_type();
  return type == Type::f16 || type == Type::f16x2 ? add_halves<F16>(type) : add_halves<Bf16>(type);
}

template <class T>
void run_compare_and_swap(Warp& warp, const Instruction& in) {
  const Lanes<T> expected = warp.read<T>(in.slots[1]), values = warp.read<T>(in.slots[2]);
  for_each_place<T>(warp, in, true, Use::add, [&](T there, std::uint32_t lane) {
    return there == expected[lane] ? values[lane] : there;
  });
}

using Numbers = TypeList<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double>;

template <class Op>
Execute atomic(const Spelling& spelling, Instruction&) {
  return Numbers::pick(spelling.last_type(),
                       []<class T>() -> Execute { return run_atomic<Op, T>; });
}
template <class Op>
Execute atomic_integer(const Spelling& spelling, Instruction&) {
  return TypeList<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>::pick(
      spelling.last_type(), []<class T>() -> Execute { return run_atomic<Op, T>; });
}
template <class Op>
Execute atomic_count(const Spelling&, Instruction&) {
  return run_atomic<Op, std::uint32_t>;
}
Execute compare_and_swap(const Spelling& spelling, Instruction&) {
  return Words::pick(spelling.last_type(),
                     []<class T>() -> Execute { return run_compare_and_swap<T>; });
}

// An operation after its ordering, scope and space.
struct Operation {
  const char* name;
  Execute (*make)(const Spelling& spelling, Instruction& instruction);
  bool needs_result = false;
};
constexpr Operation kOperations[] = {{".add(.u32|.s32|.u64|.f32|.f64)", atomic<Add>},
                                     {".add.noftz(.f16|.f16x2|.bf16|.bf16x2)", atomic_halves},
                                     {".min(.u32|.s32|.u64|.s64)", atomic_integer<Min>},
                                     {".max(.u32|.s32|.u64|.s64)", atomic_integer<Max>},
                                     {".and(.b32|.b64)", atomic_integer<And>},
                                     {".or(.b32|.b64)", atomic_integer<Or>},
                                     {".xor(.b32|.b64)", atomic_integer<Xor>},
                                     {".inc.u32", atomic_count<Increment>},
                                     {".dec.u32", atomic_count<Decrement>},
                                     {".exch(.b32|.b64)", atomic_integer<Exchange>, true},
                                     {".cas(.b16|.b32|.b64)", compare_and_swap, true}};

std::vector<Form> all_forms() {
  const std::string order = "[.relaxed|.acquire|.release|.acq_rel][.cta|.cluster|.gpu|.sys]";
  const std::string space = "[.global|.shared|.shared::cta|.shared::cluster]";
  static std::vector<std::string> patterns;  // that the forms point to
  std::vector<Form> forms;
  for (const char* const opcode : {"atom", "red"}) {
    for (const Operation& each : kOperations) {
      if (each.needs_result && opcode == std::string("red")) continue;
      patterns.push_back(opcode + order + space + each.name);
    }
    patterns.push_back(opcode + order + "[.global].add(.v2|.v4).f32");
  }
  std::size_t next = 0;
  for (const bool has_result : {true, false}) {
    for (const Operation& each : kOperations) {
      if (each.needs_result && !has_result) continue;
      const bool compares = each.make == compare_and_swap;
      forms.push_back({patterns[next++],
                       compares     ? "d [a] b c"
                       : has_result ? "d [a] b"
                                    : "[a] b",
                       each.make});
    }
    forms.push_back({patterns[next++], has_result ? "{d} [a] {b}" : "[a] {b}",
                     has_result ? as<run_add_vector<true>> : as<run_add_vector<false>>});
  }
  return forms;
}

}  // namespace

std::span<const Form> atomic_forms() {
  static const std::vector<Form> forms = all_forms();
  return forms;
}

}  // namespace attest::ptx
