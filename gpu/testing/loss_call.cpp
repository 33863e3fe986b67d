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
      A1("A1", axes(n, d)),
      A2("A2", axes(n, d)),
      A3("A3", axes(n, d)),
      E("E", axes(n, d)),
      X("X", axes(d, d)),
      Y("Y", axes(d, d)),
      dX("dX", axes(d, d)),
      dY("dY", axes(d, d)) {
  Rng rng(1);
  for (Values* input : {&A1, &A2, &A3, &E, &X, &Y}) input->fill(rng);
}

attest_loss_args LossCall::arguments(std::size_t workspace_bytes) {
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
