// Softmax of the peers, in every target of Highway.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "certify/bench/peers/lane_softmax.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "certify/bench/peers/lane_softmax.hpp"

HWY_BEFORE_NAMESPACE();
namespace attest::certify::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void update(const LaneSums& sums, std::int64_t keys, float* S) {
  constexpr hn::CappedTag<float, kLaneStep> kFloats;
  const auto width = static_cast<std::int64_t>(hn::Lanes(kFloats));
  const auto hidden = hn::Set(kFloats, -std::numeric_limits<float>::infinity());
  for (std::int64_t lane = 0; lane < sums.lanes; lane += width) {
    const auto before = hn::LoadU(kFloats, sums.m + lane);
    auto maximum = before;
    for (std::int64_t j = 0; j < keys; ++j) {
      maximum = hn::Max(hn::LoadU(kFloats, S + j * sums.lanes + lane), maximum);
    }
    hn::StoreU(maximum, kFloats, sums.m + lane);
    const auto shift = hn::IfThenZeroElse(hn::Eq(maximum, hidden), maximum);
    const auto rescale = hn::Exp(kFloats, hn::Sub(before, shift));
    auto sum = hn::Mul(hn::LoadU(kFloats, sums.l + lane), rescale);
    for (std::int64_t j = 0; j < keys; ++j) {
      float* const at = S + j * sums.lanes + lane;
      const auto p = hn::Exp(kFloats, hn::Sub(hn::LoadU(kFloats, at), shift));
      hn::StoreU(p, kFloats, at);
      sum = hn::Add(sum, p);
    }
    hn::StoreU(sum, kFloats, sums.l + lane);
    if (hn::AllTrue(kFloats, hn::Eq(rescale, hn::Set(kFloats, 1.0f)))) continue;
    for (std::int64_t c = 0; c < sums.columns; ++c) {
      float* const at = sums.O + c * sums.lanes + lane;
      hn::StoreU(hn::Mul(hn::LoadU(kFloats, at), rescale), kFloats, at);
    }
  }
}

}  // namespace attest::certify::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::certify {
namespace {

HWY_EXPORT(update);

}  // namespace

void update_lanes(const LaneSums& sums, std::int64_t keys, float* S) {
  HWY_DYNAMIC_DISPATCH(update)(sums, keys, S);
}

}  // namespace attest::certify
#endif
