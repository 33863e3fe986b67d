#pragma once

#include "gpu/simt/simt.hpp"

/// Maximum and sum of `width` neighbours in a warp, 2, 4, 8, 16 or 32, the same in all of them: by
/// __shfl_xor_sync with the lane width / 2 away, then half as far, down to the next one. All 32
/// lanes call them together. The emulation takes all steps in one meeting of the lanes, with the
/// values and diagnoses of the shuffles.
/// [gpu/simt/emulation_test "a butterfly is its shuffles"]
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

#ifdef __CUDACC__

__device__ inline float butterfly_max(float value, int width) {
  for (int bits = width / 2; bits > 0; bits /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0U, value, bits));
  }
  return value;
}
__device__ inline float butterfly_sum(float value, int width) {
  for (int bits = width / 2; bits > 0; bits /= 2) value += __shfl_xor_sync(~0U, value, bits);
  return value;
}

#else

inline float butterfly_max(float value, int width, Line where = Line::here()) {
  return butterfly(value, Joined::maximum, width, where);
}
inline float butterfly_sum(float value, int width, Line where = Line::here()) {
  return butterfly(value, Joined::sum, width, where);
}

#endif

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt
