#include "certify/bench/loss_timing.hpp"

#include <string>

#include "core/error.hpp"
#include "core/tensor.hpp"
#include "proptest/judge/loss.hpp"
#include "proptest/judge/truth/truth.hpp"

namespace attest::certify {
namespace {

// The values in float32.
Tensor stored(const Tensor& values) {
  const TensorView& view = values.view();
  Tensor tensor(view.name(), DType::f32, {view.axis(0), view.axis(1)});
  for (std::int64_t i = 0; i < view.extent(0); ++i) {
    for (std::int64_t c = 0; c < view.extent(1); ++c) tensor.set(view(i, c), i, c);
  }
  return tensor;
}

}  // namespace

void verify_loss(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                 std::uint64_t seed) {
  const proptest::Case c{problem, proptest::Values::normal, seed, 1};
  const proptest::LossValues values = proptest::make_loss_values(problem, c.values, seed);
  for (const attest_kernel* kernel : kernels) {
    const proptest::LossRun run = proptest::run_loss(*kernel, problem, values, c);
    const proptest::LossTruth truth(kernel->description, problem, values);
    const bool passed = run.status == ATTEST_OK && run.misconduct.empty() &&
                        proptest::gravest(truth.judge(run)).verdict == Verdict::passed;
    if (passed) continue;
    throw InvalidProblem(std::string(kernel->description.name) + ": not timed, because on " +
                         problem.to_string() + " it does not pass; fix it or leave it out");
  }
}

Measurement measure_loss(const std::vector<const attest_kernel*>& kernels, const Problem& problem,
                         int rounds, std::uint64_t seed) {
  const proptest::LossValues values =
      proptest::make_loss_values(problem, proptest::Values::normal, seed);
  const Tensor A1 = stored(values.A1), A2 = stored(values.A2), A3 = stored(values.A3),
               E = stored(values.E), X = stored(values.X), Y = stored(values.Y);
  const Tensor dX("dX", DType::f32, {X.view().axis(0), X.view().axis(1)});
  const AbiProblem form(problem, 1);
  const AbiTensor a1(A1.view()), a2(A2.view()), a3(A3.view()), e(E.view()), x(X.view()),
      y(Y.view()), dx(dX.view());
  attest_loss_args args{};
  args.struct_size = sizeof args;
  args.problem = form.get();
  args.A1 = a1.get(), args.A2 = a2.get(), args.A3 = a3.get(), args.E = e.get();
  args.X = x.get(), args.Y = y.get(), args.dX = dx.get();
  return measure_calls(kernels, problem, rounds, seed, [&](const attest_kernel& kernel) {
    return kernel.loss_gradient(kernel.self, &args);
  });
}

double useful_loss_flops(const Problem& problem) {
  const auto n = static_cast<double>(problem.seqlen_q),
             d = static_cast<double>(problem.head_dim_qk);
  return 8 * n * n * d + 6 * n * d * d;
}

}  // namespace attest::certify
