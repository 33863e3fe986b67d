#include "certify/bench/arithmetic_peak.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/vector_clones.hpp"

namespace attest::certify {
namespace {

constexpr int kLanes = 16;

// `chains` independent vectors of kLanes; enough of them hide the latency of one step.
template <int chains>
ATTEST_INLINE_CLONE float run_chains(std::int64_t steps, float factor, float term) {
  float sum[chains][kLanes];
  for (int r = 0; r < chains; ++r) {
    for (int c = 0; c < kLanes; ++c) sum[r][c] = static_cast<float>(r + c);
  }
  for (std::int64_t s = 0; s < steps; ++s) {
    for (int r = 0; r < chains; ++r) {
      for (int c = 0; c < kLanes; ++c) sum[r][c] = sum[r][c] * factor + term;
    }
  }
  float total = 0;
  for (int r = 0; r < chains; ++r) {
    for (int c = 0; c < kLanes; ++c) total += sum[r][c];
  }
  return total;
}

ATTEST_VECTOR_CLONES float few_chains(std::int64_t steps, float factor, float term) {
  return run_chains<6>(steps, factor, term);
}

ATTEST_VECTOR_CLONES float many_chains(std::int64_t steps, float factor, float term) {
  return run_chains<12>(steps, factor, term);
}

double flops_of(float (*work)(std::int64_t, float, float), int chains) {
  constexpr std::int64_t kSteps = 200000;
  const auto start = std::chrono::steady_clock::now();
  const volatile float result = work(kSteps, 0x1.fp-1f, 1.0f);
  static_cast<void>(result);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return 2.0 * static_cast<double>(kSteps) * chains * kLanes / elapsed.count();
}

}  // namespace

double arithmetic_peak_flops() {
  return std::max(flops_of(few_chains, 6), flops_of(many_chains, 12));
}

}  // namespace attest::certify
