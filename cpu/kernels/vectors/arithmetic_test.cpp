#include "cpu/kernels/vectors/arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "cpu/kernels/vectors/target.hpp"

namespace attest::cpu {
namespace {

float fused(float a, float b, float c) { return std::fma(a, b, c); }
float rounded_twice(float a, float b, float c) {
  const volatile float product = a * b;  // no compiler may fuse it
  return product + c;
}

// How the target that runs adds a product to a sum.
bool is_fused() {
  constexpr float kA = 1 + 0x1p-12f;
  float c = -1;
  multiply_add(&c, 1, {&kA, 1, 1}, &kA, 1, 1, 1, 1);
  return c != rounded_twice(kA, kA, -1);
}

float add_product(float a, float b, float c) {
  static const bool fuses = is_fused();
  return fuses ? fused(a, b, c) : rounded_twice(a, b, c);
}

TEST_CASE("targets with fused multiply-adds use them", "[cpu]") {
  const std::string name = target_name();
  INFO(name);
  if (name.rfind("AVX", 0) == 0 || name == "NEON") CHECK(is_fused());
}

TEST_CASE("exponential is within two ulp and exact at zero", "[cpu]") {
  double worst = 0;
  constexpr int kSteps = 2000000;
  for (int step = 0; step <= kSteps; ++step) {
    const float t = 87.0f - 174.33f * static_cast<float>(step) / static_cast<float>(kSteps);
    float x = t;
    exp_shifted(&x, 1, 0.0f);
    const double exact = std::exp(static_cast<double>(t));
    int exponent = 0;
    std::frexp(exact, &exponent);
    const double ulp = std::ldexp(1.0, exponent - 24);
    worst = std::max(worst, std::abs(static_cast<double>(x) - exact) / ulp);
  }
  std::printf("exponential: worst error %.2f ulp\n", worst);
  CHECK(worst <= Numerics{}.exp_ulps);  // what kernels that declare nothing keep
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float values[7] = {3.0f,  -kInfinity, 3.0f - 88.0f, std::numeric_limits<float>::quiet_NaN(),
                     93.0f, 1e30f,      kInfinity};
  exp_shifted(values, 7, 3.0f);
  CHECK(values[0] == 1.0f);
  CHECK(values[1] == 0.0f);
  CHECK(values[2] == 0.0f);
  CHECK(std::isnan(values[3]));
  for (int e = 4; e < 7; ++e) CHECK(values[e] == kInfinity);
  float x[3] = {1.5f, -kInfinity, -4.25f}, alone[3] = {1.5f, -kInfinity, -4.25f};
  const float shift[3] = {0.5f, 2.0f, -4.25f};
  exp_differences(x, shift, 3);
  for (int e = 0; e < 3; ++e) {
    exp_shifted(alone + e, 1, shift[e]);
    CHECK(x[e] == alone[e]);
  }
}

TEST_CASE("product is one ascending chain for every shape and stride", "[cpu]") {
  Rng rng(1);
  for (const std::int64_t m : {1, 3, 4, 9, 23, 70}) {
    for (const std::int64_t n : {1, 2, 5, 8, 9, 23, 31, 32, 48, 57, 64, 70, 80}) {
      for (const std::int64_t k : {0, 1, 17, 256, 600}) {
        std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
            c(static_cast<std::size_t>(m * n)), transposed(a.size());
        for (auto* list : {&a, &b, &c}) {
          for (float& x : *list) x = static_cast<float>(rng.normal());
        }
        const std::vector<float> begun = c;
        std::vector<float> expected = c, other = c;
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t l = 0; l < k; ++l) {
            const float x = a[static_cast<std::size_t>(i * k + l)];
            transposed[static_cast<std::size_t>(l * m + i)] = x;
            for (std::int64_t j = 0; j < n; ++j) {
              float& sum = expected[static_cast<std::size_t>(i * n + j)];
              sum = add_product(x, b[static_cast<std::size_t>(l * n + j)], sum);
            }
          }
        }
        multiply_add(c.data(), n, {a.data(), k, 1}, b.data(), n, m, n, k);
        multiply_add(other.data(), n, {transposed.data(), 1, m}, b.data(), n, m, n, k);
        CHECK(c == expected);
        CHECK(other == expected);
        // From zero with a factor at the end, and from what was there times a factor of its column.
        std::vector<float> factors(b.begin(),
                                   b.begin() + static_cast<std::ptrdiff_t>(k > 0 ? n : 0));
        factors.resize(static_cast<std::size_t>(n), 0.5f);
        std::vector<float> zeros(c.size()), scaled = begun;
        for (std::size_t e = 0; e < scaled.size(); ++e) {
          scaled[e] *= factors[e % static_cast<std::size_t>(n)];
        }
        std::vector<float> product = begun, rescaled = begun;
        multiply_add(zeros.data(), n, {a.data(), k, 1}, b.data(), n, m, n, k);
        multiply_add(scaled.data(), n, {a.data(), k, 1}, b.data(), n, m, n, k);
        for (float& x : zeros) x *= 0.75f;
        multiply({product.data(), n, {a.data(), k, 1}, b.data(), n, m, n, k}, 0.75f);
        scale_multiply_add({rescaled.data(), n, {transposed.data(), 1, m}, b.data(), n, m, n, k},
                           factors.data());
        CHECK(product == zeros);
        CHECK(rescaled == scaled);
      }
    }
  }
}

std::uint32_t bits_of(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Two numbers in bf16 as the kernels pair them.
std::uint32_t pair_of(float first, float second) {
  return bf16_from_float(first) | static_cast<std::uint32_t>(bf16_from_float(second)) << 16;
}

TEST_CASE("pairs are rounded to nearest even, NaN stays", "[cpu]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float all_ones = 0;  // the NaN that rounding up would carry beyond
  const std::uint32_t bits = 0x7fffffff;
  std::memcpy(&all_ones, &bits, sizeof bits);
  const float special[] = {0,         -0.0f,      1 + 0x1p-8f, 1 + 0x1.8p-7f, -1 - 0x1p-8f,
                           kInfinity, -kInfinity, 0x1.ffp127f, 0x1.fep127f,   all_ones,
                           -all_ones};
  Rng rng(7);
  for (const std::int64_t count : {0, 1, 2, 3, 8, 97}) {
    for (const std::int64_t columns : {1, 5, 16, 17, 48, 70}) {
      const std::int64_t stride = columns + 2;
      std::vector<float> rows(static_cast<std::size_t>(count * stride));
      for (std::size_t e = 0; e < rows.size(); ++e) {
        const bool is_special = e % 4 == 0;
        rows[e] =
            is_special ? special[e / 4 % std::size(special)] : static_cast<float>(rng.normal());
      }
      std::vector<float> apart(rows.size(), -1.0f), in_place = rows;
      pair_rows(rows.data(), stride, count, columns, apart.data());
      pair_rows(in_place.data(), stride, count, columns, in_place.data());
      const auto same = [](std::uint32_t got, float number) {
        const float x = float_from_bf16(static_cast<std::uint16_t>(got & 0xffff));
        const float wanted = float_from_bf16(bf16_from_float(number));
        return bits_of(x) == bits_of(wanted) || (std::isnan(x) && std::isnan(number));
      };
      for (std::int64_t r = 0; r < (count + 1) / 2; ++r) {
        for (std::int64_t c = 0; c < stride; ++c) {
          const auto at = static_cast<std::size_t>(r * stride + c),
                     first = at + static_cast<std::size_t>(r * stride);
          if (c >= columns) {
            CHECK(apart[at] == -1);
            continue;
          }
          INFO(count << " x " << columns << ", pair " << r << " column " << c);
          const std::uint32_t pair = bits_of(apart[at]);
          CHECK(same(pair, rows[first]));
          CHECK(same(pair >> 16,
                     2 * r + 1 < count ? rows[first + static_cast<std::size_t>(stride)] : 0));
          CHECK(bits_of(in_place[at]) == pair);
        }
      }
    }
  }
}

// Products of numbers in bf16 are exact in float32, so that the chain is the same whether it is
// fused or not.
TEST_CASE("a product in pairs is one chain, the second of each pair first", "[cpu]") {
  Rng rng(8);
  const auto number = [&] {
    return float_from_bf16(bf16_from_float(static_cast<float>(rng.normal())));
  };
  std::int64_t otherwise = 0;  // elements that the other order would give
  for (const std::int64_t m : {1, 4, 9, 23, 96}) {
    for (const std::int64_t n : {16, 32, 48, 64, 80}) {
      for (const std::int64_t k : {0, 1, 17, 64}) {
        std::vector<float> a(static_cast<std::size_t>(m * k)), across(a.size()),
            b(static_cast<std::size_t>(k * n)), begun(static_cast<std::size_t>(m * n)),
            factors(static_cast<std::size_t>(n));
        for (auto* list : {&begun, &factors}) {
          for (float& x : *list) x = static_cast<float>(rng.normal());
        }
        std::vector<float> first_a(a.size()), second_a(a.size()), first_b(b.size()),
            second_b(b.size());
        const auto fill = [&](std::vector<float>& pairs, std::vector<float>& first,
                              std::vector<float>& second) {
          for (std::size_t e = 0; e < pairs.size(); ++e) {
            first[e] = number(), second[e] = number();
            const std::uint32_t pair = pair_of(first[e], second[e]);
            std::memcpy(&pairs[e], &pair, sizeof pair);
          }
        };
        fill(a, first_a, second_a);
        fill(b, first_b, second_b);
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t l = 0; l < k; ++l) {
            std::memcpy(&across[static_cast<std::size_t>(l * m + i)],
                        &a[static_cast<std::size_t>(i * k + l)], sizeof(float));
          }
        }
        std::vector<float> product = begun, scaled = begun;
        multiply({product.data(), n, {a.data(), k, 1}, b.data(), n, m, n, k, true}, 0.75f);
        scale_multiply_add({scaled.data(), n, {across.data(), 1, m}, b.data(), n, m, n, k, true},
                           factors.data());
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            const auto at = static_cast<std::size_t>(i * n + j);
            float sum = 0, other = 0, onto = begun[at] * factors[static_cast<std::size_t>(j)];
            for (std::int64_t l = 0; l < k; ++l) {
              const auto of_a = static_cast<std::size_t>(i * k + l),
                         of_b = static_cast<std::size_t>(l * n + j);
              const float first = first_a[of_a] * first_b[of_b],
                          second = second_a[of_a] * second_b[of_b];
              sum = sum + second + first;
              other = other + first + second;
              onto = onto + second + first;
            }
            CHECK(product[at] == sum * 0.75f);
            CHECK(scaled[at] == onto);
            otherwise += other * 0.75f != product[at] ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(otherwise > 0);
}

TEST_CASE("subnormals vanish from products in pairs where the instruction flushes them", "[cpu]") {
  const auto product_of = [](float a, float b) {
    std::vector<float> pairs_of_b(16), product(16);
    const std::uint32_t pair_a = pair_of(a, 0), pair_b = pair_of(b, 0);
    float pairs_of_a = 0;
    std::memcpy(&pairs_of_a, &pair_a, sizeof pair_a);
    for (float& x : pairs_of_b) std::memcpy(&x, &pair_b, sizeof pair_b);
    multiply({product.data(), 16, {&pairs_of_a, 1, 1}, pairs_of_b.data(), 16, 1, 16, 1, true}, 1);
    return product[0];
  };
  const bool flushes = multiplies_pairs_at_once();
  CHECK(product_of(0x1p-130f, 0x1p10f) == (flushes ? 0 : 0x1p-120f));
  CHECK(product_of(0x1p-100f, 0x1p-30f) == (flushes ? 0 : 0x1p-130f));
  CHECK(product_of(0x1p-126f, 0x1p10f) == 0x1p-116f);
}

TEST_CASE("reductions add sixteen chains and pass over NaN in the maximum", "[cpu]") {
  Rng rng(2);
  for (const std::int64_t count : {0, 1, 15, 16, 17, 100}) {
    std::vector<float> x(static_cast<std::size_t>(count)), y = x;
    float sums[16] = {}, products[16] = {}, maximum = -1;
    for (std::size_t e = 0; e < x.size(); ++e) {
      x[e] = static_cast<float>(rng.normal()), y[e] = static_cast<float>(rng.normal());
      sums[e % 16] += x[e];
      products[e % 16] = add_product(x[e], y[e], products[e % 16]);
      maximum = std::max(maximum, x[e]);
    }
    for (float* lanes : {sums, products}) {
      for (int lane = 0; lane < 8; ++lane) lanes[lane] += lanes[lane + 8];
      for (int lane = 0; lane < 4; ++lane) lanes[lane] += lanes[lane + 4];
    }
    const float sum = (sums[0] + sums[2]) + (sums[1] + sums[3]),
                product = (products[0] + products[2]) + (products[1] + products[3]);
    CHECK(row_sum(x.data(), count) == sum);
    CHECK(dot(x.data(), y.data(), count) == product);
    CHECK(row_maximum(x.data(), count, -1) == maximum);
    if (count > 16) {  // a NaN, and the largest in the same chain
      x[0] = std::numeric_limits<float>::quiet_NaN(), x[16] = 9;
      CHECK(row_maximum(x.data(), count, -1) == 9);
    }
    for (float& value : x) value = std::numeric_limits<float>::quiet_NaN();
    CHECK(row_maximum(x.data(), count, -1) == -1);
  }
}

TEST_CASE("elements of 16 bits are widened exactly", "[cpu]") {
  std::vector<std::uint16_t> bits;
  for (std::uint32_t b = 0; b < 0x10000; b += 7) bits.push_back(static_cast<std::uint16_t>(b));
  std::vector<float> bf16(bits.size()), f16(bits.size());
  const auto count = static_cast<std::int64_t>(bits.size());
  widen_bf16(bits.data(), count, bf16.data());
  widen_f16(bits.data(), count, f16.data());
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (std::size_t e = 0; e < bits.size(); ++e) {
    INFO(bits[e]);
    CHECK(same(bf16[e], float_from_bf16(bits[e])));
    CHECK(same(f16[e], float_from_f16(bits[e])));
  }
}

TEST_CASE("rows are finite unless an element is not", "[cpu]") {
  for (const std::int64_t columns : {1, 15, 16, 17, 40}) {
    const std::int64_t stride = columns + 3, count = 4;
    std::vector<float> rows(static_cast<std::size_t>(stride * count), -3e38f);
    CHECK(all_finite(rows.data(), stride, count, columns));
    for (const float special :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      for (std::int64_t e = 0; e < stride * count; ++e) {
        auto spoiled = rows;
        spoiled[static_cast<std::size_t>(e)] = special;
        const bool is_element = e % stride < columns;
        CHECK(all_finite(spoiled.data(), stride, count, columns) == !is_element);
      }
    }
  }
}

}  // namespace
}  // namespace attest::cpu
