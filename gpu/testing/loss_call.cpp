#include "gpu/testing/loss_call.hpp"

#include <limits>

namespace attest::gpu::testing {
namespace {

std::vector<Axis> axes(std::int64_t rows, std::int64_t columns) {
  return {{"rows", rows, 0}, {"columns", columns, 0}};
}

std::string spelling(std::int64_t n, std::int64_t d) {
  return "sq=" + std::to_string(n) + ",d=" + std::to_string(d);
}

}  // namespace

LossCall::LossCall(std::int64_t n, std::int64_t d)
    : problem(Problem::parse(spelling(n, d))),
      form(problem, 1),
      A1("A1", DType::f32, axes(n, d), problem.strides),
      A2("A2", DType::f32, axes(n, d), problem.strides),
      A3("A3", DType::f32, axes(n, d), problem.strides),
      E("E", DType::f32, axes(n, d), problem.strides),
      X("X", DType::f32, axes(d, d), problem.strides),
      Y("Y", DType::f32, axes(d, d), problem.strides),
      dX("dX", DType::f32, axes(d, d), problem.strides),
      dY("dY", DType::f32, axes(d, d), problem.strides) {
  Rng rng(1);
  for (Values* input : {&A1, &A2, &A3, &E, &X, &Y}) input->fill(rng);
}

attest_loss_args LossCall::arguments(const attest_kernel& kernel) {
  const std::size_t workspace_bytes =
      kernel.workspace_bytes(kernel.self, form.get(), ATTEST_LOSS_GRADIENT);
  workspace_.assign(workspace_bytes / sizeof(float), std::numeric_limits<float>::quiet_NaN());
  attest_loss_args args{};
  args.struct_size = sizeof args;
  args.problem = form.get();
  args.A1 = A1.abi(), args.A2 = A2.abi(), args.A3 = A3.abi(), args.E = E.abi();
  args.X = X.abi(), args.Y = Y.abi(), args.dX = dX.abi(), args.dY = dY.abi();
  args.workspace = workspace_.data();
  args.workspace_bytes = workspace_bytes;
  return args;
}

}  // namespace attest::gpu::testing
