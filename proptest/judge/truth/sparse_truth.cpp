#include "proptest/judge/truth/sparse_truth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "proptest/judge/truth/truth.hpp"

namespace attest::proptest {
namespace {

Tensor dense(const char* name, const std::vector<Axis>& axes, const CsrMatrix& matrix) {
  Tensor tensor(name, DType::f32, axes);
  csr_to_dense(matrix,
               TensorView(name, tensor.view().data(), DType::f32,
                          {{"rows", matrix.rows, matrix.columns}, {"columns", matrix.columns, 1}}));
  return tensor;
}

// Requires: as many elements as the axes have.
Tensor rows(const char* name, const std::vector<Axis>& axes, const std::vector<float>& elements) {
  Tensor tensor(name, DType::f32, axes);
  std::copy(elements.begin(), elements.end(), static_cast<float*>(tensor.view().data()));
  return tensor;
}

Problem without_scores(Problem problem) {
  problem.softmax_scale = 0;
  return problem;
}

// Pairs that share no column of Q and K hidden.
Problem hidden_off_support(Problem problem, const SparseOperands& in) {
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = in.Q.rows;
  mask->columns = in.K.rows;
  mask->spelling = "support";
  mask->visible.assign(static_cast<std::size_t>(mask->rows * mask->columns), 0);
  const CsrMatrix by_column = in.K.transposed();
  for (std::int64_t i = 0; i < in.Q.rows; ++i) {
    for (const std::int32_t l : in.Q.row_columns(i)) {
      for (const std::int32_t j : by_column.row_columns(l)) {
        mask->visible[static_cast<std::size_t>(i * mask->columns + j)] = 1;
      }
    }
  }
  problem.mask.boolean = mask;
  return problem;
}

// One output: what a kernel returned, and what it is held against.
struct Output {
  const char* name;
  const std::vector<Axis> axes;
  const std::vector<float>& got;
  const Tensor &exact, &bound;
};

Comparison held(const TensorView& got, const Output& output) {
  const Tensor none(output.name, DType::f64, output.axes);
  return compare(got, output.exact, {output.bound, output.bound, none});
}

std::int64_t unbounded(const Tensor& bound) {
  const double* first = bound.doubles();
  return std::count_if(first, first + bound.view().size(),
                       [](double element) { return !std::isfinite(element); });
}

// Passes though it differs.
bool would_pass(const SparseDecoy& decoy, const std::vector<Output>& outputs) {
  bool differs = false;
  for (std::size_t o = 0; o < decoy.outputs.size(); ++o) {
    differs |= !identical(decoy.outputs[o], outputs[o].exact);
    if (held(decoy.outputs[o].view(), outputs[o]).verdict != Verdict::passed) return false;
  }
  return differs;
}

std::vector<std::string> identical_ones(const std::vector<SparseDecoy>& decoys,
                                        const std::vector<const Tensor*>& exact) {
  std::vector<std::string> names;
  for (const SparseDecoy& decoy : decoys) {
    const auto same = [](const Tensor& one, const Tensor* truth) { return identical(one, *truth); };
    if (std::equal(decoy.outputs.begin(), decoy.outputs.end(), exact.begin(), same)) {
      names.push_back(decoy.name);
    }
  }
  return names;
}

LawResult judged(const std::vector<Output>& outputs, const std::vector<SparseDecoy>& decoys) {
  LawResult result;
  for (const Output& output : outputs) {
    const std::int64_t wanted = output.exact.view().size();
    if (static_cast<std::int64_t>(output.got.size()) != wanted) {
      return {Verdict::violated,
              fmt::format("{} has {} elements, not {}", output.name, output.got.size(), wanted),
              {}};
    }
    if (const std::int64_t count = unbounded(output.bound); count > 0) {
      return {
          Verdict::unsupported,
          fmt::format("{}: no bound is proved for {} of {} elements", output.name, count, wanted),
          {}};
    }
    result.comparisons.push_back(held(rows(output.name, output.axes, output.got).view(), output));
  }
  const Judgement gravest_one = gravest(result.comparisons);
  result.verdict = gravest_one.verdict;
  result.message = gravest_one.reason;
  if (result.verdict != Verdict::passed) return result;
  for (const SparseDecoy& decoy : decoys) {
    if (!would_pass(decoy, outputs)) continue;
    result.verdict = Verdict::vacuous;
    result.message = "would also pass: " + decoy.name;
    break;
  }
  return result;
}

}  // namespace

SparseTruth::SparseTruth(const SparseOperands& operands, std::span<const float> dO)
    : operands_(operands), dO_(dO.begin(), dO.end()) {
  operands_.validate();
  problem_ = operands_.dense_problem();
  const auto wanted = static_cast<std::size_t>(operands_.Q.rows * operands_.V.columns);
  if (dO_.size() != wanted) {
    throw InvalidProblem(fmt::format("dO has {} elements; pass the {} of O", dO_.size(), wanted));
  }
  dO_tensor_ = rows("dO", problem_.o_axes(), dO_);
  const Tensor Q = dense("Q", problem_.q_axes(), operands_.Q);
  const Tensor K = dense("K", problem_.k_axes(), operands_.K);
  const Tensor V = dense("V", problem_.v_axes(), operands_.V);
  const auto forward_of = [&](const Problem& problem) {
    return reference::forward(problem, {}, Q.view(), K.view(), V.view());
  };
  const auto backward_of = [&](const Problem& problem) {
    return reference::backward(problem, Q.view(), K.view(), V.view(), {dO_tensor_.view()});
  };
  forward_ = forward_of(problem_);
  backward_ = backward_of(problem_);
  const auto zeros = [](const char* name, const std::vector<Axis>& axes) {
    return Tensor(name, DType::f64, axes);
  };
  const Problem hidden = hidden_off_support(problem_, operands_);
  constexpr const char *kZeros = "all zeros", *kHidden = "pairs that share no column hidden";
  const reference::Forward mean = forward_of(without_scores(problem_)),
                           without = forward_of(hidden);
  forward_decoys_ = {{kZeros, {zeros("O", problem_.o_axes())}},
                     {"mean of V", {mean.O, mean.LSE}},
                     {kHidden, {without.O, without.LSE}}};
  const reference::Backward backward = backward_of(hidden);
  backward_decoys_ = {{kZeros,
                       {zeros("dQ", problem_.q_axes()), zeros("dK", problem_.k_axes()),
                        zeros("dV", problem_.v_axes())}},
                      {kHidden, {backward.dQ, backward.dK, backward.dV}}};
}

bool SparseTruth::of_size(const SparseOutputs& outputs) const {
  return outputs.O.size() == dO_.size() &&
         outputs.LSE.size() == static_cast<std::size_t>(operands_.Q.rows);
}

reference::SparseForwardBounds SparseTruth::forward_bounds(Subtracted subtracted) const {
  return reference::sparse_forward_bounds(operands_, {}, forward_, subtracted);
}

reference::SparseBackwardBounds SparseTruth::backward_bounds(const SparseOutputs& stored) const {
  const Tensor O = rows("O", problem_.o_axes(), stored.O);
  const Tensor LSE = rows("LSE", problem_.lse_axes(), stored.LSE);
  return reference::sparse_backward_bounds(operands_, {}, dO_tensor_.view(), {O.view(), LSE.view()},
                                           forward_, backward_);
}

LawResult SparseTruth::judge(const SparseOutputs& got, Subtracted subtracted) const {
  const reference::SparseForwardBounds bounds = forward_bounds(subtracted);
  return judged({{"O", problem_.o_axes(), got.O, forward_.O, bounds.O},
                 {"LSE", problem_.lse_axes(), got.LSE, forward_.LSE, bounds.LSE}},
                forward_decoys_);
}

LawResult SparseTruth::judge(const SparseOutputs& stored, const SparseGradients& got) const {
  if (!of_size(stored)) return {Verdict::unsupported, "no O and LSE were stored", {}};
  const reference::SparseBackwardBounds bounds = backward_bounds(stored);
  return judged({{"dQ", problem_.q_axes(), got.dQ, backward_.dQ, bounds.dQ},
                 {"dK", problem_.k_axes(), got.dK, backward_.dK, bounds.dK},
                 {"dV", problem_.v_axes(), got.dV, backward_.dV, bounds.dV}},
                backward_decoys_);
}

std::vector<std::string> SparseTruth::unseen_forward() const {
  return identical_ones(forward_decoys_, {&forward_.O, &forward_.LSE});
}

std::vector<std::string> SparseTruth::unseen_backward() const {
  return identical_ones(backward_decoys_, {&backward_.dQ, &backward_.dK, &backward_.dV});
}

}  // namespace attest::proptest
