#include "gpu/kernels/loss_call.hpp"

namespace attest::gpu {
namespace {

using Given = LossArguments<simt::Counted>::Given;
using Made = LossArguments<simt::Counted>::Made;

template <class T>
MatrixView<simt::GlobalPointer<T>> add(simt::GlobalMemory& memory, const char* name,
                                       const attest_tensor* tensor) {
  if (tensor == nullptr) return {};
  auto* const data = reinterpret_cast<T*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
  const std::int64_t row = tensor->strides[0], column = tensor->strides[1];
  const bool empty = tensor->shape[0] == 0 || tensor->shape[1] == 0;
  const std::int64_t last = (tensor->shape[0] - 1) * row + (tensor->shape[1] - 1) * column;
  return {memory.add(name, data, empty ? 0 : last + 1), 0, row, column};
}

std::int64_t workspace_floats(std::int64_t n, std::int64_t d, LossScores scores) {
  return 5 * n * d + 2 * n + (scores == LossScores::stored ? n * n : 0);
}

}  // namespace

EmulatedLoss::EmulatedLoss(const attest_loss_args& args, LossScores scores) {
  LossArguments<Mem>& a = arguments;
  a.n = args.problem->seqlen_q;
  a.d = static_cast<int>(args.problem->head_dim_qk);
  a.A1 = add<const float>(memory, "A1", args.A1);
  a.A2 = add<const float>(memory, "A2", args.A2);
  a.A3 = add<const float>(memory, "A3", args.A3);
  a.E = add<const float>(memory, "E", args.E);
  a.X = add<const float>(memory, "X", args.X);
  a.Y = add<const float>(memory, "Y", args.Y);
  a.dX = add<float>(memory, "dX", args.dX);
  a.dY = add<float>(memory, "dY", args.dY);
  auto* workspace = static_cast<float*>(args.workspace);
  const auto take = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    const Made matrix{memory.add(name, workspace, rows * columns), 0, columns, 1};
    workspace += rows * columns;
    return matrix;
  };
  a.QX = take("QX", a.n, a.d);
  a.h = take("h", a.n, a.d);
  a.c = take("c", a.n, a.d);
  a.W = take("W", a.n, a.d);
  a.Z = take("Z", a.n, a.d);
  a.LSE = take("LSE", a.n, 1).data;
  a.D = take("D", a.n, 1).data;
  if (scores == LossScores::stored) a.S = take("S", a.n, a.n);
}

std::size_t loss_workspace_bytes(const attest_problem& problem, LossScores scores) {
  return sizeof(float) *
         static_cast<std::size_t>(workspace_floats(problem.seqlen_q, problem.head_dim_qk, scores));
}

bool loss_claimed(const attest_problem& p) {
  return p.dtype == ATTEST_F32 && p.batch == 1 && p.num_heads_q == 1 && p.num_heads_kv == 1 &&
         p.seqlen_q == p.seqlen_k && p.head_dim_qk == p.head_dim_v;
}

attest_kernel loss_kernel(const char* name, const char* summary) {
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  attest_description& d = kernel.description;
  d.struct_size = sizeof d;
  d.name = name;
  d.summary = summary;
  d.device = ATTEST_CPU;
  d.directions = ATTEST_LOSS_GRADIENT;
  d.dtypes = 1U << ATTEST_F32;
  d.features = ATTEST_ANY_STRIDES | ATTEST_LOSS_DY;
  d.numerics.struct_size = sizeof d.numerics;
  return kernel;
}

}  // namespace attest::gpu
