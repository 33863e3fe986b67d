#include "gpu/kernels/emulated/emulated_loss.hpp"

namespace attest::gpu {
namespace {

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

}  // namespace

EmulatedLoss::EmulatedLoss(const attest_loss_args& args)
    : workspace(args.workspace, args.workspace_bytes) {
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
  a.QX = take("QX", a.n, a.d);
  a.h = take("h", a.n, a.d);
  a.c = take("c", a.n, a.d);
  a.W = take("W", a.n, a.d);
  a.Z = take("Z", a.n, a.d);
  a.LSE = take("LSE", a.n, 1).data;
  a.D = take("D", a.n, 1).data;
}

std::int64_t loss_words(const attest_problem& problem) {
  return (5 * problem.head_dim_qk + 2) * problem.seqlen_q;
}

bool loss_claimed(const AttentionShape& shape) {
  return shape.batch == 1 && shape.num_heads_q == 1 && shape.num_heads_kv == 1 &&
         shape.seqlen_q == shape.seqlen_k && shape.head_dim_qk == shape.head_dim_v;
}

}  // namespace attest::gpu
