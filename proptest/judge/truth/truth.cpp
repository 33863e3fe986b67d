#include "proptest/judge/truth/truth.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "proptest/judge/contract_terms.hpp"
#include "proptest/judge/recent.hpp"

namespace attest::proptest {
namespace {

using reference::ErrorBound;
using reference::Forward;

// The spelling without what only says where elements lie in memory, and with the bits of sinks,
// biases and masks of heads that are given, which it does not tell.
std::string mathematics_of(Problem problem) {
  if (!problem.mask.packed()) problem.layout = Layout::bshd;
  problem.strides = Strides::packed;
  problem.paged_kv = {};
  std::string text = problem.to_string();
  if (problem.bias.kind == Bias::Kind::given) {
    for (const double value : problem.bias.given->values) {
      text.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  if (problem.head_mask.kind == HeadMask::Kind::given) {
    const std::vector<std::uint8_t>& visible = problem.head_mask.given->visible;
    text.append(visible.begin(), visible.end());
  }
  if (problem.sinks != Sinks::given) return text;
  for (const float sink : problem.given_sinks) {
    text += " " + std::to_string(std::bit_cast<std::uint32_t>(sink));
  }
  return text;
}

// Spellings of masks that laws make say nothing of their pairs.
bool same_pairs(const Pattern& a, const Pattern& b) {
  if (a.boolean == b.boolean) return true;
  return a.boolean && b.boolean && a.boolean->visible == b.boolean->visible;
}

bool same_values(const Tensor& a, const Tensor& b) {
  const std::int64_t size = a.view().size();
  if (size != b.view().size()) return false;
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(double);
  return bytes == 0 || std::memcmp(a.doubles(), b.doubles(), bytes) == 0;  // nullptr when empty
}

// Tells whether the reference's own error counts, which is nothing beside the bounds of any other
// dtype.
bool as_exact_as_the_reference(const Problem& problem) { return problem.dtype == DType::f64; }

// All that the forward part follows from.
struct ForwardQuestion {
  const std::string& mathematics;
  const Problem& problem;
  const Conventions& conventions;
  const Numerics& numerics;
  const InputValues& values;
  // Queries whose results, and whose bounds, are wanted; null: all.
  const reference::PositionsInSequences *results = nullptr, *bounds = nullptr;
};

struct ForwardAnswer {
  std::string mathematics;
  Pattern mask;
  Conventions conventions;
  Numerics numerics;
  Tensor Q, K, V;
  ForwardTruth truth;
};

ForwardTruth forward_truth(const ForwardQuestion& asked) {
  const Problem& problem = asked.problem;
  const InputValues& values = asked.values;
  const TensorView &Q = values.Q.view(), &K = values.K.view(), &V = values.V.view();
  ForwardTruth truth;
  truth.exact = reference::forward(problem, asked.conventions, Q, K, V, asked.results);
  const bool plain = asked.results != nullptr || asked.conventions == Conventions{};
  truth.plain = plain ? truth.exact : reference::forward(problem, {}, Q, K, V);
  const auto bounds = [&](const Numerics& numerics) {
    return reference::forward_bounds(problem, asked.conventions, numerics, Q, K, V, truth.exact,
                                     asked.bounds);
  };
  truth.bounds = bounds(asked.numerics);
  if (!as_exact_as_the_reference(problem)) return truth;
  const reference::ForwardBounds own = bounds(resolve({}, problem.dtype));
  reference::widen(truth.bounds.O, own.O);
  reference::widen(truth.bounds.LSE, own.LSE);
  return truth;
}

// Once for all output gradients that this thread asks for in a row.
std::shared_ptr<const ForwardTruth> shared_forward(const ForwardQuestion& asked) {
  thread_local Recent<ForwardAnswer> recent(std::size_t{1} << 25);
  const InputValues& in = asked.values;
  const auto same = [&](const ForwardAnswer& known) {
    return same_values(known.Q, in.Q) && same_values(known.K, in.K) && same_values(known.V, in.V) &&
           known.conventions == asked.conventions && known.numerics == asked.numerics &&
           known.mathematics == asked.mathematics && same_pairs(known.mask, asked.problem.mask);
  };
  std::shared_ptr<const ForwardAnswer> answer = recent.find(same);
  if (!answer) {
    answer = std::make_shared<const ForwardAnswer>(
        ForwardAnswer{asked.mathematics, asked.problem.mask, asked.conventions, asked.numerics,
                      in.Q, in.K, in.V, forward_truth(asked)});
    const std::int64_t inputs = in.Q.view().size() + in.K.view().size() + in.V.view().size();
    const std::int64_t outputs = in.dO.view().size() + in.dLSE.view().size();
    constexpr std::int64_t kOfAnOutput = 5;  // exact, plain, three bounds
    recent.add(answer, sizeof(double) * static_cast<std::size_t>(inputs + kOfAnOutput * outputs));
  }
  return {answer, &answer->truth};
}

}  // namespace

reference::Stored stored_by(const KernelRun& run) {
  const TensorView& LSE = run.LSE.view();
  return {run.O.view(), LSE.rank() > 0 ? std::optional(LSE) : std::nullopt};
}

Truth::Truth(const attest_description& description, const Problem& problem,
             const InputValues& values, Direction direction, std::uint64_t seed,
             std::optional<reference::Sample> sample)
    : description_(description),
      problem_(problem),
      values_(values),
      mathematics_(mathematics_of(problem)),
      direction_(direction),
      sample_(std::move(sample)),
      conventions_(conventions_of(description)),
      numerics_(resolve(description.numerics, problem.dtype)),
      cotangents_{values_.dO.view(),
                  uses_dlse(description, seed) ? &values_.dLSE.view() : nullptr} {
  require_answer(problem, values);
  if (sample_) judged_ = judged_axes(problem, *sample_);
  // A key's gradients take what every row has.
  const bool every_row = direction != Direction::forward;
  const ForwardQuestion question{mathematics_,     problem_,
                                 conventions_,     numerics_,
                                 values_,          every_row ? nullptr : sampled_queries(),
                                 sampled_queries()};
  forward_ = sample_ ? std::make_shared<const ForwardTruth>(forward_truth(question))
                     : shared_forward(question);
  if (direction == Direction::forward) return;
  backward_ = reference::backward(problem_, values_.Q.view(), values_.K.view(), values_.V.view(),
                                  cotangents_);
}

bool Truth::answers(const attest_description& description, const Problem& problem,
                    const InputValues& values, Direction direction, std::uint64_t seed) const {
  const bool dlse = direction == Direction::backward && uses_dlse(description, seed);
  return direction == direction_ && same_values(values.Q, values_.Q) &&
         same_values(values.K, values_.K) && same_values(values.V, values_.V) &&
         same_values(values.dO, values_.dO) && (!dlse || same_values(values.dLSE, values_.dLSE)) &&
         dlse == (direction_ == Direction::backward && cotangents_.dLSE != nullptr) &&
         description.features == description_.features &&
         conventions_of(description) == conventions_ &&
         resolve(description.numerics, problem.dtype) == numerics_ &&
         mathematics_of(problem) == mathematics_ && same_pairs(problem.mask, problem_.mask);
}

std::size_t Truth::bytes() const {
  // The inputs, and for each output the exact result with its three bounds; those of the gradients
  // for every O and LSE that were judged.
  constexpr std::int64_t kOfAnInput = 1, kOfAnOutput = 5;
  const auto elements = [](std::initializer_list<const Tensor*> tensors) {
    std::int64_t sum = 0;
    for (const Tensor* tensor : tensors) sum += tensor->view().size();
    return sum;
  };
  const std::int64_t inputs =
      elements({&values_.Q, &values_.K, &values_.V, &values_.dO, &values_.dLSE});
  return sizeof(double) *
         static_cast<std::size_t>(
             kOfAnInput * inputs +
             kOfAnOutput * (inputs + elements({&forward_->exact.O, &forward_->exact.LSE})));
}

std::shared_ptr<const Truth> shared_truth(const attest_description& description,
                                          const Problem& problem, const InputValues& values,
                                          Direction direction, std::uint64_t seed) {
  thread_local Recent<Truth> recent(std::size_t{1} << 26);
  const auto same = [&](const Truth& known) {
    return known.answers(description, problem, values, direction, seed);
  };
  if (auto known = recent.find(same)) return known;
  auto truth = std::make_shared<const Truth>(description, problem, values, direction, seed);
  recent.add(truth, truth->bytes());
  return truth;
}

const reference::BackwardBounds& Truth::backward_bounds(const KernelRun& run) const {
  const std::lock_guard lock(*guard_);
  for (const Remembered& known : bounds_) {
    const bool lse = known.LSE.view().rank() > 0;
    if (lse != stored_by(run).LSE.has_value()) continue;
    if (identical(known.O, run.O) && (!lse || identical(known.LSE, run.LSE))) return known.bounds;
  }
  reference::BackwardBounds bounds = backward_bounds(numerics_, stored_by(run));
  if (as_exact_as_the_reference(problem_)) {
    reference::Stored exact = stored_by(run);
    exact.O = forward_->exact.O.view();
    if (exact.LSE) exact.LSE = forward_->exact.LSE.view();
    const reference::BackwardBounds own = backward_bounds(resolve({}, problem_.dtype), exact);
    reference::widen(bounds.dQ, own.dQ);
    reference::widen(bounds.dK, own.dK);
    reference::widen(bounds.dV, own.dV);
    reference::widen(bounds.dSinks, own.dSinks);
    reference::widen(bounds.dBias, own.dBias);
  }
  bounds_.push_back({run.O, run.LSE, std::move(bounds)});
  return bounds_.back().bounds;
}

reference::BackwardBounds Truth::backward_bounds(const Numerics& numerics,
                                                 const reference::Stored& stored) const {
  return reference::backward_bounds(problem_, conventions_, numerics, values_.Q.view(),
                                    values_.K.view(), values_.V.view(), cotangents_, stored,
                                    forward_->plain, backward_, sample());
}

Truth::JudgedAxes Truth::judged_axes(const Problem& problem, const reference::Sample& sample) {
  const auto none = [&](std::int64_t length) {
    return Judged(static_cast<std::size_t>(problem.tensor_batch()),
                  std::vector<std::uint8_t>(static_cast<std::size_t>(length), 0));
  };
  JudgedAxes axes{none(problem.tensor_seqlen_q()), none(problem.tensor_seqlen_k())};
  const auto mark = [](Judged& judged, std::int64_t batch, std::int64_t begin,
                       const std::vector<std::int64_t>& positions) {
    for (const std::int64_t position : positions) {
      judged[static_cast<std::size_t>(batch)][static_cast<std::size_t>(begin + position)] = 1;
    }
  };
  const std::vector<Sequence> sequences = problem.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const Sequence& sequence = sequences[s];
    mark(axes.queries, sequence.tensor_batch, sequence.q_begin, sample.queries[s]);
    mark(axes.keys, sequence.tensor_batch, sequence.k_begin, sample.keys[s]);
  }
  return axes;
}

// The bounds are formed again without each term in turn.
std::string Truth::dominating_term(const KernelRun& run, const Comparison& comparison) const {
  const bool of_forward = comparison.output == "O" || comparison.output == "LSE";
  const auto bound = [&](const Numerics& numerics, const reference::Stored& stored) {
    const auto at_worst = [&](const ErrorBound& bounds) {
      const auto& [i, j, k, l] = comparison.worst_index;
      const Tensor& chosen =
          comparison.verdict == Verdict::violated ? bounds.deterministic : bounds.probabilistic;
      return chosen(i, j, k, l);
    };
    if (of_forward) {
      const reference::ForwardBounds bounds = reference::forward_bounds(
          problem_, conventions_, numerics, values_.Q.view(), values_.K.view(), values_.V.view(),
          forward_->exact, sampled_queries());
      return at_worst(comparison.output == "O" ? bounds.O : bounds.LSE);
    }
    const reference::BackwardBounds bounds = backward_bounds(numerics, stored);
    return at_worst(comparison.output == "dQ"       ? bounds.dQ
                    : comparison.output == "dK"     ? bounds.dK
                    : comparison.output == "dV"     ? bounds.dV
                    : comparison.output == "dSinks" ? bounds.dSinks
                                                    : bounds.dBias);
  };
  const reference::Stored stored = stored_by(run);
  double least = std::numeric_limits<double>::infinity();
  std::string_view dominating;
  const auto consider = [&](std::string_view term, double without) {
    if (!(without < least)) return;
    least = without;
    dominating = term;
  };
  for (const WithoutTerm& one : without_each_term(numerics_)) {
    consider(one.term, bound(one.numerics, stored));
  }
  if (!of_forward) {
    const TensorView &O = forward_->exact.O.view(), &LSE = forward_->exact.LSE.view();
    if (stored.LSE) {
      consider("stored O and LSE", bound(numerics_, {O, LSE}));
    } else {
      consider("stored O", bound(numerics_, {O, std::nullopt}));
      consider("an LSE that is not given", bound(numerics_, {stored.O, LSE}));
    }
  }
  return std::string(dominating);
}

std::vector<Comparison> Truth::judge(const KernelRun& run) const {
  const Judged *const queries = judged_queries(), *const keys = judged_keys();
  std::vector<Comparison> comparisons{
      compare(run.O.view(), forward_->exact.O, forward_->bounds.O, queries)};
  if ((description_.features & ATTEST_LSE) != 0) {
    comparisons.push_back(
        compare(run.LSE.view(), forward_->exact.LSE, forward_->bounds.LSE, queries));
  }
  if (direction_ == Direction::backward) {
    const reference::BackwardBounds& bounds = backward_bounds(run);
    comparisons.push_back(compare(run.dQ.view(), backward_.dQ, bounds.dQ, queries));
    comparisons.push_back(compare(run.dK.view(), backward_.dK, bounds.dK, keys));
    comparisons.push_back(compare(run.dV.view(), backward_.dV, bounds.dV, keys));
    if (problem_.sinks != Sinks::none) {
      comparisons.push_back(compare(run.dSinks.view(), backward_.dSinks, bounds.dSinks));
    }
    if (problem_.bias.kind != Bias::Kind::none) {
      comparisons.push_back(compare(run.dBias.view(), backward_.dBias, bounds.dBias));
    }
  }
  return comparisons;
}

std::vector<Comparison> Truth::agreement(const KernelRun& first, const KernelRun& second) const {
  const auto pair = [](const Tensor& a, const Tensor& b, const ErrorBound& x, const ErrorBound& y) {
    return compare_pair(a.view(), b.view(), x, y);
  };
  const reference::ForwardBounds& forward = forward_->bounds;
  std::vector<Comparison> comparisons{pair(first.O, second.O, forward.O, forward.O)};
  if ((description_.features & ATTEST_LSE) != 0) {
    comparisons.push_back(pair(first.LSE, second.LSE, forward.LSE, forward.LSE));
  }
  if (direction_ == Direction::forward) return comparisons;
  const reference::BackwardBounds &a = backward_bounds(first), &b = backward_bounds(second);
  comparisons.push_back(pair(first.dQ, second.dQ, a.dQ, b.dQ));
  comparisons.push_back(pair(first.dK, second.dK, a.dK, b.dK));
  comparisons.push_back(pair(first.dV, second.dV, a.dV, b.dV));
  if (problem_.sinks != Sinks::none) {
    comparisons.push_back(pair(first.dSinks, second.dSinks, a.dSinks, b.dSinks));
  }
  if (problem_.bias.kind != Bias::Kind::none) {
    comparisons.push_back(pair(first.dBias, second.dBias, a.dBias, b.dBias));
  }
  return comparisons;
}

Judgement gravest(const std::vector<Comparison>& comparisons) {
  Judgement judgement;
  for (const Comparison& comparison : comparisons) {
    if (graver(comparison.verdict, judgement.verdict) == judgement.verdict) continue;
    judgement = {comparison.verdict, comparison.reason};
  }
  return judgement;
}

}  // namespace attest::proptest
