// Strassen's multiplication for the scores: what it moves outside fast memory and within.
#include "certify/reproduce/claims/multiplication_words.hpp"

namespace attest::certify {
namespace {

Findings run(const Laboratory& lab) {
  constexpr std::int64_t kHeadDim = 64;
  const std::int64_t rows = lab.effort == Effort::smoke ? 1024 : 4096;
  return multiplication_words(rows, kHeadDim, counted_multipliers());
}

}  // namespace

Experiment fast_multiplication_experiment() {
  return {"fast_multiplication", "fast matrix multiplication", {}, run, 8};
}

}  // namespace attest::certify
