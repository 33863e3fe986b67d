#include "proptest/laws/trial.hpp"

namespace attest::proptest {

Law replacing_mask(Law law) {
  law.mask = MaskUse::replaced;
  return law;
}

void stop(Verdict verdict, const std::string& message) {
  throw Stopped{LawResult{verdict, message, {}}};
}

LawResult guarded(const std::function<LawResult()>& body) {
  try {
    return body();
  } catch (const Stopped& stopped) {
    return stopped.result;
  }
}

void require_deterministic(const attest_kernel& kernel) {
  if (kernel.description.numerics.nondeterministic != 0) {
    stop(Verdict::unsupported, "not claimed: equal bits of equal calls");
  }
}

void require_claimed(const attest_kernel& kernel, const Problem& problem, Direction direction) {
  const std::string missing = unclaimed(kernel.description, problem, direction);
  if (!missing.empty()) stop(Verdict::unsupported, "not claimed: " + missing);
}

Truth truth_of(const attest_kernel& kernel, const Problem& problem, const InputValues& values,
               Direction direction, const Case& c) {
  const std::string uncovered =
      reference::uncovered_by_attention_bounds(resolve(kernel.description.numerics, problem.dtype));
  if (!uncovered.empty()) stop(Verdict::unsupported, uncovered);
  Truth truth(kernel.description, problem, values, direction, c.seed);
  if (!truth.in_domain()) stop(Verdict::unsupported, kOutsideDomain);
  return truth;
}

KernelRun complete(const attest_kernel& kernel, const Problem& problem, const InputValues& values,
                   Direction direction, const Case& of, LseRequest request) {
  require_claimed(kernel, problem, direction);
  KernelRun result = run(kernel, problem, values, direction, of, request);
  if (!result.misconduct.empty()) stop(Verdict::violated, result.misconduct);
  if (result.status == ATTEST_UNSUPPORTED) {
    stop(Verdict::unsupported, "refused although claimed: " + problem.to_string());
  }
  if (result.status == ATTEST_FAILED) stop(Verdict::crashed, "the kernel reported failure");
  return result;
}

Solved::Solved(const attest_kernel& kernel, const Problem& problem, InputValues in,
               Direction direction, const Case& c)
    : values(std::move(in)),
      truth(truth_of(kernel, problem, values, direction, c)),
      run(complete(kernel, problem, values, direction, c)) {}

LawResult judged(const std::vector<Comparison>& comparisons) {
  const Judgement judgement = gravest(comparisons);
  return {judgement.verdict, judgement.reason, comparisons};
}

LawResult judged_with_truth(const std::vector<Comparison>& comparisons, const Solved& solved) {
  LawResult own = judged(comparisons);
  if (own.verdict != Verdict::passed) return own;
  const Judgement truth = gravest(solved.truth.judge(solved.run));
  if (truth.verdict == Verdict::passed) return own;
  if (truth.verdict == Verdict::vacuous) return {truth.verdict, truth.reason, own.comparisons};
  return {truth.verdict, kWrongAlike + truth.reason, own.comparisons};
}

Direction furthest(const attest_kernel& kernel, const Problem& problem) {
  return unclaimed(kernel.description, problem, Direction::backward).empty() ? Direction::backward
                                                                             : Direction::forward;
}

Problem plain_problem(const Problem& problem) {
  Problem plain = problem;
  if (plain.mask.packed()) plain.layout = Layout::bshd;
  plain.mask = {};
  plain.softcap = 0;
  plain.alibi = Alibi::none;
  if (plain.strides == Strides::broadcast) plain.strides = Strides::packed;
  plain.seqlen_q = std::max<std::int64_t>(plain.seqlen_q, 1);
  plain.seqlen_k = std::max<std::int64_t>(plain.seqlen_k, 1);
  return plain;
}

Problem unpacked_problem(const Problem& problem) {
  Problem unpacked = plain_problem(problem);
  unpacked.seqlen_q = problem.seqlen_q;  // an extent of 0 has no mask of another
  unpacked.seqlen_k = problem.seqlen_k;
  unpacked.mask = problem.mask;
  unpacked.mask.key_lengths.clear();
  unpacked.mask.cu_seqlens_q.clear();
  unpacked.mask.cu_seqlens_k.clear();
  return unpacked;
}

void require_pairs(const attest_kernel& kernel, const Problem& problem, Direction direction) {
  require_claimed(kernel, problem, direction);
  if (problem.visible_pairs() == 0) stop(Verdict::vacuous, "no query sees a key");
}

Tensor mapped(
    const Tensor& like,
    const std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& value) {
  Tensor result = like;
  const TensorView& view = like.view();
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t s = 0; s < view.extent(1); ++s) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) {
        const std::int64_t columns = view.rank() == 4 ? view.extent(3) : 1;
        for (std::int64_t c = 0; c < columns; ++c) result.set(value(b, s, h, c), b, s, h, c);
      }
    }
  }
  return result;
}

reference::ErrorBound no_error(const Tensor& like) {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < like.view().rank(); ++axis) {
    axes.push_back(like.view().axis(axis));
  }
  const Tensor zero("bound", DType::f64, axes);
  return {zero, zero, zero};
}

}  // namespace attest::proptest
