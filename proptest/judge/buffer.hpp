#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/tensor.hpp"

namespace attest::proptest {

/// Part of a tensor that Strides::broadcast repeats: a head of the inputs K and V, a row of dO.
enum class Repeat : std::uint8_t { none, heads, rows };

/// Strides of a (batch, seqlen, heads, dim) tensor in a layout. Strides::mixed is resolved by the
/// caller; here it is packed.
std::vector<Axis> lay_out(std::vector<Axis> axes, Layout layout, Strides strides, Repeat repeat);

/// Bits of an output's element before it is written: a signaling NaN. Arithmetic gives quiet ones,
/// so a NaN that a kernel read beside its tensors or in its workspace cannot be taken for it.
/// [proptest/values/case_test "what is unwritten is told from every other NaN"]
std::uint64_t unwritten_bits(DType dtype);

/// Memory of one tensor as a kernel sees it. Guards before and after and gaps between the elements
/// hold NaN bytes (0xff), elements unwritten_bits: never a plausible value.
class Buffer {
 public:
  /// Nothing is written yet. Sparse memory, so huge strides cost only the pages touched.
  Buffer(std::string_view name, DType dtype, const std::vector<Axis>& axes);

  const TensorView& view() const { return view_; }

  /// Copies values in, rounded to the dtype.
  void fill(const Tensor& values);

  /// So many of its last axis' elements from `first` on, as a tensor in the same memory.
  /// Memory between its elements is the whole's, whose `disturbed` sees it.
  Buffer columns(std::string_view name, std::int64_t first, std::int64_t count) const;

  /// A packed copy in the buffer's own dtype.
  Tensor packed_copy() const;

  /// "" when guards and gaps still hold 0xff, else what was overwritten. Huge buffers check the
  /// guards and the element next to every element only.  [proptest/values/case_test "buffers
  /// notice"]
  std::string disturbed() const;

  /// "" when every element has the bits of `before`, a packed copy taken earlier; else that the
  /// input was modified.  [proptest/values/case_test "inputs notice a changed bit"]
  std::string changed_since(const Tensor& before) const;

 private:
  Buffer() = default;
  friend class SameMemory;
  struct Mapping;
  std::shared_ptr<Mapping> mapping_;
  TensorView view_;
  bool is_part_ = false;
};

/// While one lives, every `run` of its thread has its tensors where its first run had them, where
/// their sizes are the same: as callers do that keep their memory. Not for strides=huge.
/// [proptest/suites/same_memory_test "tensors of several runs"]
class SameMemory {
 public:
  SameMemory();
  ~SameMemory();
  SameMemory(const SameMemory&) = delete;
  SameMemory& operator=(const SameMemory&) = delete;

  /// Which one lives on this thread, and which of its runs goes on; zeros where there is none.
  struct Run {
    std::uint64_t scope = 0, run = 0;
  };
  static Run current();

  /// Begins a run: the next buffer lies where the first one did.
  static void begin_run();

 private:
  friend class Buffer;
  static std::shared_ptr<Buffer::Mapping> mapping(std::size_t payload);

  SameMemory* outer_;
  Run run_;
  std::vector<std::shared_ptr<Buffer::Mapping>> kept_;
  std::size_t next_ = 0;
};

/// A buffer in the ABI's form. `byte_offset` of the bytes before the first element are given
/// through the tensor's byte_offset: a kernel that ignores it meets the guard. Requires: at most
/// the size of a guard (4096). Else throws InternalError. [proptest/values/case_test "a byte offset
/// leads to the same elements"]
class KernelTensor {
 public:
  KernelTensor(const Buffer& buffer, std::uint64_t byte_offset);
  const attest_tensor* get() const { return &tensor_; }

  /// "" while the struct, the shape and the strides are as they were; else what was modified.
  /// [proptest/values/case_test "inputs notice a changed bit"]
  std::string changed() const;

 private:
  AbiTensor abi_;  // holds the shape and the strides
  attest_tensor tensor_;
  TensorView view_;
  std::array<std::byte, sizeof(attest_tensor)> bytes_before_{};
};

/// Byte offset of every tensor of a case: none where tensors are packed.
std::uint64_t byte_offset_of(Strides strides);

/// An input buffer and its values, to see whether a kernel changed them.
struct Input {
  Buffer buffer;
  Tensor before;

  Input(const Tensor& values, DType dtype, const std::vector<Axis>& axes);
  /// Columns of another input's memory.
  explicit Input(const Buffer& columns) : buffer(columns), before(columns.packed_copy()) {}

  /// "" or what was modified.
  std::string changed() const;
};

/// Workspace with guards on both sides, NaN-poisoned.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes);
  void* data();
  std::size_t size() const { return bytes_; }
  std::string disturbed() const;

 private:
  std::size_t bytes_;
  std::vector<unsigned char> storage_;
};

}  // namespace attest::proptest
