#include "core/testing/kernel_call.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/features/bias_tensor.hpp"
#include "core/features/pages.hpp"
#include "core/features/shared_columns.hpp"

namespace attest::testing {
namespace {

Placement placed(std::vector<Axis> axes, Memory memory, Strides strides, Rng& layout) {
  return memory == Memory::scattered ? scattered(std::move(axes), layout)
                                     : spelled(std::move(axes), strides);
}

// A layout drawn only where there is a bias: without one the other tensors lie as they did.
Placement bias_placed(const Problem& p, Memory memory, Rng& layout) {
  if (p.bias.kind == Bias::Kind::none) return spelled(p.bias_axes());
  Placement placement = placed(p.bias_axes(), memory, p.strides, layout);
  placement.axes = broadcast_bias(p, placement.axes);
  return placement;
}

void fill(const std::vector<StoredTensor*>& inputs, std::uint64_t seed, double size) {
  Rng values(seed, 2);
  for (StoredTensor* input : inputs) input->fill([&] { return size * values.normal(); });
}

bool all_gaps_intact(const std::vector<const StoredTensor*>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const StoredTensor* tensor) { return tensor->gaps_intact(); });
}

}  // namespace

Call::Call(const Problem& p, std::uint64_t seed, const Options& o)
    : problem(p),
      options(o),
      form(o.features ? AbiProblem(problem, o.threads, *o.features)
                      : AbiProblem(problem, o.threads)),
      layout_(seed, 1),
      Q("Q", p.dtype, placed(p.q_axes(), o.memory, p.strides, layout_)),
      K("K", p.dtype, placed(stored_k_axes(p), o.memory, p.strides, layout_)),
      V("V", p.dtype, placed(stored_v_axes(p), o.memory, p.strides, layout_)),
      dO("dO", p.dtype, placed(p.o_axes(), o.memory, p.strides, layout_)),
      dLSE("dLSE", DType::f32, placed(p.lse_axes(), o.memory, p.strides, layout_)),
      O("O", p.dtype, placed(p.o_axes(), o.memory, p.strides, layout_)),
      LSE("LSE", DType::f32, placed(p.lse_axes(), o.memory, p.strides, layout_)),
      dQ("dQ", p.dtype, placed(p.q_axes(), o.memory, p.strides, layout_)),
      dK("dK", p.dtype, placed(p.k_axes(), o.memory, p.strides, layout_)),
      dV("dV", p.dtype, placed(p.v_axes(), o.memory, p.strides, layout_)),
      dSinks("dSinks", DType::f32, spelled(p.sinks_axes())),
      bias("bias", p.bias_dtype(), bias_placed(p, o.memory, layout_)),
      dBias("dBias", p.bias_dtype(), placed(p.bias_axes(), o.memory, p.strides, layout_)) {
  fill({&Q, &K, &V, &dO, &dLSE}, seed, o.size);
  if (has_bias()) fill_bias(p, bias.view());
  poison_unused(p, K.view());
  poison_unused(p, V.view());
  if (p.shared_kv != SharedKv::none) share_columns();
}

void Call::share_columns() {
  const SharedColumns columns = problem.shared_columns();
  const TensorView wide = columns.of_k ? K.view() : V.view(),
                   narrow = columns.of_k ? V.view() : K.view(),
                   shared = columns_of(wide, narrow.name(), columns.first,
                                       narrow.extent(narrow.rank() - 1));
  for_each_element(narrow, [&](auto... index) { narrow.set(shared(index...), index...); });
  shared_ = std::make_unique<AbiTensor>(shared);
}

const attest_tensor* Call::k() const {
  return shared_ && !problem.shared_columns().of_k ? shared_->get() : K.abi();
}

const attest_tensor* Call::v() const {
  return shared_ && problem.shared_columns().of_k ? shared_->get() : V.abi();
}

attest_forward_args Call::forward_arguments() const {
  attest_forward_args args{};
  args.struct_size = sizeof args;
  args.problem = form.get();
  args.Q = Q.abi(), args.K = k(), args.V = v();
  args.O = O.abi(), args.LSE = LSE.abi();
  args.bias = has_bias() ? bias.abi() : nullptr;
  return args;
}

attest_backward_args Call::backward_arguments() const {
  attest_backward_args args{};
  args.struct_size = sizeof args;
  args.problem = form.get();
  args.Q = Q.abi(), args.K = k(), args.V = v();
  args.O = O.abi(), args.LSE = LSE.abi(), args.dO = dO.abi();
  args.dLSE = options.dlse == Dlse::given ? dLSE.abi() : nullptr;
  args.dQ = dQ.abi(), args.dK = dK.abi(), args.dV = dV.abi();
  args.dSinks = problem.sinks == Sinks::none ? nullptr : dSinks.abi();
  args.bias = has_bias() ? bias.abi() : nullptr;
  args.dBias = has_bias() ? dBias.abi() : nullptr;
  return args;
}

attest_forward_args Call::forward_arguments(const attest_kernel& kernel) {
  attest_forward_args args = forward_arguments();
  if ((kernel.description.features & ATTEST_LSE) == 0) args.LSE = nullptr;
  workspace_.give(args, kernel, ATTEST_FORWARD);
  return args;
}

attest_backward_args Call::backward_arguments(const attest_kernel& kernel) {
  attest_backward_args args = backward_arguments();
  if ((kernel.description.features & ATTEST_LSE) == 0) args.LSE = nullptr;
  workspace_.give(args, kernel, ATTEST_BACKWARD);
  return args;
}

attest_status Call::forward(const attest_kernel& kernel) {
  const attest_forward_args args = forward_arguments(kernel);
  return kernel.forward(kernel.self, &args);
}

attest_status Call::backward(const attest_kernel& kernel) {
  const attest_backward_args args = backward_arguments(kernel);
  return kernel.backward(kernel.self, &args);
}

bool Call::gaps_intact() const {
  return workspace_.guards_intact() &&
         all_gaps_intact({&Q, &K, &V, &dO, &dLSE, &O, &LSE, &dQ, &dK, &dV, &dSinks, &bias, &dBias});
}

std::vector<std::uint64_t> Call::output_bits() const {
  return bits_of({&O, &LSE, &dQ, &dK, &dV, &dSinks, &dBias});
}

Problem loss_problem(std::int64_t n, std::int64_t d) {
  return Problem::parse("sq=" + std::to_string(n) + ",d=" + std::to_string(d));
}

LossCall::LossCall(const Problem& p, std::uint64_t seed, Memory memory, double size,
                   std::int32_t threads)
    : problem(p),
      form(problem, threads),
      layout_(seed, 1),
      A1("A1", DType::f32, placed(rows(), memory, p.strides, layout_)),
      A2("A2", DType::f32, placed(rows(), memory, p.strides, layout_)),
      A3("A3", DType::f32, placed(rows(), memory, p.strides, layout_)),
      E("E", DType::f32, placed(rows(), memory, p.strides, layout_)),
      X("X", DType::f32, placed(square(), memory, p.strides, layout_)),
      Y("Y", DType::f32, placed(square(), memory, p.strides, layout_)),
      dX("dX", DType::f32, placed(square(), memory, p.strides, layout_)),
      dY("dY", DType::f32, placed(square(), memory, p.strides, layout_)) {
  fill({&A1, &A2, &A3, &E, &X, &Y}, seed, size);
}

std::vector<Axis> LossCall::rows() const {
  return {{"seqlen", problem.seqlen_q, 0}, {"head_dim", problem.head_dim_qk, 0}};
}

std::vector<Axis> LossCall::square() const {
  return {{"head_dim", problem.head_dim_qk, 0}, {"head_dim", problem.head_dim_qk, 0}};
}

attest_loss_args LossCall::arguments() const {
  attest_loss_args args{};
  args.struct_size = sizeof args;
  args.problem = form.get();
  args.A1 = A1.abi(), args.A2 = A2.abi(), args.A3 = A3.abi(), args.E = E.abi();
  args.X = X.abi(), args.Y = Y.abi(), args.dX = dX.abi(), args.dY = dY.abi();
  return args;
}

attest_loss_args LossCall::arguments(const attest_kernel& kernel) {
  attest_loss_args args = arguments();
  if ((kernel.description.features & ATTEST_LOSS_DY) == 0) args.dY = nullptr;
  workspace_.give(args, kernel, ATTEST_LOSS_GRADIENT);
  return args;
}

attest_status LossCall::run(const attest_kernel& kernel) {
  const attest_loss_args args = arguments(kernel);
  return kernel.loss_gradient(kernel.self, &args);
}

bool LossCall::gaps_intact() const {
  return workspace_.guards_intact() && all_gaps_intact({&A1, &A2, &A3, &E, &X, &Y, &dX, &dY});
}

}  // namespace attest::testing
