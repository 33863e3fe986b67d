#include "core/features/score_features.hpp"
#include "proptest/judge/truth/truth.hpp"

/// Wrong results that a wrong kernel plausibly returns, and those that a truth would let pass.
namespace attest::proptest {
namespace {

using reference::Forward;

Tensor zeros_like(const Tensor& tensor) {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < tensor.view().rank(); ++axis) {
    axes.push_back(tensor.view().axis(axis));
  }
  return Tensor(tensor.view().name(), DType::f64, axes);
}

// The same problem with the last visible key of every row hidden.
Problem without_last_keys(const Problem& problem) {
  Problem changed = problem;
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = problem.seqlen_q;
  mask->columns = problem.seqlen_k;
  mask->spelling = "decoy";
  mask->visible.assign(static_cast<std::size_t>(mask->rows * mask->columns), 1);
  for (const Sequence& sequence : problem.sequences()) {
    for (std::int64_t i = 0; i < sequence.q_length; ++i) {
      for (std::int64_t j = 0; j < sequence.k_length; ++j) {
        if (problem.mask.boolean && !problem.mask.visible(sequence, i, j)) {
          mask->visible[static_cast<std::size_t>(i * mask->columns + j)] =
              problem.mask.boolean->visible[static_cast<std::size_t>(i * mask->columns + j)];
        }
      }
      for (std::int64_t j = sequence.k_length; j-- > 0;) {
        if (!problem.mask.visible(sequence, i, j)) continue;
        mask->visible[static_cast<std::size_t>(i * mask->columns + j)] = 0;
        break;
      }
    }
  }
  changed.mask.boolean = mask;
  return changed;
}

struct Decoy {
  std::string name;
  Problem problem;
};

// Tells whether a mask of every pair is worth its memory and time: at most a quarter of a gigabyte.
bool has_pair_mask(const Problem& problem) {
  constexpr std::int64_t kMostPairs = std::int64_t{1} << 28;
  return problem.seqlen_q == 0 || problem.seqlen_k <= kMostPairs / problem.seqlen_q;
}

// Wrong results that a wrong kernel plausibly returns: the truth of another problem.
std::vector<Decoy> other_problems(const Problem& problem) {
  std::vector<Decoy> decoys;
  if (problem.scale() != 1) {
    decoys.push_back({"without scale", problem});
    decoys.back().problem.softmax_scale = 1.0;
  }
  if (problem.mask.banded() || problem.mask.boolean) {
    decoys.push_back({"without mask", problem});
    Pattern& mask = decoys.back().problem.mask;
    mask.remove_window();
    mask.boolean = nullptr;
  }
  if (has_pair_mask(problem)) {
    decoys.push_back({"last key dropped", without_last_keys(problem)});
  }
  return decoys;
}

// O = mean of V over the sequence's keys.
Forward mean_of_values(const Problem& problem, const Conventions& conventions,
                       const InputValues& values, const reference::PositionsInSequences* queries) {
  Problem uniform = problem;
  uniform.softmax_scale = 0.0;
  remove_score_features(uniform);
  uniform.mask.remove_window();
  uniform.mask.boolean = nullptr;
  return reference::forward(uniform, conventions, values.Q.view(), values.K.view(), values.V.view(),
                            queries);
}

}  // namespace

std::vector<std::string> Truth::passing_decoys(const KernelRun& run) const {
  return direction_ == Direction::forward ? forward_decoys() : backward_decoys(run);
}

std::vector<std::string> Truth::forward_decoys() const {
  const bool has_lse = (description_.features & ATTEST_LSE) != 0;
  std::vector<std::string> passing;
  const auto consider = [&](const std::string& name, const Forward& decoy, bool with_lse) {
    const bool same = identical(decoy.O, forward_->exact.O) &&
                      (!with_lse || identical(decoy.LSE, forward_->exact.LSE));
    const Judged* const queries = judged_queries();
    if (same || !passes(decoy.O.view(), forward_->exact.O, forward_->bounds.O, queries)) return;
    if (with_lse && !passes(decoy.LSE.view(), forward_->exact.LSE, forward_->bounds.LSE, queries)) {
      return;
    }
    passing.push_back(name);
  };
  consider("all zeros", {zeros_like(forward_->exact.O), forward_->exact.LSE}, false);
  consider("mean of V", mean_of_values(problem_, conventions_, values_, sampled_queries()),
           has_lse);
  for (const Decoy& decoy : other_problems(problem_)) {
    consider(decoy.name,
             reference::forward(decoy.problem, conventions_, values_.Q.view(), values_.K.view(),
                                values_.V.view(), sampled_queries()),
             has_lse);
  }
  return passing;
}

std::vector<std::string> Truth::backward_decoys(const KernelRun& run) const {
  const reference::BackwardBounds& bounds = backward_bounds(run);
  std::vector<std::string> passing;
  const auto consider = [&](const std::string& name, const reference::Backward& decoy) {
    const bool same = identical(decoy.dQ, backward_.dQ) && identical(decoy.dK, backward_.dK) &&
                      identical(decoy.dV, backward_.dV) &&
                      identical(decoy.dSinks, backward_.dSinks) &&
                      identical(decoy.dBias, backward_.dBias);
    if (same || !passes(decoy.dQ.view(), backward_.dQ, bounds.dQ, judged_queries())) return;
    // On a sample the decoy has the sampled rows alone, which are no gradient of a key.
    const bool of_keys = !sample_ && (!passes(decoy.dK.view(), backward_.dK, bounds.dK) ||
                                      !passes(decoy.dV.view(), backward_.dV, bounds.dV));
    const bool of_sinks = !sample_ && !passes(decoy.dSinks.view(), backward_.dSinks, bounds.dSinks);
    const bool of_bias = !sample_ && !passes(decoy.dBias.view(), backward_.dBias, bounds.dBias);
    if (!of_keys && !of_sinks && !of_bias) passing.push_back(name);
  };
  consider("all zeros",
           {zeros_like(backward_.dQ), zeros_like(backward_.dK), zeros_like(backward_.dV),
            zeros_like(backward_.dSinks), zeros_like(backward_.dBias)});
  for (const Decoy& decoy : other_problems(problem_)) {
    consider(decoy.name, reference::backward(decoy.problem, values_.Q.view(), values_.K.view(),
                                             values_.V.view(), cotangents_, sampled_queries()));
  }
  return passing;
}

}  // namespace attest::proptest
