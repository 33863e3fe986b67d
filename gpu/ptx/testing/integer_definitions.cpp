#include <algorithm>

#include "core/error.hpp"
#include "gpu/ptx/testing/definitions.hpp"

namespace attest::ptx::testing {
namespace {

using Wide = __int128;
using Large = unsigned __int128;

std::uint64_t ones(std::uint32_t width) {
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

bool bit(std::uint64_t value, std::uint32_t k) { return (value >> k & 1U) != 0; }

[[noreturn]] void refuse_undefined(const Spelling& spelling) {
  throw InternalError("no definition of " + std::string(spelling.form->pattern));
}

}  // namespace

std::string name_of(const Spelling& spelling) {
  const std::string_view pattern = spelling.form->pattern;
  return std::string(pattern.substr(0, pattern.find_first_of(".[(")));
}

__int128 integer_of(std::uint64_t bits_of_it, Type type) {
  const std::uint64_t kept = bits_of_it & ones(bits(type));
  const bool is_signed = info(type).type_class == TypeClass::signed_integer;
  if (!is_signed || !bit(kept, bits(type) - 1)) return kept;
  return static_cast<Wide>(kept) - (static_cast<Wide>(1) << bits(type));
}

std::uint64_t defined_integer(const Spelling& spelling, const Bits& sources) {
  const Type type = spelling.last_type();
  const std::uint32_t width = bits(type);
  const std::string name = name_of(spelling);
  const Wide a = integer_of(sources[0], type);
  const Wide b = sources.size() > 1 ? integer_of(sources[1], type) : 0;
  const auto whole = [&](Wide value) { return static_cast<std::uint64_t>(value) & ones(width); };
  const auto clamped = [&](Wide value) {
    const Wide most = (static_cast<Wide>(1) << (width - 1)) - 1;
    return whole(std::clamp(value, -most - 1, most));
  };
  if (name == "add") return spelling.has("sat") ? clamped(a + b) : whole(a + b);
  if (name == "sub") return spelling.has("sat") ? clamped(a - b) : whole(a - b);
  if (name == "min") return whole(a < b ? a : b);
  if (name == "max") return whole(a > b ? a : b);
  if (name == "neg") return whole(-a);
  if (name == "abs") return whole(a < 0 ? -a : a);
  if (name == "div") return b == 0 ? ones(width) : whole(a / b);
  if (name == "rem") return b == 0 ? whole(a) : whole(a % b);
  if (name != "mul" && name != "mad") refuse_undefined(spelling);
  // Products of 64-bit numbers have up to 128 bits, with a sign or without.
  const Large product = static_cast<Large>(a) * static_cast<Large>(b);
  const std::uint32_t result_width = spelling.has("wide") ? 2 * width : width;
  auto result = static_cast<std::uint64_t>(spelling.has("hi") ? product >> width : product);
  if (name == "mad") result += sources[2];
  return result & ones(result_width);
}

std::uint64_t defined_bits(const Spelling& spelling, const Bits& s) {
  const Type type = spelling.last_type();
  const std::uint32_t width = bits(type), msb = width - 1;
  const std::string name = name_of(spelling);
  std::uint64_t result = 0;
  const auto each = [&](auto&& value) {
    for (std::uint32_t k = 0; k < width; ++k) {
      result |= static_cast<std::uint64_t>(static_cast<bool>(value(k))) << k;
    }
    return result;
  };
  const bool is_signed = info(type).type_class == TypeClass::signed_integer;
  if (name == "and") return each([&](auto k) { return bit(s[0], k) && bit(s[1], k); });
  if (name == "or") return each([&](auto k) { return bit(s[0], k) || bit(s[1], k); });
  if (name == "xor") return each([&](auto k) { return bit(s[0], k) != bit(s[1], k); });
  if (name == "not") return each([&](auto k) { return !bit(s[0], k); });
  if (name == "brev") return each([&](auto k) { return bit(s[0], msb - k); });
  if (name == "shl") {
    return each(
        [&](auto k) { return k >= s[1] && bit(s[0], k - static_cast<std::uint32_t>(s[1])); });
  }
  if (name == "shr") {
    return each([&](auto k) {
      const std::uint64_t from = k + s[1];
      return from <= msb ? bit(s[0], static_cast<std::uint32_t>(from))
                         : is_signed && bit(s[0], msb);
    });
  }
  if (name == "popc") {
    for (std::uint32_t k = 0; k < width; ++k) result += bit(s[0], k) ? 1 : 0;
    return result;
  }
  if (name == "clz") {
    while (result < width && !bit(s[0], msb - static_cast<std::uint32_t>(result))) ++result;
    return result;
  }
  if (name == "bfind") {  // PTX ISA, bfind: the pseudocode
    const bool sign = is_signed && bit(s[0], msb);
    for (std::uint32_t k = width; k-- > 0;) {
      if (bit(s[0], k) != sign) return spelling.has("shiftamt") ? msb - k : k;
    }
    return 0xFFFFFFFF;
  }
  if (name == "bfe") {  // PTX ISA, bfe: the pseudocode
    const std::uint64_t pos = s[1] & 0xFF, len = s[2] & 0xFF;
    const bool sign =
        is_signed && len != 0 &&
        bit(s[0], static_cast<std::uint32_t>(std::min<std::uint64_t>(pos + len - 1, msb)));
    return each([&](auto k) {
      return k < len && pos + k <= msb ? bit(s[0], static_cast<std::uint32_t>(pos + k)) : sign;
    });
  }
  if (name == "bfi") {
    const std::uint64_t pos = s[2] & 0xFF, len = s[3] & 0xFF;
    return each([&](auto k) {
      const bool is_field = k >= pos && k < pos + len;
      return is_field ? bit(s[0], static_cast<std::uint32_t>(k - pos)) : bit(s[1], k);
    });
  }
  if (name == "lop3") {  // s[3]: the table
    return each([&](auto k) {
      return bit(s[3],
                 (bit(s[0], k) ? 4U : 0U) + (bit(s[1], k) ? 2U : 0U) + (bit(s[2], k) ? 1U : 0U));
    });
  }
  if (name == "prmt") {
    return each([&](auto k) {
      const std::uint64_t selector = s[2] >> k / 8 * 4 & 0xF, byte = selector & 7;
      const std::uint64_t from = (byte < 4 ? s[0] : s[1]) >> byte % 4 * 8 & 0xFF;
      return selector >= 8 ? bit(from, 7) : bit(from, k % 8);
    });
  }
  if (name == "shf") {
    const std::uint64_t by = spelling.has("clamp") ? std::min<std::uint64_t>(s[2], 32) : s[2] % 32;
    return each([&](auto k) {
      const std::uint64_t from = spelling.has("l") ? k + 32 - by : k + by;
      return from < 32 ? bit(s[0], static_cast<std::uint32_t>(from))
                       : bit(s[1], static_cast<std::uint32_t>(from - 32));
    });
  }
  refuse_undefined(spelling);
}

}  // namespace attest::ptx::testing
