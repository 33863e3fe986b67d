#include "cpu/kernels/nonfinite/special_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu/kernels/bias.hpp"

namespace attest::cpu {
namespace {

// The exponent of NaN and infinities is the largest.
bool any_special(const float* V, std::int64_t count) {
  constexpr std::uint32_t kWithoutSign = 0x7fffffff, kInfinity = 0x7f800000;
  std::uint32_t largest = 0;
  for (std::int64_t e = 0; e < count; ++e) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(V[e]) & kWithoutSign);
  }
  return largest >= kInfinity;
}

bool sees(const attest_problem& problem, const Batch& batch, std::int64_t head, std::int64_t i,
          std::int64_t j) {
  const KeySpan span = visible_keys(problem, batch, i);
  if (j < span.begin || j >= span.end) return false;
  if (!shown_to_head(problem, batch, head, i, j)) return false;
  return problem.mask.boolean == nullptr || problem.mask.boolean[i * problem.seqlen_k + j] != 0;
}

}  // namespace

std::vector<SpecialValue> take_special_values(float* V, std::int64_t keys, std::int64_t columns) {
  std::vector<SpecialValue> special;
  if (!any_special(V, keys * columns)) return special;
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

void add_special_values(const attest_forward_args& args, std::int64_t b, const Batch& batch,
                        const ScoreBlock& block, const std::vector<SpecialValue>& special,
                        const float* P, std::int64_t columns, float* O) {
  for (std::int64_t r = 0; r < block.rows; ++r) {
    for (const SpecialValue& one : special) {
      const std::int64_t query = block.first + r, key = block.key + one.key;
      if (!sees(*args.problem, batch, block.head, query, key)) continue;
      if (args.bias != nullptr && hides(*args.bias, b, block.head, query, key)) continue;
      O[r * columns + one.column] += P[r * block.keys + one.key] * one.value;
    }
  }
}

}  // namespace attest::cpu
