#include "cpu/kernels/kernel.hpp"

#include "core/dtype/dtype_range.hpp"
#include "core/features/score_features.hpp"

namespace attest::cpu {

attest_description common_description(const char* name, const char* summary, const char* schedule) {
  attest_description description{};
  description.struct_size = sizeof description;
  description.name = name;
  description.summary = summary;
  description.device = ATTEST_CPU;
  description.directions = ATTEST_FORWARD | ATTEST_BACKWARD;
  description.dtypes = dtypes_in_float32();
  description.features = ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_WINDOW |
                         ATTEST_KEY_LENGTHS | ATTEST_PACKED_SEQUENCES | ATTEST_BOOLEAN_MASK |
                         ATTEST_GQA | ATTEST_HEAD_DIM_V | score_feature_claims() |
                         ATTEST_ANY_SCALE | ATTEST_ANY_STRIDES | ATTEST_LSE | ATTEST_DLSE |
                         ATTEST_CROSS_LENGTHS | ATTEST_EMPTY_ROWS | ATTEST_LAYOUT_BITS;
  description.empty_row = ATTEST_ZERO_NEG_INF;
  description.numerics.struct_size = sizeof description.numerics;
  description.schedule = schedule;
  return description;
}

attest_status supported(const attest_problem& problem) {
  return (dtypes_in_float32() & 1u << problem.dtype) != 0 ? ATTEST_OK : ATTEST_UNSUPPORTED;
}

}  // namespace attest::cpu
