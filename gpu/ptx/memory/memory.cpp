#include <array>
#include <cstring>
#include <span>
#include <string>

#include "gpu/ptx/arithmetic/lanes.hpp"
#include "gpu/ptx/memory/addresses.hpp"

/// Loads and stores of all state spaces.
namespace attest::ptx {
namespace {

constexpr std::size_t kMostBytes = 32;  // of a lane's access

template <class F>
void for_each_active(const Warp& warp, F&& function) {
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.mask() >> lane & 1U) != 0) function(lane);
  }
}

std::byte* register_of(Warp& warp, const Instruction& in, std::size_t k, std::uint32_t lane) {
  return &warp.at<std::byte>(in.slots[k])[0] + lane * in.widths[k];
}

// A copy whose size the compiler knows, where it is a usual one: no call.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  switch (bytes) {
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

// An element in a register that may be wider: zeros above it, or its sign.
void write_element(Warp& warp, const Instruction& in, std::size_t k, std::uint32_t lane,
                   const std::byte* from) {
  std::uint64_t value = 0;
  copy_bytes(&value, from, in.element_bytes);
  const std::uint32_t above = 64 - 8 * in.element_bytes;
  if (in.is_signed) {
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << above) >> above);
  }
  copy_bytes(register_of(warp, in, k, lane), &value, in.widths[k]);
}

// Bytes that other threads of the host may use at once, where they are one word.
void copy_word(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto copy = [&]<class T>(T value) {
    __atomic_load(reinterpret_cast<const T*>(from), &value, __ATOMIC_SEQ_CST);
    __atomic_store(reinterpret_cast<T*>(to), &value, __ATOMIC_SEQ_CST);
  };
  switch (bytes) {
    case 1:
      return copy(std::uint8_t{});
    case 2:
      return copy(std::uint16_t{});
    case 4:
      return copy(std::uint32_t{});
    case 8:
      return copy(std::uint64_t{});
    default:
      std::memcpy(to, from, bytes);
  }
}

// A load that is followed by others of its kind until another thread has stored: other warps go on
// in between.
void load_strong(Warp& warp, const Instruction& in) {
  const std::size_t bytes = std::size_t{in.element_bytes} * in.elements;
  alignas(16) std::array<std::array<std::byte, kMostBytes>, kWarpLanes> values{};
  for_each_active(warp, [&](std::uint32_t lane) {
    const std::byte* const from = access(warp, in, lane, bytes, Use::strong_read);
    if (from == nullptr) return;
    copy_word(values[lane].data(), from, bytes);
    if (in.of_device) warp.block().note_operation(warp, lane, from);
  });
  for_each_active(warp, [&](std::uint32_t lane) {
    for (std::size_t k = 0; k < in.elements; ++k) {
      write_element(warp, in, k, lane, values[lane].data() + k * in.element_bytes);
    }
  });
  warp.yield();
}

void load(Warp& warp, const Instruction& in) {
  const std::size_t bytes = std::size_t{in.element_bytes} * in.elements;
  // All are read before one is written: the address may be in one of the registers.
  std::array<std::array<std::byte, kMostBytes>, kWarpLanes> values{};
  for_each_active(warp, [&](std::uint32_t lane) {
    const std::byte* const from = access(warp, in, lane, bytes, Use::read);
    if (from != nullptr) copy_bytes(values[lane].data(), from, bytes);
  });
  for_each_active(warp, [&](std::uint32_t lane) {
    for (std::size_t k = 0; k < in.elements; ++k) {
      write_element(warp, in, k, lane, values[lane].data() + k * in.element_bytes);
    }
  });
}

void store(Warp& warp, const Instruction& in) {
  const std::size_t bytes = std::size_t{in.element_bytes} * in.elements;
  for_each_active(warp, [&](std::uint32_t lane) {
    alignas(16) std::array<std::byte, kMostBytes> value;
    for (std::size_t k = 0; k < in.elements; ++k) {
      copy_bytes(value.data() + k * in.element_bytes, register_of(warp, in, k, lane),
                 in.element_bytes);
    }
    const Use use = in.is_strong ? Use::strong_write : Use::write;
    std::byte* const to = access(warp, in, lane, bytes, use, value.data());
    if (to != nullptr && in.is_strong) copy_word(to, value.data(), bytes);
    if (to != nullptr && !in.is_strong) copy_bytes(to, value.data(), bytes);
  });
}

void load_parameter(Warp& warp, const Instruction& in) {
  const std::span<const std::byte> all = warp.block().parameters();
  const std::size_t bytes = std::size_t{in.element_bytes} * in.elements;
  for_each_active(warp, [&](std::uint32_t lane) {
    const std::uint64_t at = address_of(warp, in.addresses[0], lane);
    if (at > all.size() || bytes > all.size() - at) {
      warp.block().report(
          {simt::Fault::out_of_bounds,
           "lane " + std::to_string(lane) + " reads " + std::to_string(bytes) + " bytes at byte " +
               std::to_string(at) + " of the parameters, which have " + std::to_string(all.size())},
          in);
      return;
    }
    for (std::size_t k = 0; k < in.elements; ++k) {
      write_element(warp, in, k, lane, all.data() + at + k * in.element_bytes);
    }
  });
}

Execute loads(const Spelling&, Instruction& in) { return in.is_strong ? load_strong : load; }

// Parameters of calls lie in the thread's memory.
Execute parameter_loads(const Spelling&, Instruction& in) {
  return in.space == Space::local ? load : load_parameter;
}
Execute parameter_stores(const Spelling&, Instruction& in) {
  return in.space == Space::local ? store : nullptr;
}

// Which data caches should keep changes no value.
void make_policy(Warp& warp, const Instruction& in) {
  warp.write(in.slots[0], Lanes<std::uint64_t>{});
}

constexpr Form kForms[] = {
    {"ld.param[.v2|.v4](.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",
     "{d+} [a]", parameter_loads},
    {"st.param[.v2|.v4](.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",
     "[a] {a+}", parameter_stores},
    {"ld(.relaxed|.acquire)(.cta|.cluster|.gpu|.sys)[.global|.shared|.shared::cta|.shared::cluster]"
     "[.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate]"
     "[.L2::64B|.L2::128B|.L2::256B][.v2|.v4]"
     "(.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",
     "{d+} [a]", loads},
    {"st(.relaxed|.release)(.cta|.cluster|.gpu|.sys)[.global|.shared|.shared::cta|.shared::cluster]"
     "[.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate]"
     "[.v2|.v4](.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",
     "[a] {a+}", as<store>},
    {"ld[.weak|.volatile][.global|.shared|.shared::cta|.shared::cluster|.local|.const][.ca|.cg|.cs|"
     ".lu|.cv|.nc]"
     "[.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate]"
     "[.L2::64B|.L2::128B|.L2::256B][.v2|.v4]"
     "(.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",
     "{d+} [a]", loads},
    {"st[.weak|.volatile][.global|.shared|.shared::cta|.shared::cluster|.local][.wb|.cg|.cs|.wt]"
     "[.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate]"
     "[.v2|.v4](.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",
     "[a] {a+}", as<store>},
    {"createpolicy.fractional(.L2::evict_last|.L2::evict_normal|.L2::evict_first"
     "|.L2::evict_unchanged).b64",
     "d a:f32?", as<make_policy>},
    {"ld.global[.nc][.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last"
     "|.L1::no_allocate].L2::cache_hint[.L2::64B|.L2::128B|.L2::256B][.v2|.v4]"
     "(.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",
     "{d+} [a] c:b64", as<load>},
    {"st.global[.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last"
     "|.L1::no_allocate].L2::cache_hint[.v2|.v4]"
     "(.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",
     "[a] {a+} c:b64", as<store>},
};

}  // namespace

std::span<const Form> memory_forms() { return kForms; }

}  // namespace attest::ptx
