#include "core/features/bias.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/problem.hpp"
#include "core/tensor.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("biases are spelled", "[bias]") {
  for (const char* text :
       {"bhqk_drawn_7", "1_drawn_0", "k_f32_holes_3", "hq_drawn_18446744073709551615"}) {
    CHECK(Bias::parse(text).to_string() == text);
    const std::string problem = std::string("hq=2,sq=3,d=4,bias=") + text;
    CHECK_THAT(Problem::parse(problem).to_string(), Catch::Contains(std::string("bias=") + text));
  }
  CHECK(Bias::parse("none") == Bias{});
}

TEST_CASE("texts that are no bias are refused with what is needed", "[bias]") {
  for (const auto& [text, why] :
       {std::pair("", "names no axes"), std::pair("drawn_7", "begins with 'drawn'"),
        std::pair("qh_drawn_7", "begins with 'qh'"), std::pair("hh_drawn_7", "begins with 'hh'"),
        std::pair("hqk", "has '' where its values must be named"),
        std::pair("hqk_bf16_drawn_7", "has 'bf16' where its values must be named"),
        std::pair("hqk_drawn", "needs a seed"), std::pair("hqk_drawn_x", "needs a seed"),
        std::pair("hqk_drawn_18446744073709551616", "needs a seed")}) {
    INFO(text);
    CHECK_THROWS_WITH(Bias::parse(text), Catch::Contains(why));
    CHECK_THROWS_WITH(Bias::parse(text), Catch::Contains("bias=bhqk_drawn_7"));
  }
  CHECK_THROWS_WITH(Problem::parse("b=64,hq=64,sq=64,sk=65,d=1,bias=k_drawn_1"),
                    Catch::Contains("more than 2^24 pairs"));
}

// Counts the pairs of indices at which the value differs along an axis.
int differing(const Bias& bias, std::size_t axis) {
  int count = 0;
  for (std::int64_t n = 0; n < 81; ++n) {
    std::array<std::int64_t, 4> at{n / 27 % 3, n / 9 % 3, n / 3 % 3, n % 3}, other = at;
    ++other[axis];
    const double a = bias(DType::f32, at[0], at[1], at[2], at[3]),
                 b = bias(DType::f32, other[0], other[1], other[2], other[3]);
    count += a != b ? 1 : 0;
  }
  return count;
}

TEST_CASE("a bias differs everywhere along its axes and nowhere along others", "[bias]") {
  for (const char* text : {"bhqk_drawn_1", "bq_drawn_2", "hk_drawn_3", "1_drawn_4", "k_drawn_5"}) {
    INFO(text);
    const Bias bias = Bias::parse(text);
    for (std::size_t axis = 0; axis < 4; ++axis) {
      CHECK(differing(bias, axis) == (bias.axes[axis] ? 81 : 0));
    }
  }
}

TEST_CASE("values of a bias are numbers of its type, with holes where they are asked for",
          "[bias]") {
  int holes = 0, rows = 0, finite = 0;
  const Bias drawn = Bias::parse("bhqk_drawn_9"), with = Bias::parse("bhqk_holes_9");
  for (std::int64_t i = 0; i < 200; ++i) {
    int seen = 0;
    for (std::int64_t j = 0; j < 40; ++j) {
      const double value = drawn(DType::bf16, 1, 2, i, j);
      CHECK(value == round_to(DType::bf16, value));
      CHECK(std::abs(value) <= 16);
      const double other = with(DType::bf16, 1, 2, i, j);
      if (std::isinf(other)) {
        CHECK(other < 0);
        ++holes;
      } else {
        CHECK(other == value);
        ++finite;
        ++seen;
      }
    }
    rows += seen == 0 ? 1 : 0;
  }
  CHECK(holes > 0);
  CHECK(finite > holes);
  CHECK(rows > 0);
}

Problem given(std::vector<double> values, std::array<std::int64_t, 4> extents) {
  Problem p = Problem::parse("b=2,hq=2,sq=1,sk=3,d=1,bias=hk_drawn_1");
  p.bias.kind = Bias::Kind::given;
  p.bias.given = std::make_shared<const GivenBias>(GivenBias{extents, std::move(values)});
  return p;
}

TEST_CASE("biases that are given have the extents of the problem and no NaN", "[bias]") {
  const Problem right = given({0, 1, 2, 3, 4, -INFINITY}, {1, 2, 1, 3});
  CHECK_NOTHROW(right.validate());
  CHECK(right.bias_at(1, 1, 0, 1) == 4);
  CHECK_THAT(right.to_string(), Catch::Contains("bias=hk_given"));
  CHECK_THROWS_WITH(given({0, 1, 2}, {1, 2, 1, 3}).validate(),
                    Catch::Contains("3 values are given"));
  CHECK_THROWS_WITH(given({0, 1, 2, 3}, {1, 2, 1, 2}).validate(),
                    Catch::Contains("seqlen_k is 2; it must be 3"));
  CHECK_THROWS_WITH(given({0, 1, 2, 3, NAN, 5}, {1, 2, 1, 3}).validate(),
                    Catch::Contains("a value is nan"));
  CHECK_THROWS_WITH(given({0, 1, 2, 3, INFINITY, 5}, {1, 2, 1, 3}).validate(),
                    Catch::Contains("a value is inf"));
}

}  // namespace
}  // namespace attest
