#include "proptest/judge/loss.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "core/dtype/dtype_range.hpp"
#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "core/workspace.hpp"
#include "proptest/judge/buffer.hpp"

namespace attest::proptest {
namespace {

std::vector<Axis> matrix_axes(const char* rows_name, std::int64_t rows, std::int64_t columns) {
  return {{rows_name, rows, 0}, {"head_dim", columns, 0}};
}

// A (1, rows, 1, columns) tensor as a matrix.
Tensor matrix(const Tensor& tensor, const char* name) {
  const TensorView& view = tensor.view();
  Tensor result(name, DType::f64, matrix_axes("seqlen", view.extent(1), view.extent(3)));
  for (std::int64_t i = 0; i < view.extent(1); ++i) {
    for (std::int64_t c = 0; c < view.extent(3); ++c) result.set(view(0, i, 0, c), i, c);
  }
  return result;
}

// factor (I + N / (2 sqrt(d))), N normal: about as large across as along the diagonal.
Tensor near_identity(const char* name, double factor, const Problem& problem, std::uint64_t seed,
                     std::uint64_t stream) {
  const std::int64_t d = problem.head_dim_qk;
  Tensor result(name, DType::f64, matrix_axes("head_dim", d, d));
  Rng rng(seed, stream);
  const double size = 0.5 / std::sqrt(static_cast<double>(std::max<std::int64_t>(d, 1)));
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      const double value = factor * ((i == j ? 1.0 : 0.0) + size * rng.normal());
      result.set(round_to(problem.dtype, value), i, j);
    }
  }
  return result;
}

// The strides a (1, rows, 1, columns) tensor would have.
std::vector<Axis> strided(const TensorView& view, Strides strides) {
  const std::vector<Axis> axes =
      lay_out({{"batch", 1, 0}, view.axis(0), {"heads", 1, 0}, view.axis(1)}, Layout::bshd, strides,
              Repeat::none);
  return {axes[1], axes[3]};
}

Tensor zeros_like(const Tensor& tensor) {
  return Tensor(tensor.view().name(), DType::f64, {tensor.view().axis(0), tensor.view().axis(1)});
}

double largest(const Tensor& tensor) {
  double value = 0;
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) {
    value = std::max(value, std::abs(tensor.doubles()[e]));
  }
  return value;
}

}  // namespace

reference::LossInputs LossValues::inputs() const {
  return {A1.view(), A2.view(), A3.view(), E.view(), X.view(), Y.view()};
}

LossValues make_loss_values(const Problem& problem, Values values, std::uint64_t seed) {
  constexpr std::uint64_t kStreamX = 11, kStreamY = 12;
  const InputValues in = make_values(problem, values, seed);
  return {matrix(in.Q, "A1"),
          matrix(in.K, "A2"),
          matrix(in.V, "A3"),
          matrix(in.dO, "E"),
          near_identity("X", problem.scale(), problem, seed, kStreamX),
          near_identity("Y", 1, problem, seed, kStreamY)};
}

Problem loss_problem_like(const Problem& attention, DType dtype) {
  Problem problem;
  problem.seqlen_q = problem.seqlen_k = std::max<std::int64_t>(attention.seqlen_k, 1);
  problem.head_dim_qk = problem.head_dim_v = attention.head_dim_qk;
  problem.dtype = dtype;
  return problem;
}

bool writes_dy(const attest_description& description) {
  return (description.features & ATTEST_LOSS_DY) != 0;
}

LossRun run_loss(const attest_kernel& kernel, const Problem& problem, const LossValues& values,
                 const Case& of) {
  std::vector<Input> inputs;
  inputs.reserve(6);
  std::deque<KernelTensor> tensors;  // they do not move
  const std::uint64_t offset = byte_offset_of(problem.strides);
  for (const Tensor* tensor :
       {&values.A1, &values.A2, &values.A3, &values.E, &values.X, &values.Y}) {
    inputs.emplace_back(*tensor, problem.dtype, strided(tensor->view(), problem.strides));
    tensors.emplace_back(inputs.back().buffer, offset);
  }
  Buffer dX("dX", problem.dtype, strided(values.X.view(), problem.strides));
  Buffer dY("dY", problem.dtype, strided(values.Y.view(), problem.strides));
  const KernelTensor d_x(dX, offset), d_y(dY, offset);
  const AbiProblem form(problem, of.threads, kernel.description.features);
  Workspace space(workspace_bytes_of(kernel, *form.get(), ATTEST_LOSS_GRADIENT));
  CallWords words;
  const attest_loss_args args{sizeof(attest_loss_args),
                              form.get(),
                              tensors[0].get(),
                              tensors[1].get(),
                              tensors[2].get(),
                              tensors[3].get(),
                              tensors[4].get(),
                              tensors[5].get(),
                              d_x.get(),
                              writes_dy(kernel.description) ? d_y.get() : nullptr,
                              space.data(),
                              space.size(),
                              nullptr,
                              words.data(),
                              words.size()};
  LossRun result;
  result.status = kernel.loss_gradient(kernel.self, &args);
  result.words = words.of(result.status);
  const auto note = [&result](const std::string& finding) {
    if (result.misconduct.empty()) result.misconduct = finding;
  };
  if (!known_status(result.status)) {
    note("loss_gradient returned unknown status " +
         std::to_string(static_cast<int>(result.status)));
  }
  note(space.disturbed());
  for (const Input& input : inputs) note(input.changed());
  note(form.changed());
  for (const KernelTensor& tensor : tensors) note(tensor.changed());
  for (const KernelTensor* tensor : {&d_x, &d_y}) note(tensor->changed());
  for (const Buffer* output : {&dX, &dY}) note(output->disturbed());
  result.dX = dX.packed_copy();
  if (writes_dy(kernel.description)) result.dY = dY.packed_copy();
  return result;
}

LossTruth::LossTruth(const attest_description& description, const Problem& problem,
                     const LossValues& values)
    : problem_(problem),
      values_(values),
      outputs_(writes_dy(description) ? Outputs::dx_and_dy : Outputs::dx),
      exact_(reference::loss_gradient(values.inputs())),
      bounds_(
          reference::loss_bounds(resolve(description.numerics, problem.dtype), values.inputs())) {
  if (problem.dtype != DType::f64) return;
  const reference::LossBounds own =
      reference::loss_bounds(resolve({}, DType::f64), values.inputs());
  reference::widen(bounds_.dX, own.dX);  // of the reference, which errs as much
  reference::widen(bounds_.dY, own.dY);
}

bool LossTruth::in_domain() const {
  constexpr double kLargest = 3e4;
  if (!has_narrow_range(problem_.dtype)) return true;
  return largest(exact_.dX) < kLargest && largest(exact_.dY) < kLargest;
}

std::vector<Comparison> LossTruth::judge(const LossRun& run) const {
  std::vector<Comparison> comparisons{compare(run.dX.view(), exact_.dX, bounds_.dX)};
  if (outputs_ == Outputs::dx_and_dy) {
    comparisons.push_back(compare(run.dY.view(), exact_.dY, bounds_.dY));
  }
  return comparisons;
}

std::vector<std::string> LossTruth::passing_decoys() const {
  std::vector<std::string> passing;
  const auto consider = [&](const std::string& name, const Tensor& dX, const Tensor& dY) {
    const bool with_dy = outputs_ == Outputs::dx_and_dy;
    if (identical(dX, exact_.dX) && (!with_dy || identical(dY, exact_.dY))) return;
    if (!passes(dX.view(), exact_.dX, bounds_.dX)) return;
    if (with_dy && !passes(dY.view(), exact_.dY, bounds_.dY)) return;
    passing.push_back(name);
  };
  const auto other = [&](const std::string& name, Tensor LossValues::*changed) {
    LossValues values = values_;
    values.*changed = zeros_like(values_.*changed);
    const reference::LossGradient decoy = reference::loss_gradient(values.inputs());
    consider(name, decoy.dX, decoy.dY);
  };
  consider("all-zero dX", zeros_like(exact_.dX), exact_.dY);
  consider("all-zero dY", exact_.dX, zeros_like(exact_.dY));
  other("without E", &LossValues::E);
  other("equal weights", &LossValues::X);
  return passing;
}

}  // namespace attest::proptest
