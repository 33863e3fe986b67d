#include "cpu/kernels/nonfinite/special_values.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/kernels/tiles/bias.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"

namespace attest::cpu {
namespace {

bool sees(const attest_problem& problem, const Batch& batch, std::int64_t head, std::int64_t i,
          std::int64_t j) {
  const KeySpan span = visible_keys(problem, batch, i);
  if (j < span.begin || j >= span.end) return false;
  if (!shown_to_head(problem, batch, head, i, j)) return false;
  return problem.mask.boolean == nullptr || problem.mask.boolean[i * problem.seqlen_k + j] != 0;
}

}  // namespace

bool has_special_values(const RowsView& V, std::int64_t keys, std::int64_t columns) {
  return !all_finite(V.data, V.stride, keys, columns);
}

std::vector<SpecialValue> take_special_values(float* V, std::int64_t keys, std::int64_t columns) {
  std::vector<SpecialValue> special;
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t c = 0; c < columns; ++c) {
      float& value = V[j * columns + c];
      if (std::isfinite(value)) continue;
      special.push_back({j, c, value});
      value = 0;
    }
  }
  return special;
}

void add_special_values(const attest_forward_args& args, const Batch& batch,
                        const std::vector<SpecialValue>& special, const SpecialRow& row) {
  for (const SpecialValue& one : special) {
    const std::int64_t key = row.first_key + one.key;
    if (!sees(*args.problem, batch, row.head, row.query, key)) continue;
    if (args.bias != nullptr && hides(*args.bias, batch.number, row.head, row.query, key)) continue;
    row.O[one.column * row.column_stride] += row.P[one.key * row.key_stride] * one.value;
  }
}

}  // namespace attest::cpu
