#include "schedules/engine/guarded_arguments.hpp"

#include <cstddef>
#include <cstring>

namespace attest::schedules {
namespace {

std::int64_t elements_of(const attest_tensor& tensor) {
  std::int64_t count = 1;
  for (std::int32_t axis = 0; axis < tensor.ndim; ++axis) count *= tensor.shape[axis];
  return count;
}

// Strides of packed elements, the last axis innermost.
std::vector<std::int64_t> packed_strides(const attest_tensor& tensor) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(tensor.ndim));
  std::int64_t stride = 1;
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= tensor.shape[axis];
  }
  return strides;
}

// Calls copy(element in the tensor's memory, number of the element when packed).
template <class Copy>
void for_each_element(const attest_tensor& tensor, std::size_t element_bytes, const Copy& copy) {
  auto* base = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  const std::vector<std::int64_t> packed = packed_strides(tensor);
  const std::int64_t count = elements_of(tensor);
  for (std::int64_t number = 0; number < count; ++number) {
    std::int64_t offset = 0, rest = number;
    for (std::size_t axis = 0; axis < packed.size(); ++axis) {
      offset += rest / packed[axis] * tensor.strides[axis];
      rest %= packed[axis];
    }
    copy(base + offset * static_cast<std::int64_t>(element_bytes),
         static_cast<std::size_t>(number));
  }
}

using Tensors = std::vector<const attest_tensor**>;

// Where arguments hold their inputs and outputs.
struct Roles {
  Tensors inputs, outputs;
};

Roles roles_of(attest_forward_args& args) {
  return {{&args.Q, &args.K, &args.V}, {&args.O, &args.LSE}};
}
Roles roles_of(attest_backward_args& args) {
  return {{&args.Q, &args.K, &args.V, &args.O, &args.LSE, &args.dO, &args.dLSE},
          {&args.dQ, &args.dK, &args.dV}};
}
Roles roles_of(attest_loss_args& args) {
  return {{&args.A1, &args.A2, &args.A3, &args.E, &args.X, &args.Y}, {&args.dX, &args.dY}};
}

}  // namespace

GuardedTensor::GuardedTensor(const attest_tensor& original)
    : original_(original),
      strides_(packed_strides(original)),
      pages_(static_cast<std::size_t>(elements_of(original)) * element_bytes()),
      tensor_(original) {
  for_each_element(original_, element_bytes(), [&](const std::byte* element, std::size_t number) {
    std::memcpy(pages_.data() + number * element_bytes(), element, element_bytes());
  });
  tensor_.data = pages_.data();
  tensor_.byte_offset = 0;
  tensor_.strides = strides_.data();
  pages_.close();
}

void GuardedTensor::copy_back() const {
  const io::OpenPages opened(pages_.data());
  for_each_element(original_, element_bytes(), [&](std::byte* element, std::size_t number) {
    std::memcpy(element, pages_.data() + number * element_bytes(), element_bytes());
  });
}

template <class Arguments>
GuardedArguments<Arguments>::GuardedArguments(const Arguments& args, io::SlowGuard guard)
    : args_(args) {
  if (guard == io::SlowGuard::open) return;
  const Roles roles = roles_of(args_);
  const auto move = [](const Tensors& tensors, std::vector<std::unique_ptr<GuardedTensor>>& to) {
    for (const attest_tensor** tensor : tensors) {
      if (*tensor == nullptr) continue;
      to.push_back(std::make_unique<GuardedTensor>(**tensor));
      *tensor = to.back()->get();
    }
  };
  move(roles.inputs, inputs_);
  move(roles.outputs, outputs_);
}

template <class Arguments>
void GuardedArguments<Arguments>::copy_back() const {
  for (const auto& output : outputs_) output->copy_back();
}

template class GuardedArguments<attest_forward_args>;
template class GuardedArguments<attest_backward_args>;
template class GuardedArguments<attest_loss_args>;

}  // namespace attest::schedules
