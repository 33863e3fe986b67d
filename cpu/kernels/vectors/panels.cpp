// Panels of scores, in every target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/vectors/panels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/lanes-inl.hpp"
#include "cpu/kernels/vectors/panels.hpp"
#include "cpu/kernels/vectors/target.hpp"

HWY_BEFORE_NAMESPACE();
namespace attest::cpu::HWY_NAMESPACE {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

static_assert(kPanelStep % kWidth == 0);

// -inf becomes 0, from which every difference is -inf again or NaN.
HWY_INLINE V shift_of(V maximum) {
  return hn::IfThenZeroElse(hn::Eq(maximum, set(kHidden)), maximum);
}

template <std::int64_t kVectors>
HWY_INLINE void update(std::int64_t keys, std::int64_t lanes, float* S, float* m, float* l,
                       float* rescale) {
  V maximum[kVectors], shift[kVectors], sum[kVectors];
  ATTEST_UNROLL
  for (std::int64_t v = 0; v < kVectors; ++v) maximum[v] = load(m + v * kWidth);
  for (std::int64_t j = 0; j < keys; ++j) {
    ATTEST_UNROLL
    for (std::int64_t v = 0; v < kVectors; ++v) {
      maximum[v] = larger(load(S + j * lanes + v * kWidth), maximum[v]);
    }
  }
  ATTEST_UNROLL
  for (std::int64_t v = 0; v < kVectors; ++v) {
    shift[v] = shift_of(maximum[v]);
    const V factor = exp2<false>(hn::Sub(load(m + v * kWidth), shift[v]));
    store(factor, rescale + v * kWidth);
    store(maximum[v], m + v * kWidth);
    sum[v] = hn::Mul(load(l + v * kWidth), factor);
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    ATTEST_UNROLL
    for (std::int64_t v = 0; v < kVectors; ++v) {
      float* const at = S + j * lanes + v * kWidth;
      const V p = exp2<false>(hn::Sub(load(at), shift[v]));
      store(p, at);
      sum[v] = hn::Add(sum[v], p);
    }
  }
  ATTEST_UNROLL
  for (std::int64_t v = 0; v < kVectors; ++v) store(sum[v], l + v * kWidth);
}

// visit(first lane) with so many vectors abreast, as a type's value, until all lanes have had one.
template <class Visit>
HWY_INLINE void for_lanes(std::int64_t lanes, const Visit& visit) {
  for (std::int64_t lane = 0; lane < lanes;) {
    const std::int64_t left = (lanes - lane) / kWidth;
    if (left >= 3 && left != 4) {
      visit(lane, std::integral_constant<std::int64_t, 3>());
      lane += 3 * kWidth;
    } else if (left >= 2) {
      visit(lane, std::integral_constant<std::int64_t, 2>());
      lane += 2 * kWidth;
    } else {
      visit(lane, std::integral_constant<std::int64_t, 1>());
      lane += kWidth;
    }
  }
}

template <std::int64_t kVectors>
HWY_INLINE void gradients(std::int64_t keys, std::int64_t lanes, const float* lse,
                          const float* delta, float factor, float* S, float* dP) {
  V shift[kVectors], less[kVectors];
  ATTEST_UNROLL
  for (std::int64_t v = 0; v < kVectors; ++v) {
    // Without a visible key: 2^(S - inf) = 0 for any S.
    const V of_lane = load(lse + v * kWidth);
    shift[v] = hn::IfThenElse(hn::Eq(of_lane, set(kHidden)), set(-kHidden), of_lane);
    less[v] = load(delta + v * kWidth);
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    ATTEST_UNROLL
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const std::int64_t at = j * lanes + v * kWidth;
      const V p = exp2<true>(hn::Sub(load(S + at), shift[v]));
      store(p, S + at);
      const V difference = hn::Sub(load(dP + at), less[v]);
      store(hn::Mul(set(factor), hn::Mul(p, difference)), dP + at);
    }
  }
}

struct Panels {
  static void hide_pairs(const LaneSpans& spans, std::int64_t keys, std::int64_t lanes, float* S) {
    for (std::int64_t lane = 0; lane < lanes; lane += kWidth) {
      const auto begin = hn::LoadU(kIntegers, spans.begin + lane);
      const auto end = hn::LoadU(kIntegers, spans.end + lane);
      for (std::int64_t j = 0; j < keys; ++j) {
        const auto key = hn::Set(kIntegers, static_cast<std::int32_t>(j));
        const auto hidden = hn::Or(hn::Lt(key, begin), hn::Not(hn::Lt(key, end)));
        float* const at = S + j * lanes + lane;
        store(hn::IfThenElse(hn::RebindMask(kFloats, hidden), set(kHidden), load(at)), at);
      }
    }
  }

  static void update_panel(std::int64_t keys, std::int64_t lanes, float* S, float* m, float* l,
                           float* rescale) {
    for_lanes(lanes, [&](std::int64_t lane, auto vectors) HWY_ATTR {
      update<vectors()>(keys, lanes, S + lane, m + lane, l + lane, rescale + lane);
    });
  }

  static void gradient_panel(std::int64_t keys, std::int64_t lanes, const float* lse,
                             const float* delta, float factor, float* S, float* dP) {
    for_lanes(lanes, [&](std::int64_t lane, auto vectors) HWY_ATTR {
      gradients<vectors()>(keys, lanes, lse + lane, delta + lane, factor, S + lane, dP + lane);
    });
  }
};

PanelFunctions panels() {
  return {Panels::hide_pairs, Panels::update_panel, Panels::gradient_panel};
}

}  // namespace attest::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::cpu {
namespace {

HWY_EXPORT(panels);

const PanelFunctions& functions() {
  static const PanelFunctions all = ATTEST_ON_TARGET(panels)();
  return all;
}

}  // namespace

void pack_panel(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                std::int64_t lanes, float* panel) {
  transpose(rows, stride, count, columns, panel, lanes);
  clear_lanes(count, columns, lanes, panel);
}

void clear_lanes(std::int64_t count, std::int64_t columns, std::int64_t lanes, float* panel) {
  for (std::int64_t c = 0; c < columns && count < lanes; ++c) {
    std::fill(panel + c * lanes + count, panel + (c + 1) * lanes, 0.0f);
  }
}

void unpack_panel(const float* panel, std::int64_t lanes, std::int64_t count, std::int64_t columns,
                  float* rows, std::int64_t stride) {
  transpose(panel, lanes, columns, count, rows, stride);
}

void hide_pairs(const LaneSpans& spans, std::int64_t keys, std::int64_t lanes, float* S) {
  functions().hide_pairs(spans, keys, lanes, S);
}

void update_panel(std::int64_t keys, std::int64_t lanes, float* S, float* m, float* l,
                  float* rescale) {
  functions().update_panel(keys, lanes, S, m, l, rescale);
}

void gradient_panel(std::int64_t keys, std::int64_t lanes, const float* lse, const float* delta,
                    float factor, float* S, float* dP) {
  functions().gradient_panel(keys, lanes, lse, delta, factor, S, dP);
}

}  // namespace attest::cpu
#endif
