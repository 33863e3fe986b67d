#include "certify/bench/timing/watched_calls.hpp"

#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/judge/past_lengths.hpp"
#include "proptest/judge/truth/truth.hpp"

namespace attest::certify {

WatchedCalls::WatchedCalls(const attest_kernel& kernel, const Problem& problem, Direction direction,
                           std::int32_t threads, std::uint64_t seed, KernelHeart heart)
    : kernel_(kernel),
      problem_(problem),
      direction_(direction),
      seed_(seed),
      heart_(heart),
      operands_(problem, threads, kernel.description.features) {}

proptest::InputValues WatchedCalls::values(const Problem& problem, std::uint64_t seed, int round) {
  return proptest::make_values(problem, proptest::Values::normal,
                               mix(seed, static_cast<std::uint64_t>(round + 1)));
}

void WatchedCalls::prepare(const proptest::InputValues& values, int round) {
  operands_.fill(values);
  if (direction_ == Direction::backward) {
    operands_.poison(Direction::forward);
    heart_.begins(round);
    require_done(operands_.call(kernel_, Direction::forward), kernel_, problem_);
    heart_.ends();
    stored_ = operands_.outputs(Direction::forward);
  }
  operands_.poison(direction_);
}

std::int64_t WatchedCalls::drawn_below(std::int64_t count) {
  return std::uniform_int_distribution<std::int64_t>(0, count - 1)(random_);
}

proptest::KernelRun WatchedCalls::run() const {
  proptest::KernelRun run;
  const std::vector<Tensor> written = operands_.outputs(direction_);
  const bool forward = direction_ == Direction::forward;
  const std::vector<Tensor>& of_forward = forward ? written : stored_;
  run.O = of_forward[0];
  if ((kernel_.description.features & ATTEST_LSE) != 0) run.LSE = of_forward[1];
  if (!forward) {
    run.dQ = written[0], run.dK = written[1], run.dV = written[2];
    if (problem_.sinks != Sinks::none) run.dSinks = written[3];
    if (problem_.bias.kind != Bias::Kind::none) run.dBias = written.back();
  }
  proptest::take_unwritten_as_empty(kernel_.description, problem_, run);
  return run;
}

// Every round is the chosen one with the same chance, which nobody knows before the last.
void WatchedCalls::look(const proptest::InputValues& values, int round) {
  if (round < 0) return;
  if (drawn_below(round + 1) == 0) {
    chosen_ = round;
    judged_ = run();
  }
  // Gradients of a key take all rows: that would cost a reference.
  if (direction_ == Direction::backward || !violated_.empty()) return;
  reference::Sample sample;
  for (const Sequence& sequence : problem_.sequences()) {
    sample.queries.emplace_back();
    sample.keys.emplace_back();
    if (sequence.q_length > 0) sample.queries.back().push_back(drawn_below(sequence.q_length));
  }
  violated_ = violation(values, run(), std::move(sample));
  if (!violated_.empty()) violated_ = "timed call " + std::to_string(round + 1) + ": " + violated_;
}

std::string WatchedCalls::violation(const proptest::InputValues& values,
                                    const proptest::KernelRun& run,
                                    std::optional<reference::Sample> sample) const {
  attest_description description = kernel_.description;
  description.features &= ~static_cast<std::uint32_t>(ATTEST_DLSE);  // none is passed
  const proptest::Truth truth(description, problem_, values, direction_, seed_, std::move(sample));
  const proptest::Judgement judgement = proptest::gravest(truth.judge(run));
  // An error between the two bounds is no finding: it was there before timing, in one call of many.
  return judgement.verdict == Verdict::violated ? judgement.reason : "";
}

std::string WatchedCalls::objection() const {
  if (!violated_.empty()) return violated_;
  const std::string why = violation(values(problem_, seed_, chosen_), judged_, std::nullopt);
  return why.empty() ? "" : "timed call " + std::to_string(chosen_ + 1) + ": " + why;
}

void require_done(attest_status status, const attest_kernel& kernel, const Problem& problem) {
  if (status == ATTEST_OK) return;
  throw InvalidProblem(std::string(kernel.description.name) + ": returned status " +
                       std::to_string(static_cast<int>(status)) + " for " + problem.to_string() +
                       "; leave it out of the measurement");
}

}  // namespace attest::certify
