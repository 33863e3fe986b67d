#include "cpu/kernels/vectors/arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
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
