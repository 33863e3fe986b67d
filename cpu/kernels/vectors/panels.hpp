#pragma once

#include <cstdint>

/// Panels of queries: what belongs to one query stands in one lane of the vectors, so that softmax
/// needs no sums across lanes. A panel of a matrix has a row of `lanes` floats for each of its
/// columns; lanes are a multiple of kPanelStep. Scores are in units of log2: score log2(e).
namespace attest::cpu {

inline constexpr std::int64_t kPanelStep = 16, kPanelLanes = 48;

/// The most lanes of a panel where the rows of a tile are to be one panel.
inline constexpr std::int64_t kMostLanes = 64;

/// Queries that fill so few lanes that products along keys and columns take less time; products
/// with so few columns have their rows in the lanes.
inline constexpr std::int64_t kFewLanes = 8;

/// Returns the lanes of a panel for so many queries: a multiple of kPanelStep.
constexpr std::int64_t lanes_for(std::int64_t queries) {
  return (queries + kPanelStep - 1) / kPanelStep * kPanelStep;
}

/// panel(c, r) = rows(r, c), 0 in lanes from `count` on.
void pack_panel(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t columns,
                std::int64_t lanes, float* panel);

/// panel(c, r) = 0 in lanes from `count` on.
void clear_lanes(std::int64_t count, std::int64_t columns, std::int64_t lanes, float* panel);

/// rows(r, c) = panel(c, r) for the first `count` lanes.
void unpack_panel(const float* panel, std::int64_t lanes, std::int64_t count, std::int64_t columns,
                  float* rows, std::int64_t stride);

/// Keys of a block that the query of a lane sees: begin .. end - 1.
struct LaneSpans {
  const std::int32_t *begin, *end;
};

/// S(keys, lanes) becomes -inf where the lane's query does not see the key.
void hide_pairs(const LaneSpans& spans, std::int64_t keys, std::int64_t lanes, float* S);

/// Takes a tile of scores S(keys, lanes) into m and l of the lanes: S becomes 2^(S - m), l the sum
/// over the keys in ascending order, and `rescale` what O of before is to be multiplied by. NaN is
/// passed over in m. 2^t is within 2 ulp, 1 at 0 and 0 below 2^-126.
/// [cpu/kernels/vectors/panels_test]
void update_panel(std::int64_t keys, std::int64_t lanes, float* S, float* m, float* l,
                  float* rescale);

/// S(keys, lanes) becomes P = 2^(S - lse), 0 in lanes where lse is -inf, and dP becomes
/// dS = factor P (dP - delta).
void gradient_panel(std::int64_t keys, std::int64_t lanes, const float* lse, const float* delta,
                    float factor, float* S, float* dP);

/// The functions of one target.
struct PanelFunctions {
  void (*hide_pairs)(const LaneSpans&, std::int64_t, std::int64_t, float*);
  void (*update_panel)(std::int64_t, std::int64_t, float*, float*, float*, float*);
  void (*gradient_panel)(std::int64_t, std::int64_t, const float*, const float*, float, float*,
                         float*);
};

}  // namespace attest::cpu
