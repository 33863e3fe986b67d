#include "cpu/kernels/arithmetic.hpp"

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
    const float t = -87.33f * static_cast<float>(step) / static_cast<float>(kSteps);
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
  float values[4] = {3.0f, -std::numeric_limits<float>::infinity(), 3.0f - 88.0f,
                     std::numeric_limits<float>::quiet_NaN()};
  exp_shifted(values, 4, 3.0f);
  CHECK(values[0] == 1.0f);
  CHECK(values[1] == 0.0f);
  CHECK(values[2] == 0.0f);
  CHECK(std::isnan(values[3]));
}

TEST_CASE("product is one ascending chain for every shape and stride", "[cpu]") {
  Rng rng(1);
  for (const std::int64_t m : {1, 3, 4, 9}) {
    for (const std::int64_t n : {1, 31, 32, 70}) {
      for (const std::int64_t k : {0, 1, 17}) {
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

}  // namespace
}  // namespace attest::cpu
