#include "gpu/ptx/text/types.hpp"

#include <array>

namespace attest::ptx {
namespace {

using enum TypeClass;

constexpr std::array kTypes{
    TypeInfo{"pred", predicate, 1},
    TypeInfo{"b8", bits, 8},
    TypeInfo{"b16", bits, 16},
    TypeInfo{"b32", bits, 32},
    TypeInfo{"b64", bits, 64},
    TypeInfo{"b128", bits, 128},
    TypeInfo{"u8", unsigned_integer, 8},
    TypeInfo{"u16", unsigned_integer, 16},
    TypeInfo{"u32", unsigned_integer, 32},
    TypeInfo{"u64", unsigned_integer, 64},
    TypeInfo{"s8", signed_integer, 8},
    TypeInfo{"s16", signed_integer, 16},
    TypeInfo{"s32", signed_integer, 32},
    TypeInfo{"s64", signed_integer, 64},
    TypeInfo{"f16", floating, 16},
    TypeInfo{"bf16", floating, 16},
    TypeInfo{"f16x2", floating, 32},
    TypeInfo{"bf16x2", floating, 32},
    TypeInfo{"tf32", floating, 32},
    TypeInfo{"f32", floating, 32},
    TypeInfo{"f64", floating, 64},
};

}  // namespace

const TypeInfo& info(Type type) { return kTypes[static_cast<std::size_t>(type)]; }

std::optional<Type> type_named(std::string_view name) {
  for (std::size_t k = 0; k < kTypes.size(); ++k) {
    if (kTypes[k].name == name) return static_cast<Type>(k);
  }
  return std::nullopt;
}

}  // namespace attest::ptx
