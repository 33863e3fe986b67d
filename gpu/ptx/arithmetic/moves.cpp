#include "gpu/ptx/arithmetic/lanes.hpp"
#include "gpu/ptx/memory/addresses.hpp"

/// mov, also of parts of registers, and addresses from one space to another.
namespace attest::ptx {
namespace {

struct Copy {
  template <class T>
  T operator()(T a) const {
    return a;
  }
};
Execute move(const Spelling& spelling, Instruction&) {
  switch (bits(spelling.last_type())) {
    case 16:
      return run_lanes<Copy, std::uint16_t, std::uint16_t>;
    case 32:
      return run_lanes<Copy, std::uint32_t, std::uint32_t>;
    default:
      return run_lanes<Copy, std::uint64_t, std::uint64_t>;
  }
}

void move_predicate(Warp& warp, const Instruction& in) {
  warp.write_predicates(in.slots[0], warp.predicates(in, 1));
}

// "mov.b32 d, {low, high}"
template <class Whole, class Part>
void join(Warp& warp, const Instruction& in) {
  Lanes<Whole> whole{};
  for (std::size_t k = 0; k < sizeof(Whole) / sizeof(Part); ++k) {
    const Lanes<Part>& part = warp.read<Part>(in.slots[k + 1]);
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      whole[lane] |= static_cast<Whole>(Whole{part[lane]} << 8 * sizeof(Part) * k);
    }
  }
  warp.write(in.slots[0], whole);
}
// "mov.b32 {low, high}, a"
template <class Whole, class Part>
void split(Warp& warp, const Instruction& in) {
  constexpr std::size_t kParts = sizeof(Whole) / sizeof(Part);
  const Lanes<Whole> whole = warp.read<Whole>(in.slots[kParts]);
  for (std::size_t k = 0; k < kParts; ++k) {
    Lanes<Part> part;
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      part[lane] = static_cast<Part>(whole[lane] >> 8 * sizeof(Part) * k);
    }
    warp.write(in.slots[k], part);
  }
}

// Adds or takes away the window of the space.
void convert_address(Warp& warp, const Instruction& in) {
  const std::uint64_t window = window_of(in.space);
  const std::uint64_t added = in.variant != 0 ? ~window + 1 : window;
  each_lane<std::uint64_t, std::uint64_t>(warp, in, [added](std::uint64_t a) { return a + added; });
}
Execute convert(const Spelling& spelling, Instruction& in) {
  in.variant = spelling.has("to") ? 1 : 0;
  return convert_address;
}

void is_in_space(Warp& warp, const Instruction& in) {
  const Lanes<std::uint64_t>& addresses = warp.read<std::uint64_t>(in.slots[1]);
  std::uint32_t bits = 0;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    bits |= std::uint32_t{space_of(addresses[lane]) == in.space} << lane;
  }
  warp.write_predicates(in.slots[0], bits);
}

constexpr Form kForms[] = {
    {"mov(.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64)", "d a", move},
    {"mov.pred", "d a", as<move_predicate>},
    {"mov.b32", "d {a:b16*2}", as<join<std::uint32_t, std::uint16_t>>},
    {"mov.b32", "{d:b16*2} a", as<split<std::uint32_t, std::uint16_t>>},
    {"mov.b64", "d {a:b32*2}", as<join<std::uint64_t, std::uint32_t>>},
    {"mov.b64", "{d:b32*2} a", as<split<std::uint64_t, std::uint32_t>>},
    {"mov.b64", "d {a:b16*4}", as<join<std::uint64_t, std::uint16_t>>},
    {"mov.b64", "{d:b16*4} a", as<split<std::uint64_t, std::uint16_t>>},
    {"cvta[.to](.global|.shared|.shared::cta|.shared::cluster|.local|.const|.param).u64", "d a",
     convert},
    {"isspacep(.global|.shared|.shared::cta|.shared::cluster|.local)", "d:pred a:u64",
     as<is_in_space>},
};

}  // namespace

std::span<const Form> move_forms() { return kForms; }

}  // namespace attest::ptx
