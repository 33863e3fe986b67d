#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace attest::ptx {

/// Fundamental types of PTX, in the order of the table of their names.
enum class Type : std::uint8_t {
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  tf32,
  f32,
  f64,
};

enum class TypeClass : std::uint8_t { predicate, bits, unsigned_integer, signed_integer, floating };

struct TypeInfo {
  std::string_view name;
  TypeClass type_class;
  std::uint32_t bits;
};

const TypeInfo& info(Type type);
inline std::uint32_t bits(Type type) { return info(type).bits; }
inline std::size_t bytes(Type type) { return info(type).bits / 8; }

/// The type with that name ("s32", without the dot).
std::optional<Type> type_named(std::string_view name);

}  // namespace attest::ptx
