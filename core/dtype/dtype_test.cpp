#include "core/dtype/dtype.hpp"

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/dtype/dtype_range.hpp"
#include "core/dtype/element.hpp"
#include "core/error.hpp"
#include "core/tensor.hpp"
#include "core/testing/abi_enum.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

bool same_f16(std::uint16_t a, std::uint16_t b) { return a == b; }

TEST_CASE("every f16 and bf16 bit pattern survives the trip through float", "[core][dtype]") {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    if (const float x = float_from_f16(pattern); std::isnan(x)) {
      REQUIRE(std::isnan(float_from_f16(f16_from_float(x))));
    } else if (!same_f16(f16_from_float(x), pattern)) {
      FAIL("f16 pattern " << bits);
    }
    if (const float x = float_from_bf16(pattern); std::isnan(x)) {
      REQUIRE(std::isnan(float_from_bf16(bf16_from_float(x))));
    } else if (bf16_from_float(x) != pattern) {
      FAIL("bf16 pattern " << bits);
    }
  }
}

// clang 14 has the macro but not the type; Eigen's half is compared with below.
#if defined(__FLT16_MAX__) && !defined(__clang__)
#ifdef __ARM_FP16_FORMAT_IEEE
using CompilersHalf = __fp16;  // g++ 12 knows _Float16 on Arm in C alone
#else
using CompilersHalf = _Float16;
#endif
TEST_CASE("f16 conversion is exact: it equals the compiler's type", "[core][dtype]") {
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 4099) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(x)) continue;
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<CompilersHalf>(x));
    if (!same_f16(f16_from_float(x), expected)) FAIL("float bits " << bits);
  }
}
#endif

TEST_CASE("bf16 conversion rounds to nearest even", "[core][dtype]") {
  for (std::uint64_t bits = 0; bits < 0x7f7f0000u; bits += 4099) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const std::uint16_t low = static_cast<std::uint16_t>(bits >> 16);
    const double below = float_from_bf16(low);
    const double above = float_from_bf16(static_cast<std::uint16_t>(low + 1));
    const double to_below = double{x} - below;
    const double to_above = above - double{x};
    const bool up = to_above < to_below || (to_above == to_below && (low & 1u) != 0u);
    REQUIRE(bf16_from_float(x) == low + (up ? 1 : 0));
  }
}

TEST_CASE("both 16-bit conversions equal Eigen's", "[core][dtype]") {
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 1031) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(x)) continue;
    const auto half = Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(x));
    const auto brain = Eigen::numext::bit_cast<std::uint16_t>(Eigen::bfloat16(x));
    if (f16_from_float(x) != half) FAIL("f16 of float bits " << bits);
    if (bf16_from_float(x) != brain) FAIL("bf16 of float bits " << bits);
  }
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const auto half = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(pattern));
    const auto brain = static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(pattern));
    if (std::isnan(half)) {
      REQUIRE(std::isnan(float_from_f16(pattern)));
    } else {
      REQUIRE(float_from_f16(pattern) == half);
    }
    if (std::isnan(brain)) {
      REQUIRE(std::isnan(float_from_bf16(pattern)));
    } else {
      REQUIRE(float_from_bf16(pattern) == brain);
    }
  }
}

TEST_CASE("ulp is the distance to the next value", "[dtype]") {
  for (const double x : {1.0, -1.5, 0.75, 3e-39, 1e-45, 2.5e30}) {
    INFO(x);
    const auto value = static_cast<float>(x);
    const float next = std::nextafter(std::abs(value), std::numeric_limits<float>::infinity());
    CHECK(ulp(DType::f32, value) == static_cast<double>(next) - std::abs(value));
    const auto bits = bf16_from_float(std::abs(value));
    CHECK(ulp(DType::bf16, float_from_bf16(bits)) ==
          float_from_bf16(static_cast<std::uint16_t>(bits + 1)) - float_from_bf16(bits));
    CHECK(ulp(DType::f64, x) ==
          std::nextafter(std::abs(x), std::numeric_limits<double>::infinity()) - std::abs(x));
  }
  for (const int pattern : {1, 0x3ff, 0x400, 0x3c00, 0x7bfe}) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    CHECK(ulp(DType::f16, float_from_f16(bits)) ==
          float_from_f16(static_cast<std::uint16_t>(bits + 1)) - float_from_f16(bits));
  }
  CHECK(ulp(DType::f16, 0) == 0x1p-24);
}

using Table = std::vector<DTypeFacts>;

Table table() { return {kDTypes.begin(), kDTypes.end()}; }

// Returns the table with one row spoiled.
template <class Spoil>
Table spoiled(DType dtype, const Spoil& spoil) {
  Table rows = table();
  spoil(rows[static_cast<std::size_t>(dtype)]);
  return rows;
}

// Returns the largest 2^-n that `is` holds for.
template <class Condition>
double largest(const Condition& is) {
  double power = 1;
  while (!is(power)) power /= 2;
  return power;
}

// Returns the facts of rows that rounding to the dtype contradicts.
std::vector<std::string> misrounded(const Table& rows) {
  std::vector<std::string> wrong;
  for (const DTypeFacts& row : rows) {
    const auto rounded = [&](double x) { return round_to(row.dtype, x); };
    const double u = largest([&](double power) { return rounded(1 + power) == 1; });
    const double lost = largest([&](double power) { return rounded(power) == 0; });
    const double next = 1 + 2 * u;  // below normal numbers it cannot be told from 1
    const double subnormal = largest([&](double x) { return rounded(x * next) / x != next; });
    const auto check = [&](const char* fact, bool is_right) {
      if (!is_right) wrong.push_back(std::string(row.name) + ": " + fact);
    };
    check("unit roundoff", row.unit_roundoff == u);
    check("underflow unit", row.underflow_unit == lost);
    check("smallest normal", smallest_normal(row) == 2 * subnormal);
  }
  return wrong;
}

TEST_CASE("the range of a dtype follows from its row", "[dtype]") {
  CHECK(misrounded(table()).empty());
  for (const DType dtype : all_dtypes()) {
    CHECK(has_narrow_range(dtype) == (dtype == DType::f16));
    CHECK(has_narrow_range(unit_roundoff(dtype)) == (dtype == DType::f16));
  }
  CHECK_FALSE(has_narrow_range(0.0));
  CHECK(dtypes_in_float32() == (1u << ATTEST_F32 | 1u << ATTEST_BF16 | 1u << ATTEST_F16));
}

TEST_CASE("a row with another range is refused", "[dtype]") {
  using Objections = std::vector<std::string>;
  CHECK(misrounded(spoiled(DType::bf16, [](DTypeFacts& row) { row.unit_roundoff /= 2; })) ==
        Objections{"bf16: unit roundoff", "bf16: smallest normal"});
  CHECK(misrounded(spoiled(DType::f16, [](DTypeFacts& row) { row.underflow_unit *= 2; })) ==
        Objections{"f16: underflow unit", "f16: smallest normal"});
  CHECK(misrounded(spoiled(DType::f64, [](DTypeFacts& row) { row.dtype = DType::f32; })) ==
        Objections{"f64: unit roundoff", "f64: underflow unit", "f64: smallest normal"});
}

// Returns the dtypes that memory holds in other bits, or whose conversions are another's.
// visit(dtype, visitor) as visit_element.
template <class Visit>
std::vector<std::string> misstored(const Table& rows, const Visit& visit) {
  std::vector<std::string> wrong;
  for (const DTypeFacts& row : rows) {
    visit(row.dtype, [&](auto element) {
      bool is_right = 8 * sizeof(typename decltype(element)::Stored) == row.bits;
      for (const float value : {-1.5f, 0.0f, 1.0f / 3, 1e5f}) {
        const float stored = element.load(element.store(value));
        is_right = is_right && static_cast<double>(stored) == round_to(row.dtype, value);
      }
      if (!is_right) wrong.emplace_back(row.name);
    });
  }
  return wrong;
}

constexpr auto kVisit = [](DType dtype, const auto& visitor) { visit_element(dtype, visitor); };

TEST_CASE("an element is stored in the bits of its dtype", "[dtype]") {
  CHECK(misstored(table(), kVisit).empty());
}

TEST_CASE("a dtype that is stored as another is refused", "[dtype]") {
  CHECK(misstored(spoiled(DType::f32, [](DTypeFacts& row) { row.bits = 16; }), kVisit) ==
        std::vector<std::string>{"f32"});
  const auto without_bf16 = [](DType dtype, const auto& visitor) {
    visit_element(dtype == DType::bf16 ? DType::f16 : dtype, visitor);
  };
  CHECK(misstored(table(), without_bf16) == std::vector<std::string>{"bf16"});
}

// Returns the names of dtypes that the table or attest_dtype of the header has alone.
std::set<std::string> misnamed(const Table& rows, const std::string& header) {
  std::multiset<testing::Enumerator> names;
  for (const DTypeFacts& row : rows) names.emplace(row.code, row.abi_name);
  return testing::differing(names, testing::enumerators(header, "typedef enum attest_dtype {"));
}

TEST_CASE("unknown codes are refused", "[dtype]") {
  for (const DType dtype : all_dtypes()) CHECK(dtype_of(abi(dtype)) == dtype);
  for (const std::int64_t code : {-1, 4, 255}) CHECK_THROWS_AS(dtype_of(code), InvalidProblem);
}

TEST_CASE("the table has the dtypes of the ABI", "[dtype]") {
  const std::string header = testing::abi_header();
  CHECK(misnamed(table(), header).empty());
  CHECK(misnamed({kDTypes.begin(), kDTypes.end() - 1}, header) ==
        std::set<std::string>{"ATTEST_F16"});
  CHECK(misnamed(spoiled(DType::f32, [](DTypeFacts& row) { row.code = ATTEST_F64; }), header) ==
        std::set<std::string>{"ATTEST_F32"});
  const std::string last = "ATTEST_F16 = 3";
  CHECK(misnamed(table(), testing::edited(header, last, last + ", ATTEST_E5M2 = 4")) ==
        std::set<std::string>{"ATTEST_E5M2"});
}

}  // namespace
}  // namespace attest
