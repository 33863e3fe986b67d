#include "certify/bench/arithmetic_peak.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/vector_clones.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

#if defined(__x86_64__)

// As many as the registers hold, and more than the latency of one step needs.
constexpr int kFusedChains = 12;

__attribute__((target("avx2,fma"))) float fused_chains_256(std::int64_t steps, float factor,
                                                           float term) {
  const __m256 by = _mm256_set1_ps(factor), and_then = _mm256_set1_ps(term);
  __m256 sum[kFusedChains];
  for (__m256& one : sum) one = and_then;
  for (std::int64_t s = 0; s < steps; ++s) {
    for (__m256& one : sum) one = _mm256_fmadd_ps(one, by, and_then);
  }
  __m256 total = sum[0];
  for (const __m256& one : sum) total = _mm256_add_ps(total, one);
  return _mm256_cvtss_f32(total);
}

__attribute__((target("avx512f"))) float fused_chains_512(std::int64_t steps, float factor,
                                                          float term) {
  const __m512 by = _mm512_set1_ps(factor), and_then = _mm512_set1_ps(term);
  __m512 sum[kFusedChains];
  for (__m512& one : sum) one = and_then;
  for (std::int64_t s = 0; s < steps; ++s) {
    for (__m512& one : sum) one = _mm512_fmadd_ps(one, by, and_then);
  }
  __m512 total = sum[0];
  for (const __m512& one : sum) total = _mm512_add_ps(total, one);
  return _mm512_cvtss_f32(total);
}

#endif

double fused_peak_flops() {
  double best = 0;
#if defined(__x86_64__)
  // A vector of 256 bits is half a chain.
  if (__builtin_cpu_supports("fma")) best = flops_of(fused_chains_256, kFusedChains) / 2;
  if (__builtin_cpu_supports("avx512f")) {
    best = std::max(best, flops_of(fused_chains_512, kFusedChains));
  }
#endif
  return best;
}

}  // namespace

double arithmetic_peak_flops() {
  return std::max({flops_of(few_chains, 6), flops_of(many_chains, 12), fused_peak_flops()});
}

std::optional<double> arithmetic_ceiling_flops() {
#if defined(__x86_64__)
  constexpr int kSamples = 50;  // of about 20 ms
  double best = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    best = std::max(best, arithmetic_peak_flops());
  }
  return best;
#else
  return std::nullopt;
#endif
}

}  // namespace attest::certify
