#include "core/rng.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("philox4x32 known answers", "[rng]") {
  // Known-answer vectors of the paper's library (zeros, ones, digits of pi).
  using Block = std::array<std::uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
        Block{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  const std::uint32_t ones = 0xffffffffu;
  CHECK(philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
        Block{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  CHECK(philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                   {0xa4093822u, 0x299f31d0u}) ==
        Block{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("stream version 1 never changes", "[rng]") {
  REQUIRE(kStreamVersion == 1);
  Rng rng(1, 2);
  const std::uint64_t first = rng.bits64();
  const double second = rng.uniform();
  const double third = rng.normal();
  Rng again(1, 2);
  CHECK(again.bits64() == first);
  CHECK(again.uniform() == second);
  CHECK(again.normal() == third);
  const auto block = philox4x32({0, 0, 2, 0}, {1, 0});
  CHECK(first == ((std::uint64_t{block[0]} << 32) | block[1]));
}

// As drawn when version 1 was made; normal deviates as float32, for libraries' logarithms differ.
TEST_CASE("draws of stream version 1", "[rng]") {
  Rng rng(1, 2);
  CHECK(rng.bits64() == 0xe73404cf8cedc5d3u);
  CHECK(rng.uniform() == 0x1.f838b9b05057cp-3);
  CHECK(static_cast<float>(rng.normal()) == -0x1.703cp-1f);
  CHECK(static_cast<float>(rng.normal()) == 0x1.ce29p+0f);
  CHECK(rng.between(-1000, 1000) == -248);
  CHECK(rng.bits64() == 0x90746e5b09cd0158u);
  CHECK(mix(1, 2) == 0x89ec0da202fdf9fbu);
}

TEST_CASE("streams and seeds differ", "[rng]") {
  CHECK(Rng(1, 0).bits64() != Rng(1, 1).bits64());
  CHECK(Rng(1, 0).bits64() != Rng(2, 0).bits64());
  CHECK(mix(1, 2) != mix(2, 1));
}

TEST_CASE("between covers both ends and never leaves them", "[rng]") {
  Rng rng(7);
  bool low = false, high = false;
  for (int draw = 0; draw < 200; ++draw) {
    const auto value = rng.between(-2, 3);
    REQUIRE(value >= -2);
    REQUIRE(value <= 3);
    low = low || value == -2;
    high = high || value == 3;
  }
  CHECK(low);
  CHECK(high);
  CHECK(rng.between(5, 5) == 5);
  CHECK_THROWS_AS(rng.between(1, 0), InternalError);
}

TEST_CASE("normal has mean 0 and variance 1 within ten standard errors", "[rng]") {
  constexpr int draws = 20000;
  Rng rng(3);
  double sum = 0, square = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const double value = rng.normal();
    REQUIRE(std::abs(value) <= 6.0);
    sum += value;
    square += value * value;
  }
  const double standard_error = 1.0 / std::sqrt(double{draws});
  CHECK(std::abs(sum / draws) < 10 * standard_error);
  CHECK(std::abs(square / draws - 1.0) < 10 * std::sqrt(2.0) * standard_error);
}

}  // namespace
}  // namespace attest
