// The experiment that reviewers asked for, in Triton: a small fast memory is a small tile.
#include "certify/reproduce/claims/triton_words.hpp"

namespace attest::certify {
namespace {

Findings run(const Laboratory& lab) {
  return triton_words(lab.schedules, parse_triton_words(recorded_triton_words()));
}

}  // namespace

Experiment triton_io_experiment() {
  return {"triton_io", "a flash attention in Triton, its words counted as compiled", {}, run, 18};
}

}  // namespace attest::certify
