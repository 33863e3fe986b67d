#include "certify/bench/watched_calls.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/truth.hpp"

namespace attest::certify {
namespace {

using proptest::Direction;

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](const Tensor& x, const Tensor& y) {
    return std::memcmp(x.view().data(), y.view().data(), bytes_of(x)) == 0;
  });
}

}  // namespace

WatchedCalls::WatchedCalls(const attest_kernel& kernel, const Problem& problem, Direction direction,
                           std::int32_t threads, int rounds, std::uint64_t seed)
    : kernel_(kernel),
      problem_(problem),
      direction_(direction),
      seed_(seed),
      operands_(problem, threads, kernel.description.features) {
  // Never of the first values: results that are kept from the first call are those.
  Rng rng(seed, 2);
  do {
    chosen_ = static_cast<int>(rng.between(0, rounds - 1));
  } while (set_of(chosen_) == set_of(-1));
  for (std::size_t set = 0; set < kSets; ++set) {
    operands_.fill(values(set));
    if (direction == Direction::backward) {
      require_done(operands_.call(kernel, Direction::forward), kernel, problem);
    }
    inputs_[set] = operands_.inputs(direction);
  }
}

proptest::InputValues WatchedCalls::values(std::size_t set) const {
  return proptest::make_values(problem_, proptest::Values::normal, mix(seed_, set));
}

void WatchedCalls::prepare(int round) {
  operands_.set_inputs(inputs_[set_of(round)], direction_);
  operands_.poison(direction_);
}

void WatchedCalls::look(int round) {
  std::vector<Tensor> outputs = operands_.outputs(direction_);
  if (round == chosen_) judged_ = outputs;
  std::vector<Tensor>& first = outputs_[set_of(round)];
  if (first.empty()) {
    first = std::move(outputs);
    return;
  }
  if (!differs_.empty() || kernel_.description.numerics.nondeterministic != 0) return;
  if (same_bits(first, outputs)) return;
  differs_ = "timed call " + std::to_string(round + 1) +
             " gave other bits than an earlier one of the same values";
}

std::string WatchedCalls::objection() const {
  attest_description description = kernel_.description;
  description.features &= ~static_cast<std::uint32_t>(ATTEST_DLSE);  // none is passed
  const std::size_t set = set_of(chosen_);
  const proptest::InputValues given = values(set);
  proptest::KernelRun run;
  const bool forward = direction_ == Direction::forward;
  constexpr std::size_t kStoredO = 3, kStoredLse = 4;  // of the inputs of backward
  run.O = forward ? judged_[0] : inputs_[set][kStoredO];
  if ((description.features & ATTEST_LSE) != 0) {
    run.LSE = forward ? judged_[1] : inputs_[set][kStoredLse];
  }
  if (!forward) run.dQ = judged_[0], run.dK = judged_[1], run.dV = judged_[2];
  const proptest::Truth truth(description, problem_, given, direction_, seed_);
  const proptest::Judgement judgement = proptest::gravest(truth.judge(run));
  // An error between the two bounds is no finding: it was there before timing, in one call of many.
  if (judgement.verdict == Verdict::violated) {
    return "timed call " + std::to_string(chosen_ + 1) +
           ", with other values than the first: " + judgement.reason;
  }
  return differs_;
}

void require_done(attest_status status, const attest_kernel& kernel, const Problem& problem) {
  if (status == ATTEST_OK) return;
  throw InvalidProblem(std::string(kernel.description.name) + ": returned status " +
                       std::to_string(static_cast<int>(status)) + " for " + problem.to_string() +
                       "; leave it out of the measurement");
}

}  // namespace attest::certify
