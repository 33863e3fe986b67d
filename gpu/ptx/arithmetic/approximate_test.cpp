#include <mpfr.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/arithmetic/floating.hpp"
#include "gpu/ptx/program/opcodes.hpp"
#include "gpu/ptx/testing/definitions.hpp"
#include "gpu/ptx/testing/opcode_runner.hpp"

/// Approximations are within the error that PTX ISA gives for them.
namespace attest::ptx {
namespace {

using Function = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);

struct Row {
  const char* opcode;
  Function function;
};
const AllowedError& error_of(const char* opcode) { return match(opcode, {}).front().form->error; }

// MPFR's own has infinity for -0, where PTX has -infinity.
int reciprocal_root(mpfr_t result, const mpfr_t a, mpfr_rnd_t rounding) {
  mpfr_sqrt(result, a, rounding);
  return mpfr_ui_div(result, 1, result, rounding);
}

constexpr Row kRows[] = {
    {"ex2.approx.f32", mpfr_exp2},
    {"lg2.approx.f32", mpfr_log2},
    {"rsqrt.approx.f32", reciprocal_root},
    {"sqrt.approx.f32", mpfr_sqrt},
    {"sin.approx.f32", mpfr_sin},
    {"cos.approx.f32", mpfr_cos},
    {"tanh.approx.f32", mpfr_tanh},
    {"rcp.approx.f32",
     [](mpfr_t r, const mpfr_t a, mpfr_rnd_t rounding) { return mpfr_ui_div(r, 1, a, rounding); }},
};

double exact(Function function, double a) {
  mpfr_t value, result;
  mpfr_init2(value, 53);
  mpfr_init2(result, 53);
  mpfr_set_d(value, a, MPFR_RNDN);
  function(result, value, MPFR_RNDN);
  const double found = mpfr_get_d(result, MPFR_RNDN);
  mpfr_clear(value);
  mpfr_clear(result);
  return found;
}

void hold_rows(Approximation approximation) {
  for (const Row& row : kRows) {
    const AllowedError& error = error_of(row.opcode);
    const auto a = testing::edge_values(Type::f32);
    const auto results =
        testing::results_of(row.opcode, {Type::f32, Type::f32}, {a}, "", {approximation});
    for (std::size_t k = 0; k < a.size(); ++k) {
      const double x = testing::value_of(a[k], Type::f32);
      const double got = testing::value_of(results[k], Type::f32), wanted = exact(row.function, x);
      INFO(row.opcode << " of " << x << " is " << got << ", " << wanted << " in exact arithmetic");
      const double largest = static_cast<double>(std::numeric_limits<float>::max());
      if (wanted != wanted) {
        CHECK(results[k] == 0x7FFFFFFF);
      } else if (std::fabs(wanted) > largest) {
        CHECK(got == std::copysign(INFINITY, wanted));
      } else {
        const double underflow = 0x1p-149;  // the last place of subnormal numbers
        const float magnitude = std::fabs(static_cast<float>(wanted));
        const float unit = std::nextafter(magnitude, INFINITY) - magnitude;
        CHECK(std::fabs(got - wanted) <=
              most(error, wanted, static_cast<double>(unit)) + underflow);
        CHECK(std::signbit(got) == std::signbit(wanted));
      }
    }
  }
}

TEST_CASE("approximations are within PTX's errors, special values as they are", "[ptx]") {
  hold_rows(Approximation::nearest);
  hold_rows(Approximation::farthest);
}

TEST_CASE("the farthest approximations are other numbers than the nearest", "[ptx]") {
  const auto a = testing::edge_values(Type::f32);
  for (const Row& row : kRows) {
    const auto run = [&](Approximation approximation) {
      return testing::results_of(row.opcode, {Type::f32, Type::f32}, {a}, "", {approximation});
    };
    INFO(row.opcode);
    CHECK(run(Approximation::nearest) == run(Approximation::nearest));
    CHECK(run(Approximation::nearest) != run(Approximation::farthest));
  }
}

struct HalfRow {
  const char* opcode;
  Type type;
  Function function;
};
constexpr HalfRow kHalfRows[] = {{"ex2.approx.f16", Type::f16, mpfr_exp2},
                                 {"ex2.approx.ftz.bf16", Type::bf16, mpfr_exp2},
                                 {"tanh.approx.f16", Type::f16, mpfr_tanh},
                                 {"tanh.approx.bf16", Type::bf16, mpfr_tanh}};

// All 65536 operands, alone and in pairs.
TEST_CASE("approximations of 16 bits are within PTX's errors", "[ptx]") {
  std::vector<std::uint64_t> operands(1U << 16), pairs(1U << 16);
  for (std::uint64_t k = 0; k < operands.size(); ++k) {
    operands[k] = k;
    pairs[k] = k << 16 | (k ^ 0x5555U);
  }
  for (const HalfRow& row : kHalfRows) {
    const bool is_f16 = row.type == Type::f16;
    const double largest = is_f16 ? 65504.0 : 0x1.FEp127;
    const double least = is_f16 ? 0x1p-24 : 0x1p-126;  // bf16's ex2 flushes to zero
    std::vector<std::uint64_t> nearest;
    for (const Approximation choice : {Approximation::nearest, Approximation::farthest}) {
      const auto results =
          testing::results_of(row.opcode, {row.type, row.type}, {operands}, "", {choice});
      const auto both = testing::results_of(std::string(row.opcode) + "x2",
                                            {is_f16 ? Type::f16x2 : Type::bf16x2, Type::b32},
                                            {pairs}, "", {choice});
      std::size_t wrong = 0, apart = 0;
      for (std::uint64_t k = 0; k < operands.size(); ++k) {
        const std::uint64_t bits = results[k] & 0xFFFF;
        apart += (both[k] & 0xFFFFFFFF) == (bits << 16 | (results[k ^ 0x5555U] & 0xFFFF)) ? 0 : 1;
        const double got = testing::value_of(bits, row.type);
        const double wanted = exact(row.function, testing::value_of(k, row.type));
        if (wanted != wanted) {
          wrong += bits == 0x7FFF ? 0 : 1;
        } else if (std::fabs(wanted) > largest) {
          wrong += std::fabs(got) >= largest ? 0 : 1;
        } else {
          const double distance = most(error_of(row.opcode), wanted, 0.0) + least;
          wrong += std::fabs(got - wanted) <= distance ? 0 : 1;
        }
      }
      INFO(row.opcode);
      CHECK(wrong == 0);
      CHECK(apart == 0);
      if (choice == Approximation::nearest) nearest = results;
      if (choice == Approximation::farthest) CHECK(results != nearest);
    }
  }
}

TEST_CASE("ex2 in vectors has the bits of exp2 in each lane", "[ptx]") {
  constexpr std::size_t kCount = 1U << 18;
  std::vector<std::uint64_t> operands(kCount);
  for (std::size_t k = 0; k < kCount; ++k) {
    const auto share = static_cast<float>(mix(7, k) % 16777216) / 16777216.0F;
    operands[k] = std::bit_cast<std::uint32_t>((share - 0.5F) * (k % 2 == 0 ? 300.0F : 4.0F));
  }
  const auto results = testing::results_of("ex2.approx.f32", {Type::f32, Type::f32}, {operands});
  std::size_t other = 0;
  for (std::size_t k = 0; k < kCount; ++k) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(operands[k]));
    const auto nearest = static_cast<float>(std::exp2(static_cast<double>(x)));
    other += results[k] != std::bit_cast<std::uint32_t>(nearest) ? 1 : 0;
  }
  CHECK(other == 0);
}

TEST_CASE("quotients that are approximate", "[ptx]") {
  const auto operands = testing::edge_operands({Type::f32, Type::f32});
  for (const char* opcode : {"div.full.f32", "div.approx.f32"}) {
    const auto results = testing::results_of(opcode, {Type::f32, Type::f32, Type::f32}, operands);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const auto a = std::bit_cast<float>(static_cast<std::uint32_t>(operands[0][k]));
      const auto b = std::bit_cast<float>(static_cast<std::uint32_t>(operands[1][k]));
      const auto got = std::bit_cast<float>(static_cast<std::uint32_t>(results[k]));
      INFO(opcode << " of " << a << " and " << b << " is " << got);
      const float magnitude = std::fabs(b);
      const bool is_large = magnitude > 0x1p126F && !std::isinf(b);
      if (is_large && opcode[4] == 'a') {
        CHECK((std::isfinite(a) ? got == 0.0F : got != got));
      } else {
        const float quotient = a / b;
        CHECK((got == quotient || (got != got && quotient != quotient)));
      }
    }
  }
}

TEST_CASE("ftz flushes operands and results of approximations", "[ptx]") {
  const std::vector<std::uint64_t> tiny{0x00400000, 0x80400000};  // subnormal
  const auto powers = testing::results_of("ex2.approx.ftz.f32", {Type::f32, Type::f32},
                                          {{std::bit_cast<std::uint32_t>(-127.5F)}});
  CHECK(powers[0] == 0);
  const auto reciprocals =
      testing::results_of("rcp.approx.ftz.f32", {Type::f32, Type::f32}, {tiny});
  CHECK(reciprocals[0] == 0x7F800000);
  CHECK(reciprocals[1] == 0xFF800000);
}

}  // namespace
}  // namespace attest::ptx
