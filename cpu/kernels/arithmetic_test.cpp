#include "cpu/kernels/arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"

namespace attest::cpu {
namespace {

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
  CHECK(worst <= 2);
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
  for (const std::int64_t m : {1, 3, 4, 9}) {
    for (const std::int64_t n : {1, 8, 23, 31, 32, 57, 70}) {
      for (const std::int64_t k : {0, 1, 17, 256, 600}) {
        std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
            c(static_cast<std::size_t>(m * n)), transposed(a.size());
        for (auto* list : {&a, &b, &c}) {
          for (float& x : *list) x = static_cast<float>(rng.normal());
        }
        std::vector<float> expected = c, other = c;
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t l = 0; l < k; ++l) {
            const float x = a[static_cast<std::size_t>(i * k + l)];
            transposed[static_cast<std::size_t>(l * m + i)] = x;
            for (std::int64_t j = 0; j < n; ++j) {
              expected[static_cast<std::size_t>(i * n + j)] +=
                  x * b[static_cast<std::size_t>(l * n + j)];
            }
          }
        }
        multiply_add(c.data(), n, {a.data(), k, 1}, b.data(), n, m, n, k);
        multiply_add(other.data(), n, {transposed.data(), 1, m}, b.data(), n, m, n, k);
        CHECK(c == expected);
        CHECK(other == expected);
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
      products[e % 16] += x[e] * y[e];
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
    for (float& value : x) value = std::numeric_limits<float>::quiet_NaN();
    CHECK(row_maximum(x.data(), count, -1) == -1);
  }
}

}  // namespace
}  // namespace attest::cpu
