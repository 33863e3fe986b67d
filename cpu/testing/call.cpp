#include "cpu/testing/call.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace attest::cpu::testing {
namespace {

constexpr std::byte kPoison{0xff};
constexpr std::size_t kGuard = 256;

std::vector<Axis> lay_out(std::vector<Axis> axes, Memory memory, Rng& rng) {
  std::vector<std::size_t> order(axes.size());  // innermost first
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::int64_t stride = 1;
  if (memory == Memory::scattered) {
    for (std::size_t last = order.size(); last > 1; --last) {
      const auto other = rng.between(0, static_cast<std::int64_t>(last) - 1);
      std::swap(order[last - 1], order[static_cast<std::size_t>(other)]);
    }
    stride = rng.between(1, 3);
  }
  for (const std::size_t axis : order) {
    axes[axis].stride = stride;
    stride *= std::max<std::int64_t>(axes[axis].extent, 1);
    if (memory == Memory::scattered) stride += rng.between(0, 3);
  }
  return axes;
}

std::size_t bytes_spanned(const std::vector<Axis>& axes, DType dtype) {
  std::int64_t last = 1;
  for (const Axis& axis : axes) last += std::max<std::int64_t>(axis.extent - 1, 0) * axis.stride;
  return static_cast<std::size_t>(last) * size_bytes(dtype);
}

}  // namespace

Strided::Strided(const char* name, DType dtype, std::vector<Axis> axes, Memory memory, Rng& rng)
    : storage_([&] {
        axes = lay_out(axes, memory, rng);
        return std::vector<std::byte>(bytes_spanned(axes, dtype) + kGuard, kPoison);
      }()),
      view_(name, storage_.data() + (memory == Memory::packed ? 0 : kGuard / 2), dtype, axes),
      form_(view_),
      tensor_(*form_.get()) {
  tensor_.byte_offset = memory == Memory::packed ? 0 : kGuard / 2;
  tensor_.data = storage_.data();
}

void Strided::fill(Rng& rng, double size) {
  for_each_element(view_, [&](auto... index) { view_.set(size * rng.normal(), index...); });
}

Call::Call(const Problem& p, std::uint64_t seed, const Options& o)
    : problem(p),
      form(o.features ? AbiProblem(problem, o.threads, *o.features)
                      : AbiProblem(problem, o.threads)),
      layout_(seed, 1),
      dlse_(o.dlse),
      Q("Q", p.dtype, p.q_axes(), o.memory, layout_),
      K("K", p.dtype, p.k_axes(), o.memory, layout_),
      V("V", p.dtype, p.v_axes(), o.memory, layout_),
      dO("dO", p.dtype, p.o_axes(), o.memory, layout_),
      dLSE("dLSE", DType::f32, p.lse_axes(), o.memory, layout_),
      O("O", p.dtype, p.o_axes(), o.memory, layout_),
      LSE("LSE", DType::f32, p.lse_axes(), o.memory, layout_),
      dQ("dQ", p.dtype, p.q_axes(), o.memory, layout_),
      dK("dK", p.dtype, p.k_axes(), o.memory, layout_),
      dV("dV", p.dtype, p.v_axes(), o.memory, layout_) {
  Rng values(seed, 2);
  for (Strided* input : {&Q, &K, &V, &dO, &dLSE}) input->fill(values, o.size);
}

std::byte* Call::reserve(std::size_t bytes) {
  workspace_bytes_ = bytes;
  workspace_.assign(bytes + 2 * kGuard, kPoison);
  return workspace_.data() + kGuard;
}

attest_forward_args Call::forward_arguments() const {
  attest_forward_args args{};
  args.struct_size = sizeof args;
  args.problem = form.get();
  args.Q = Q.abi(), args.K = K.abi(), args.V = V.abi();
  args.O = O.abi(), args.LSE = LSE.abi();
  return args;
}

attest_backward_args Call::backward_arguments() const {
  attest_backward_args args{};
  args.struct_size = sizeof args;
  args.problem = form.get();
  args.Q = Q.abi(), args.K = K.abi(), args.V = V.abi();
  args.O = O.abi(), args.LSE = LSE.abi(), args.dO = dO.abi();
  args.dLSE = dlse_ == Dlse::given ? dLSE.abi() : nullptr;
  args.dQ = dQ.abi(), args.dK = dK.abi(), args.dV = dV.abi();
  return args;
}

attest_status Call::forward(const attest_kernel& kernel) {
  attest_forward_args args = forward_arguments();
  args.workspace_bytes = kernel.workspace_bytes(kernel.self, form.get(), ATTEST_FORWARD);
  args.workspace = reserve(args.workspace_bytes);
  return kernel.forward(kernel.self, &args);
}

attest_status Call::backward(const attest_kernel& kernel) {
  attest_backward_args args = backward_arguments();
  args.workspace_bytes = kernel.workspace_bytes(kernel.self, form.get(), ATTEST_BACKWARD);
  args.workspace = reserve(args.workspace_bytes);
  return kernel.backward(kernel.self, &args);
}

bool Call::workspace_intact() const {
  const auto poisoned = [](std::byte b) { return b == kPoison; };
  return std::all_of(workspace_.begin(), workspace_.begin() + kGuard, poisoned) &&
         std::all_of(workspace_.end() - kGuard, workspace_.end(), poisoned);
}

NaiveInputs Call::inputs() const {
  return {Q.view(), K.view(), V.view(), dO.view(),
          dlse_ == Dlse::given ? dLSE.view() : TensorView{}};
}

std::vector<std::uint64_t> Call::output_bits() const { return bits_of({&O, &LSE, &dQ, &dK, &dV}); }

std::vector<std::uint64_t> bits_of(const std::vector<const Strided*>& tensors) {
  std::vector<std::uint64_t> bits;
  for (const Strided* tensor : tensors) {
    const TensorView& view = tensor->view();
    for_each_element(view, [&](auto... index) { bits.push_back(view.bits(index...)); });
  }
  return bits;
}

double worst_ratio(const TensorView& got, const Bounded& expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double worst = 0;
  for_each_element(got, [&](auto... index) {
    const double exact = expected.value(index...), bound = expected.bound(index...);
    const double error = std::abs(got(index...) - exact);
    if (got(index...) == exact) return;
    worst = error <= bound ? std::max(worst, error / bound) : kInfinity;
  });
  return worst;
}

}  // namespace attest::cpu::testing
