#pragma once

#include <cstdint>

namespace attest::certify {

/// Online softmax of scores whose queries lie in the lanes of vectors, by Highway's exponential.
/// S(keys, lanes) becomes exp(S - m) for the new maxima m, l their sums; O(columns, lanes) is
/// multiplied by what the old maxima were too small. -inf stands for a hidden pair. `lanes` is a
/// multiple of kLaneStep.
inline constexpr std::int64_t kLaneStep = 16;

struct LaneSums {
  float *O, *m, *l;
  std::int64_t columns, lanes;
};

void update_lanes(const LaneSums& sums, std::int64_t keys, float* S);

}  // namespace attest::certify
