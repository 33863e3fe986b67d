#include "certify/bench/operands.hpp"

#include <algorithm>
#include <cstring>

#include "core/features/bias_tensor.hpp"
#include "core/features/pages.hpp"
#include "core/workspace.hpp"

namespace attest::certify {
namespace {

// The same elements in another dtype; both packed.
void copy_values(const Tensor& from, const Tensor& to) {
  const TensorView& view = to.view();
  const std::int64_t columns = view.rank() > 3 ? view.extent(3) : 1;
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t i = 0; i < view.extent(1); ++i) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) {
        for (std::int64_t c = 0; c < columns; ++c) view.set(from(b, i, h, c), b, i, h, c);
      }
    }
  }
}

std::vector<Axis> axes_of(const Tensor& tensor) {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < tensor.view().rank(); ++axis) {
    axes.push_back(tensor.view().axis(axis));
  }
  return axes;
}

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.view().size()) * size_bytes(tensor.view().dtype());
}

}  // namespace

Operands::Operands(const Problem& problem, std::int32_t threads, std::uint32_t features)
    : problem_(problem),
      form_(problem, threads, features),
      Q_("Q", problem.dtype, problem.q_axes()),
      K_("K", problem.dtype, stored_k_axes(problem)),
      V_("V", problem.dtype, stored_v_axes(problem)),
      dO_("dO", problem.dtype, problem.o_axes()),
      O_("O", problem.dtype, problem.o_axes()),
      LSE_("LSE", problem.dtype == DType::f64 ? DType::f64 : DType::f32, problem.lse_axes()),
      dQ_("dQ", problem.dtype, problem.q_axes()),
      dK_("dK", problem.dtype, problem.k_axes()),
      dV_("dV", problem.dtype, problem.v_axes()),
      dSinks_("dSinks", LSE_.view().dtype(), problem.sinks_axes()),
      bias_("bias", problem.bias_dtype(), problem.bias_axes()),
      dBias_("dBias", problem.bias_dtype(), problem.bias_axes()),
      whole_bias_("bias", bias_.view().data(), problem.bias_dtype(),
                  has_bias() ? broadcast_bias(problem, axes_of(bias_)) : axes_of(bias_)) {
  if (has_bias()) fill_bias(problem, whole_bias_);
}

void Operands::fill(const proptest::InputValues& values) {
  copy_values(values.Q, Q_);
  copy_values(in_pages(problem_, values.K), K_);
  copy_values(in_pages(problem_, values.V), V_);
  copy_values(values.dO, dO_);
}

attest_status Operands::call(const attest_kernel& kernel, Direction direction) {
  const Space& space = space_for(kernel, direction);
  const bool shows_lse = (kernel.description.features & ATTEST_LSE) != 0;
  const attest_tensor* const lse = shows_lse ? lse_.get() : nullptr;
  const attest_tensor* const bias = has_bias() ? of_bias_.get() : nullptr;
  if (direction == Direction::forward) {
    const attest_forward_args args{
        sizeof args,      form_.get(), q_.get(), k_.get(), v_.get(), o_.get(), lse,
        space.data.get(), space.bytes, nullptr,  nullptr,  0,        bias};
    return kernel.forward(kernel.self, &args);
  }
  const attest_backward_args args{sizeof args,
                                  form_.get(),
                                  q_.get(),
                                  k_.get(),
                                  v_.get(),
                                  o_.get(),
                                  lse,
                                  d_o_.get(),
                                  nullptr,
                                  d_q_.get(),
                                  d_k_.get(),
                                  d_v_.get(),
                                  space.data.get(),
                                  space.bytes,
                                  nullptr,
                                  nullptr,
                                  0,
                                  has_sinks() ? d_sinks_.get() : nullptr,
                                  bias,
                                  has_bias() ? d_bias_.get() : nullptr};
  return kernel.backward(kernel.self, &args);
}

void Operands::poison(Direction direction) {
  constexpr int kNanByte = 0xff;
  for (const Tensor* tensor : written(direction)) {
    std::memset(tensor->view().data(), kNanByte, bytes_of(*tensor));
  }
}

std::vector<Tensor> Operands::outputs(Direction direction) const {
  std::vector<Tensor> copies;
  for (const Tensor* tensor : written(direction)) copies.push_back(*tensor);
  return copies;
}

std::vector<const Tensor*> Operands::written(Direction direction) const {
  if (direction == Direction::forward) return {&O_, &LSE_};
  std::vector<const Tensor*> tensors{&dQ_, &dK_, &dV_};
  if (has_sinks()) tensors.push_back(&dSinks_);
  if (has_bias()) tensors.push_back(&dBias_);
  return tensors;
}

// Kept between calls, so that no candidate pays for fresh pages while the clock runs.
const Operands::Space& Operands::space_for(const attest_kernel& kernel, Direction direction) {
  const std::uint32_t flag = direction == Direction::forward ? ATTEST_FORWARD : ATTEST_BACKWARD;
  for (Space& space : spaces_) {
    if (space.owner == &kernel && space.direction == flag) return space;
  }
  const std::size_t bytes = workspace_bytes_of(kernel, *form_.get(), flag);
  Space& space = spaces_.emplace_back(Space{&kernel, flag, bytes, nullptr});
  if (bytes > 0) {
    space.data.reset(static_cast<std::byte*>(::operator new(bytes, kCacheLine)));
    std::fill_n(space.data.get(), bytes, std::byte{});
  }
  return space;
}

}  // namespace attest::certify
