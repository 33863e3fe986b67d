#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/dtype/dtype.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/opcode_runner.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Floats of 8 bits by their table of values, and products whose factors or sums are small.
namespace attest::ptx {
namespace {

using testing::Call;
using testing::kernel;
using Words = std::vector<std::uint32_t>;

constexpr std::size_t kLanes = 32, kRows = 16, kColumns = 8;

// OFP8: sign, exponent and mantissa, read field by field.
float value_of(const std::string& type, std::uint32_t bits) {
  const bool is_e4m3 = type == "e4m3";
  const std::uint32_t mantissa_bits = is_e4m3 ? 3 : 2, magnitude = bits & 0x7FU;
  const std::uint32_t exponent = magnitude >> mantissa_bits;
  const std::uint32_t mantissa = magnitude & ((1U << mantissa_bits) - 1);
  float value = std::numeric_limits<float>::quiet_NaN();
  if (is_e4m3 ? magnitude != 0x7F : exponent != 31) {
    const float fraction = static_cast<float>(mantissa) / static_cast<float>(1U << mantissa_bits);
    const int bias = is_e4m3 ? 7 : 15;
    value = exponent == 0 ? std::ldexp(fraction, 1 - bias)
                          : std::ldexp(1.0F + fraction, static_cast<int>(exponent) - bias);
  } else if (!is_e4m3 && mantissa == 0) {
    value = std::numeric_limits<float>::infinity();
  }
  return (bits & 0x80U) != 0 ? -value : value;
}

// The nearest finite byte, of two the even one.
std::uint32_t nearest_byte(const std::string& type, float value, bool relu) {
  if (value != value) return 0x7F;
  if (relu && value <= 0.0F) return 0;
  const std::uint32_t sign = std::signbit(value) ? 0x80U : 0;
  std::uint32_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  const double wanted = std::fmin(std::fabs(static_cast<double>(value)), 1e6);
  for (std::uint32_t bits = 0; bits < 0x80; ++bits) {
    const auto each = static_cast<double>(value_of(type, bits));
    if (!std::isfinite(each)) continue;
    const double distance = std::fabs(each - wanted);
    if (distance < least || (distance == least && bits % 2 == 0)) {
      least = distance;
      best = bits;
    }
  }
  return best | sign;
}

std::vector<float> interesting(const std::string& type) {
  std::vector<float> all{std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::infinity(), 1e30F, 1e-30F, 65504.0F};
  for (std::uint32_t bits = 0; bits < 0x7B; ++bits) {
    const float value = value_of(type, bits), next = value_of(type, bits + 1);
    const float middle = (value + next) / 2.0F;
    for (const float each :
         {value, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)}) {
      all.push_back(each);
    }
  }
  const std::size_t count = all.size();
  for (std::size_t k = 0; k < count; ++k) all.push_back(-all[k]);
  return all;
}

TEST_CASE("floats of 8 bits are the nearest, and stop at the largest", "[ptx]") {
  for (const std::string type : {"e4m3", "e5m2"}) {
    const std::vector<float> values = interesting(type);
    for (const bool relu : {false, true}) {
      const std::string opcode =
          "cvt.rn.satfinite" + std::string(relu ? ".relu." : ".") + type + "x2.";
      std::vector<std::uint64_t> high, low, pairs;
      for (std::size_t k = 0; k < values.size(); ++k) {
        const float a = values[k], b = values[(k * 7 + 3) % values.size()];
        high.push_back(std::bit_cast<std::uint32_t>(a));
        low.push_back(std::bit_cast<std::uint32_t>(b));
        pairs.push_back(std::uint64_t{f16_from_float(a)} << 16 | f16_from_float(b));
      }
      const auto packed =
          testing::results_of(opcode + "f32", {Type::b16, Type::f32, Type::f32}, {high, low});
      const auto from_pairs =
          testing::results_of(opcode + "f16x2", {Type::b16, Type::b32}, {pairs});
      for (std::size_t k = 0; k < values.size(); ++k) {
        const auto byte = [&](float value) { return nearest_byte(type, value, relu); };
        INFO(opcode << " of " << values[k]);
        CHECK((packed[k] & 0xFFFF) ==
              (byte(values[k]) << 8 | byte(values[(k * 7 + 3) % values.size()])));
        const auto half = [&](int shift) {
          return float_from_f16(static_cast<std::uint16_t>(pairs[k] >> shift));
        };
        CHECK((from_pairs[k] & 0xFFFF) == (byte(half(16)) << 8 | byte(half(0))));
      }
    }
  }
}

TEST_CASE("floats of 8 bits are read by their table", "[ptx]") {
  std::vector<std::uint64_t> pairs;
  for (std::uint64_t bits = 0; bits < 256; ++bits) pairs.push_back(bits << 8 | (255 - bits));
  for (const std::string type : {"e4m3", "e5m2"}) {
    for (const bool relu : {false, true}) {
      const auto halves =
          testing::results_of("cvt.rn" + std::string(relu ? ".relu" : "") + ".f16x2." + type + "x2",
                              {Type::b32, Type::b16}, {pairs});
      for (std::uint32_t bits = 0; bits < 256; ++bits) {
        const auto is_read = [&](std::uint64_t word, std::uint32_t from) {
          const float value = value_of(type, from);
          const auto half = static_cast<std::uint16_t>(word);
          if (value != value) return half == 0x7FFF;
          return half == (relu && value <= 0.0F ? 0 : f16_from_float(value));
        };
        CHECK(is_read(halves[bits] >> 16, bits));
        CHECK(is_read(halves[bits], 255 - bits));
      }
    }
  }
}

struct Product {
  std::string shape, a, b, sums;
  std::size_t depth, a_words, b_words;

  std::size_t bits() const { return a == "f16" ? 16 : 8; }
  std::size_t parts() const { return 32 / bits(); }
  bool has_half_sums() const { return sums == "f16"; }
  float factor(const std::string& type, std::uint64_t seed, std::size_t k) const {
    const std::uint64_t drawn = mix(seed, k);
    if (type == "f16") return float_from_f16(static_cast<std::uint16_t>(word(type, seed, k)));
    return value_of(type, byte(drawn));
  }
  static std::uint32_t byte(std::uint64_t drawn) {  // of a middle size, and sometimes negative
    return static_cast<std::uint32_t>(drawn % 0x20 + 0x28 + (drawn >> 32 & 1U) * 0x80);
  }
  std::uint32_t word(const std::string& type, std::uint64_t seed, std::size_t k) const {
    const std::uint64_t drawn = mix(seed, k);
    return type == "f16"
               ? static_cast<std::uint32_t>(drawn % 0x4000 + 0x2000 + (drawn >> 32 & 1U) * 0x8000)
               : byte(drawn);
  }
};

// The sum in whole units of 2^-60, which it is exactly, rounded once.
float expected(const Product& product, double start, const std::vector<double>& terms) {
  __int128 sum = static_cast<__int128>(std::ldexp(start, 60));
  for (const double term : terms) sum += static_cast<__int128>(std::ldexp(term, 60));
  if (!product.has_half_sums()) return std::ldexp(static_cast<float>(sum), -60);
  constexpr float kInfinity = 65536.0F;  // stands where the next number would
  // Takes the nearer of both neighbours of f16, the even one where they are equally near.
  float best = 0.0F;
  __int128 least = -1;
  for (std::uint32_t bits = 0; bits <= 0x7C00; ++bits) {
    for (const float sign : {1.0F, -1.0F}) {
      const float each =
          sign * (bits == 0x7C00 ? kInfinity : float_from_f16(static_cast<std::uint16_t>(bits)));
      __int128 distance = static_cast<__int128>(std::ldexp(static_cast<double>(each), 60)) - sum;
      distance = distance < 0 ? -distance : distance;
      if (least >= 0 && (distance > least || (distance == least && bits % 2 != 0))) continue;
      least = distance;
      best = each;
    }
  }
  return std::fabs(best) < kInfinity ? best
                                     : std::copysign(std::numeric_limits<float>::infinity(), best);
}

// D = A B + C of one warp, each lane's registers in a row.
std::string product_kernel(const std::string& opcode, std::size_t a_words, std::size_t b_words,
                           std::size_t registers) {
  const auto list = [](const std::string& name, std::size_t count) {
    std::string text = "{";
    for (std::size_t k = 0; k < count; ++k)
      text += (k == 0 ? "%" : ", %") + name + std::to_string(k);
    return text + "}";
  };
  return kernel(".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d",
                ".reg .b64 %p<5>; .reg .b32 %a<4>, %b<2>, %c<4>, %r;\n"
                "mov.u32 %r, %tid.x; ld.param.u64 %p0, [a]; mad.wide.u32 %p0, %r, 16, %p0;\n"
                "ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%p0]; ld.param.u64 %p1, [b];\n"
                "mad.wide.u32 %p1, %r, 8, %p1; ld.global.v2.b32 {%b0, %b1}, [%p1];\n"
                "ld.param.u64 %p2, [c]; mad.wide.u32 %p2, %r, 16, %p2;\n"
                "ld.global.v4.b32 {%c0, %c1, %c2, %c3}, [%p2];\n" +
                    opcode + list("c", registers) + ", " + list("a", a_words) + ", " +
                    list("b", b_words) + ", " + list("c", registers) +
                    ";\nld.param.u64 %p3, [d]; mad.wide.u32 %p3, %r, 16, %p3;\n"
                    "st.global.v4.b32 [%p3], {%c0, %c1, %c2, %c3}; ret;");
}

void check_product(const Product& p) {
  Words a(4 * kLanes), b(2 * kLanes), c(4 * kLanes), d(4 * kLanes);
  const auto a_number = [&](std::size_t row, std::size_t k) { return row * p.depth + k; };
  const std::size_t registers = p.has_half_sums() ? 2 : 4;
  std::array<std::array<float, kColumns>, kRows> start{};
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      start[row][column] =
          float_from_f16(static_cast<std::uint16_t>(mix(3, row * kColumns + column) % 0x5000));
    }
  }
  const auto place = [&](std::size_t lane, std::size_t i) -> std::pair<std::size_t, std::size_t> {
    return {lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2};
  };
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t part = 0; part < p.parts(); ++part) {
      for (std::size_t k = 0; k < p.a_words; ++k) {
        const std::size_t row = lane / 4 + 8 * (k % 2);
        const std::size_t at = (lane % 4 + 4 * (k / 2)) * p.parts() + part;
        a[4 * lane + k] |= p.word(p.a, 1, a_number(row, at)) << p.bits() * part;
      }
      for (std::size_t k = 0; k < p.b_words; ++k) {
        const std::size_t at = (lane % 4 + 4 * k) * p.parts() + part;
        b[2 * lane + k] |= p.word(p.b, 2, a_number(lane / 4, at)) << p.bits() * part;
      }
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const auto [row, column] = place(lane, i);
      const float value = start[row][column];
      if (p.has_half_sums()) {
        c[4 * lane + i / 2] |= std::uint32_t{f16_from_float(value)} << 16 * (i % 2);
      } else {
        c[4 * lane + i] = std::bit_cast<std::uint32_t>(value);
      }
    }
  }
  const std::string opcode = "mma.sync.aligned." + p.shape + ".row.col." + p.sums + "." + p.a +
                             "." + p.b + "." + p.sums + " ";
  Call call(product_kernel(opcode, p.a_words, p.b_words, registers));
  CHECK(call.input("a", a).input("b", b).input("c", c).buffer("d", d).run(1, 32).to_string() == "");
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto [row, column] = place(lane, i);
      std::vector<double> terms;
      for (std::size_t k = 0; k < p.depth; ++k) {
        terms.push_back(static_cast<double>(p.factor(p.a, 1, a_number(row, k))) *
                        static_cast<double>(p.factor(p.b, 2, a_number(column, k))));
      }
      const std::uint32_t word = d[4 * lane + (p.has_half_sums() ? i / 2 : i)];
      const float got = p.has_half_sums()
                            ? float_from_f16(static_cast<std::uint16_t>(word >> 16 * (i % 2)))
                            : std::bit_cast<float>(word);
      INFO(opcode << "row " << row << " column " << column);
      CHECK(got == expected(p, static_cast<double>(start[row][column]), terms));
    }
  }
}

// Sums that wrap, or with .satfinite stop at the last number, beside small ones.
TEST_CASE("mma.sync of whole numbers is exact", "[ptx]") {
  for (const std::string a_type : {"s8", "u8"}) {
    for (const std::string b_type : {"s8", "u8"}) {
      for (const std::size_t depth : {16U, 32U}) {
        for (const std::string satfinite : {"", ".satfinite"}) {
          const std::size_t a_words = depth / 8, b_words = depth / 16;
          Words a(4 * kLanes), b(2 * kLanes), c(4 * kLanes), d(4 * kLanes);
          for (std::size_t k = 0; k < a.size(); ++k) a[k] = static_cast<std::uint32_t>(mix(1, k));
          for (std::size_t k = 0; k < b.size(); ++k) b[k] = static_cast<std::uint32_t>(mix(2, k));
          for (std::size_t k = 0; k < c.size(); ++k) {
            const std::uint32_t edges[] = {0x7FFFFFFF, 0x80000000, 17, 0xFFFFFFF0};
            c[k] = edges[mix(3, k) % 4];
          }
          const std::string opcode = "mma.sync.aligned.m16n8k" + std::to_string(depth) +
                                     ".row.col" + satfinite + ".s32." + a_type + "." + b_type +
                                     ".s32 ";
          Call call(product_kernel(opcode, a_words, b_words, 4));
          call.input("a", a).input("b", b).input("c", c).buffer("d", d);
          CHECK(call.run(1, 32).to_string() == "");
          const auto byte = [](const std::string& type, std::uint32_t word, std::size_t at) {
            const auto bits = static_cast<std::uint8_t>(word >> 8 * at);
            return type == "u8" ? std::int64_t{bits} : std::int64_t{static_cast<std::int8_t>(bits)};
          };
          std::size_t wrong = 0;
          for (std::size_t lane = 0; lane < kLanes; ++lane) {
            for (std::size_t i = 0; i < 4; ++i) {
              const std::size_t row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
              std::int64_t sum = static_cast<std::int32_t>(c[4 * lane + i]);
              for (std::size_t k = 0; k < depth; ++k) {
                // Element k lies with the group's member k / 4 % 4.
                const std::size_t a_lane = row % 8 * 4 + k / 4 % 4, b_lane = column * 4 + k / 4 % 4;
                sum += byte(a_type, a[4 * a_lane + row / 8 + k / 16 * 2], k % 4) *
                       byte(b_type, b[2 * b_lane + k / 16], k % 4);
              }
              if (!satfinite.empty()) {
                sum = std::min<std::int64_t>(std::max<std::int64_t>(sum, INT32_MIN), INT32_MAX);
              }
              wrong += d[4 * lane + i] == static_cast<std::uint32_t>(sum) ? 0 : 1;
            }
          }
          INFO(opcode);
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("mma.sync of 8 bits, and in f16, is rounded once", "[ptx]") {
  check_product({"m16n8k16", "f16", "f16", "f16", 16, 4, 2});
  check_product({"m16n8k8", "f16", "f16", "f16", 8, 2, 1});
  for (const std::string a : {"e4m3", "e5m2"}) {
    for (const std::string b : {"e4m3", "e5m2"}) {
      for (const std::string sums : {"f32", "f16"}) {
        check_product({"m16n8k32", a, b, sums, 32, 4, 2});
      }
      check_product({"m16n8k16", a, b, "f32", 16, 2, 1});
    }
  }
}

}  // namespace
}  // namespace attest::ptx
