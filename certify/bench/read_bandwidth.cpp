#include "certify/bench/read_bandwidth.hpp"

#include <omp.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "core/vector_clones.hpp"

namespace attest::certify {
namespace {

// Sums in as many chains as hide the latency of an addition.
ATTEST_VECTOR_CLONES
std::uint64_t sum_of(const std::uint64_t* words, std::int64_t count) {
  constexpr std::int64_t kChains = 32;
  std::uint64_t sums[kChains] = {};
  for (std::int64_t i = 0; i + kChains <= count; i += kChains) {
    for (std::int64_t c = 0; c < kChains; ++c) sums[c] += words[i + c];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t one : sums) sum += one;
  return sum;
}

}  // namespace

double read_bandwidth(std::int32_t threads) {
  constexpr std::int64_t kWords = std::int64_t{1} << 25;
  static const std::vector<std::uint64_t> words(kWords, 1);
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t total = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : total)
  for (std::int64_t part = 0; part < threads; ++part) {
    const std::int64_t first = part * kWords / threads, end = (part + 1) * kWords / threads;
    total += sum_of(words.data() + first, end - first);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const volatile std::uint64_t used = total;
  static_cast<void>(used);
  return 8.0 * static_cast<double>(kWords) / elapsed.count();
}

}  // namespace attest::certify
