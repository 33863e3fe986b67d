#include "cpu/kernels/vectors/panels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"

namespace attest::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> floats(std::int64_t count, float value = 0) {
  return std::vector<float>(static_cast<std::size_t>(count), value);
}

TEST_CASE("powers of two are within two ulp in every lane", "[cpu][panels]") {
  double worst = 0;
  constexpr std::int64_t kKeys = 40000;
  for (const std::int64_t lanes : {16, 32, 48, 64}) {
    std::vector<float> S = floats(kKeys * lanes), m = floats(lanes), l = floats(lanes),
                       rescale = floats(lanes);
    Rng rng(static_cast<std::uint64_t>(lanes));
    for (float& s : S) s = -static_cast<float>(rng.uniform() * 125.9);
    const std::vector<float> t = S;
    update_panel(kKeys, lanes, S.data(), m.data(), l.data(), rescale.data());
    for (std::size_t e = 0; e < S.size(); ++e) {
      const double exact = std::exp2(static_cast<double>(t[e]));
      int exponent = 0;
      std::frexp(exact, &exponent);
      worst = std::max(
          worst, std::abs(static_cast<double>(S[e]) - exact) / std::ldexp(1.0, exponent - 24));
    }
    for (const float factor : rescale) CHECK(factor == 1);
  }
  std::printf("power of two: worst error %.2f ulp\n", worst);
  CHECK(worst <= Numerics{}.exp_ulps);  // what kernels that declare nothing keep
}

TEST_CASE("a tile of scores enters the sums of its lanes", "[cpu][panels]") {
  constexpr std::int64_t kKeys = 5, kLanes = 48;
  std::vector<float> S = floats(kKeys * kLanes, -1), m = floats(kLanes, 0), l = floats(kLanes, 2),
                     rescale = floats(kLanes);
  const auto score = [&](std::int64_t key, std::int64_t lane) -> float& {
    return S[static_cast<std::size_t>(key * kLanes + lane)];
  };
  for (std::int64_t key = 0; key < kKeys; ++key) {
    score(key, 1) = -kInfinity;  // hidden
    score(key, 2) = -kInfinity;
    score(key, 4) = -200;  // too small to weigh anything
  }
  m[2] = -kInfinity, l[2] = 0;  // no key yet
  score(3, 3) = 2;              // the maximum rises
  score(3, 5) = kNan;
  update_panel(kKeys, kLanes, S.data(), m.data(), l.data(), rescale.data());
  CHECK((m[0] == 0 && l[0] == 2 + 5 * 0.5f && rescale[0] == 1 && score(0, 0) == 0.5f));
  CHECK((m[1] == 0 && l[1] == 2 && rescale[1] == 1 && score(0, 1) == 0));
  CHECK((m[2] == -kInfinity && l[2] == 0 && rescale[2] == 0 && score(4, 2) == 0));
  CHECK((m[3] == 2 && rescale[3] == 0.25f && score(3, 3) == 1));
  CHECK(l[3] == 2 * 0.25f + 4 * 0.125f + 1);
  CHECK((l[4] == 2 && score(0, 4) == 0));
  CHECK((m[5] == 0 && std::isnan(l[5]) && std::isnan(score(3, 5)) && score(2, 5) == 0.5f));
}

TEST_CASE("pairs outside the spans of lanes are hidden", "[cpu][panels]") {
  constexpr std::int64_t kKeys = 7;
  for (const std::int64_t lanes : {16, 48, 64}) {
    std::vector<std::int32_t> begin(static_cast<std::size_t>(lanes)), end = begin;
    for (std::size_t lane = 0; lane < begin.size(); ++lane) {
      begin[lane] = static_cast<std::int32_t>(lane % 4);
      end[lane] = static_cast<std::int32_t>(lane % 9);
    }
    std::vector<float> S = floats(kKeys * lanes, 3);
    hide_pairs({begin.data(), end.data()}, kKeys, lanes, S.data());
    for (std::int64_t key = 0; key < kKeys; ++key) {
      for (std::size_t lane = 0; lane < begin.size(); ++lane) {
        const bool seen = key >= begin[lane] && key < end[lane];
        CHECK(S[static_cast<std::size_t>(key * lanes) + lane] == (seen ? 3 : -kInfinity));
      }
    }
  }
}

TEST_CASE("gradients of scores, and none of lanes without keys", "[cpu][panels]") {
  constexpr std::int64_t kKeys = 3, kLanes = 32;
  std::vector<float> S = floats(kKeys * kLanes, 1), dP = floats(kKeys * kLanes, 5),
                     lse = floats(kLanes, 3), delta = floats(kLanes, 1);
  lse[1] = -kInfinity;
  S[2] = -kInfinity, S[3] = 200;
  gradient_panel(kKeys, kLanes, lse.data(), delta.data(), 0.5f, S.data(), dP.data());
  CHECK((S[0] == 0.25f && dP[0] == 0.5f));
  CHECK((S[1] == 0 && dP[1] == 0));
  CHECK((S[2] == 0 && dP[2] == 0));
  CHECK(S[3] == kInfinity);
}

TEST_CASE("panels are packed and unpacked", "[cpu][panels]") {
  for (const std::int64_t count : {1, 15, 16, 33, 48, 64}) {
    constexpr std::int64_t kColumns = 7, kStride = 9;
    const std::int64_t lanes = lanes_for(count);
    CHECK((lanes >= count && lanes < count + kPanelStep));
    std::vector<float> rows = floats(count * kStride), panel = floats(kColumns * lanes, kNan),
                       back = rows;
    for (std::size_t e = 0; e < rows.size(); ++e) rows[e] = static_cast<float>(e + 1);
    pack_panel(rows.data(), kStride, count, kColumns, lanes, panel.data());
    for (std::int64_t c = 0; c < kColumns; ++c) {
      for (std::int64_t r = 0; r < lanes; ++r) {
        const float expected = r < count ? rows[static_cast<std::size_t>(r * kStride + c)] : 0;
        CHECK(panel[static_cast<std::size_t>(c * lanes + r)] == expected);
      }
    }
    unpack_panel(panel.data(), lanes, count, kColumns, back.data(), kStride);
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t c = 0; c < kStride; ++c) {
        const auto e = static_cast<std::size_t>(r * kStride + c);
        CHECK(back[e] == (c < kColumns ? rows[e] : 0));
      }
    }
  }
}

}  // namespace
}  // namespace attest::cpu
