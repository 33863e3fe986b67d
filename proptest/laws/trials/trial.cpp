#include "proptest/laws/trials/trial.hpp"

#include "core/features/score_features.hpp"
#include "proptest/judge/limits.hpp"

namespace attest::proptest {
namespace {

std::vector<const Tensor*> outputs(const KernelRun& run, Direction direction) {
  std::vector<const Tensor*> list{&run.O};
  if (run.LSE.view().rank() > 0) list.push_back(&run.LSE);
  if (direction == Direction::backward) list.insert(list.end(), {&run.dQ, &run.dK, &run.dV});
  if (run.dSinks.view().rank() > 0) list.push_back(&run.dSinks);
  if (run.dBias.view().rank() > 0) list.push_back(&run.dBias);
  return list;
}

}  // namespace

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

void require_feature(const attest_kernel& kernel, std::uint32_t feature, const std::string& words) {
  if ((kernel.description.features & feature) == 0) {
    stop(Verdict::unsupported, "not claimed: " + words);
  }
}

void require_claimed(const attest_kernel& kernel, const Problem& problem, Direction direction) {
  const std::string missing = unclaimed(kernel.description, problem, direction);
  if (!missing.empty()) stop(Verdict::unsupported, "not claimed: " + missing);
}

std::shared_ptr<const Truth> truth_of(const attest_kernel& kernel, const Problem& problem,
                                      const InputValues& values, Direction direction, const Case& c,
                                      std::optional<reference::Sample> sample) {
  const std::string uncovered =
      reference::uncovered_by_attention_bounds(resolve(kernel.description.numerics, problem.dtype));
  if (!uncovered.empty()) stop(Verdict::unsupported, uncovered);
  // One law asks for a sample, once.
  const auto truth = sample ? std::make_shared<const Truth>(kernel.description, problem, values,
                                                            direction, c.seed, std::move(sample))
                            : shared_truth(kernel.description, problem, values, direction, c.seed);
  if (!truth->in_domain()) stop(Verdict::unsupported, kOutsideDomain);
  return truth;
}

void require_success(attest_status status, const std::string& misconduct, const std::string& words,
                     const Problem& problem) {
  if (!misconduct.empty()) stop(Verdict::violated, misconduct);
  const std::string says = words.empty() ? "" : kItSays + words;
  if (status == ATTEST_UNSUPPORTED) {
    stop(Verdict::unsupported, kRefused + problem.to_string() + says);
  }
  // The call returned, so that nothing crashed; but what is claimed was not computed.
  if (status == ATTEST_FAILED) {
    stop(Verdict::violated, "failed: the call returned ATTEST_FAILED for what is claimed" + says);
  }
}

KernelRun complete(const attest_kernel& kernel, const Problem& problem, const InputValues& values,
                   Direction direction, const Case& of, LseRequest request) {
  require_claimed(kernel, problem, direction);
  KernelRun result = run(kernel, problem, values, direction, of, request);
  require_success(result.status, result.misconduct, result.words, problem);
  return result;
}

Solved::Solved(const attest_kernel& kernel, const Problem& problem, InputValues in,
               Direction direction, const Case& c)
    : values(std::move(in)),
      shared(truth_of(kernel, problem, values, direction, c)),
      truth(*shared),
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

LawResult judged_bits(const std::vector<Comparison>& found, const std::string& what) {
  LawResult result = judged(found);
  if (result.verdict == Verdict::violated) result.message = what + ": " + result.message;
  return result;
}

LawResult same_bits(const KernelRun& a, const KernelRun& b, Direction direction,
                    const std::string& what) {
  const auto first = outputs(a, direction), second = outputs(b, direction);
  std::vector<Comparison> found;
  for (std::size_t k = 0; k < first.size(); ++k) {
    found.push_back(compare_bits(second[k]->view(), first[k]->view()));
  }
  return judged_bits(found, what);
}

void call_with_another_shape(const attest_kernel& kernel, const Problem& problem,
                             Direction direction, const Case& of) {
  constexpr std::int64_t kLength = 5;
  Problem other = plain_problem(problem);
  other.seqlen_q = other.seqlen_k = problem.seqlen_q == kLength ? kLength + 1 : kLength;
  other.batch = 1;
  other = within_limits(kernel.description, other);
  if (!unclaimed(kernel.description, other, direction).empty()) return;
  run(kernel, other, make_values(other, Values::normal, of.seed + 1), direction, of);
}

void require_right(const Solved& solved, const std::string& part) {
  LawResult result = judged(solved.truth.judge(solved.run));
  if (result.verdict == Verdict::passed || result.verdict == Verdict::vacuous) return;
  result.message = part + result.message;
  throw Stopped{result};
}

Direction furthest(const attest_kernel& kernel, const Problem& problem) {
  return unclaimed(kernel.description, problem, Direction::backward).empty() ? Direction::backward
                                                                             : Direction::forward;
}

Problem plain_problem(const Problem& problem) {
  Problem plain = problem;
  if (plain.mask.packed()) plain.layout = Layout::bshd;
  plain.mask = {};
  remove_score_features(plain);
  if (plain.strides == Strides::broadcast) plain.strides = Strides::packed;
  plain.seqlen_q = std::max<std::int64_t>(plain.seqlen_q, 1);
  plain.seqlen_k = std::max<std::int64_t>(plain.seqlen_k, 1);
  return plain;
}

Problem plain_problem(const attest_kernel& kernel, const Problem& problem) {
  return within_limits(kernel.description, plain_problem(problem));
}

void require_unmasked(const attest_kernel& kernel) {
  const attest_limits* const limits = kernel.description.limits;
  if (limits == nullptr || (limits->only & ATTEST_ONLY_CAUSAL) == 0) return;
  stop(Verdict::unsupported, "not claimed: masks that are not causal");
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

Problem with_hidden_keys(const attest_kernel& kernel, Problem p) {
  if (p.mask.banded() || p.mask.boolean || !p.mask.key_lengths.empty()) return p;
  p.mask.align = CausalAlign::bottom_right;
  p.mask.window_right = 0;
  fit_window(kernel.description, p);
  return p;
}

void require_hidden_keys(const attest_kernel& kernel) {
  constexpr std::uint32_t kHiding = ATTEST_CAUSAL_TOP_LEFT | ATTEST_WINDOW | ATTEST_KEY_LENGTHS |
                                    ATTEST_BOOLEAN_MASK | ATTEST_BLOCK_MASK | ATTEST_CSR_MASK |
                                    ATTEST_NM_MASK;
  const bool hides = (kernel.description.features & kHiding) != 0;
  if (hides || claimed_queries(kernel.description).most > 1) return;
  stop(Verdict::unsupported, "not claimed: masks that hide a key");
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
