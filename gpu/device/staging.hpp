#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "gpu/device/buffer.hpp"
#include "gpu/device/finding.hpp"

namespace attest::gpu::cuda {

/// The device's copies of one call's tensors. Each has the strides of the host's and the whole
/// range from its first to its last element, so that what lies between the elements travels too.
class Staging {
 public:
  enum class Use { input, output };

  /// A tensor may span so much; the host's memory of huge strides is sparse, a device's is not.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  /// Tells whether a tensor spans more: the call must not be made.
  /// [gpu/device/errors_test "more than a device should copy"]
  bool too_large() const { return too_large_; }

  /// The tensor on the device; null stays null.
  const attest_tensor* tensor(const char* name, const attest_tensor* host, Use use);

  /// The problem with the mask's arrays, the slopes, the sinks and the block table
  /// on the device.
  const attest_problem* problem(const attest_problem& host);

  /// Poisoned; null for 0 bytes.
  void* workspace(std::size_t bytes);

  /// Fills the tensors by copies on the stream that begin late: a kernel that runs on another
  /// stream reads NaN. Returns before that.  [gpu/device/staging_test "a kernel that ignores its
  /// stream"]
  void fill(void* stream);

  /// Waits for the stream, then copies back each byte of an output that the kernel changed: outputs
  /// may lie between one another.
  ///
  /// Returns: the guard or input that the kernel wrote into, if any. Throws DeviceError when the
  /// work on the stream failed.  [gpu/device/staging_test]
  std::optional<Finding> finish(void* stream);

 private:
  struct Copy {
    Buffer source, target;        // both on the device
    std::vector<std::byte> sent;  // what the target began with
    std::byte* host;
    Use use;
  };

  void* add(const char* name, const void* host, std::size_t bytes, Use use);
  template <class T>
  const T* add_array(const char* name, const T* host, std::int64_t count);
  attest_lists add_lists(const attest_lists& host, std::int64_t lines);
  void add_sparsity(const attest_problem& host);

  std::deque<attest_tensor> tensors_;
  attest_problem problem_{};
  attest_block_mask blocks_{};
  attest_csr_mask csr_{};
  attest_nm_mask nm_{};
  attest_paged_kv paged_kv_{};
  attest_head_mask head_mask_{};
  std::vector<Copy> copies_;
  std::vector<Buffer> workspaces_;
  bool too_large_ = false;
};

}  // namespace attest::gpu::cuda
