#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "io/machine/guarded_pages.hpp"

namespace attest::schedules {

/// The elements of a tensor, packed on guarded pages.
class GuardedTensor {
 public:
  explicit GuardedTensor(const attest_tensor& original);

  /// A tensor of the same shape on the guarded pages.
  const attest_tensor* get() const { return &tensor_; }

  /// Copies the elements back to the original.
  void copy_back() const;

 private:
  std::size_t element_bytes() const { return original_.dtype.bits / 8u; }

  attest_tensor original_;
  std::vector<std::int64_t> strides_;
  io::GuardedPages pages_;
  attest_tensor tensor_;
};

/// The arguments of a call with all tensors on guarded pages, or as they are. Outputs go back to
/// the caller's memory with copy_back().
template <class Arguments>
class GuardedArguments {
 public:
  GuardedArguments(const Arguments& args, io::SlowGuard guard);
  GuardedArguments(const GuardedArguments&) = delete;
  GuardedArguments& operator=(const GuardedArguments&) = delete;

  const Arguments& get() const { return args_; }
  void copy_back() const;

 private:
  Arguments args_;
  std::vector<std::unique_ptr<GuardedTensor>> inputs_, outputs_;
};

}  // namespace attest::schedules
