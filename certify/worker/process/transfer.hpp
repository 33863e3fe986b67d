#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "certify/worker/conduct/call_memory.hpp"

namespace attest::certify::worker {

/// Copies a text to memory of so many bytes, cut where it does not fit, ended by a zero.
void put_text(char* to, std::size_t bytes, std::string_view text);

/// Carries the arguments of one call to a worker's memory and the outputs back.
class Transfer {
 public:
  /// Buffers get addresses from `first` on. On an emulated device tensors say that they lie there.
  Transfer(Arena& arena, std::uint64_t first, bool on_emulated_device = false);

  CallBlock::Arguments& arguments() { return block_.arguments; }

  /// Copies the problem with its lists. Returns the worker's pointer, for the arguments.
  /// [certify/worker/isolation_test "sparsity patterns arrive"]
  const attest_problem* problem(const attest_problem& problem);

  /// Copies a tensor, gaps between its elements included; NULL stays NULL. An input that lies in
  /// one that was copied before lies in its copy. Returns the worker's pointer.
  /// [certify/worker/isolation_test "strides arrive", "K and V in one buffer arrive"]
  const attest_tensor* tensor(std::string_view name, const attest_tensor* tensor, Access access);

  /// The stream of the call; NULL on the CPU.
  void* stream() const;

  /// Poisoned workspace of its own; NULL for 0 bytes.
  void* workspace(std::size_t bytes);

  /// Memory for the text that a call may hand back; NULL stays NULL.
  /// [certify/worker/isolation_test "a call says why it fails"]
  char* message(char* text, std::size_t bytes);

  /// Writes everything where the worker finds it. Returns the first address that is free for the
  /// next call.
  std::uint64_t publish(Task task);

  /// Copies writable tensors back, gaps included, and the text as `printable` spells it, ended
  /// within its bytes.
  void copy_back() const;

  const CallMemory& memory() const { return memory_; }

  /// The name of an input that holds other bytes than were given: written through a mapping of the
  /// arena that the worker did not make.
  /// [certify/worker/isolation_test "every misbehaviour has its own finding"]
  std::optional<std::string> changed_input() const;

 private:
  struct Placed {
    const attest_tensor* tensor;
    std::size_t buffer;
    std::uint64_t offset;  // of its first element in the buffer
    Access access;
  };
  Placed place(std::string_view name, const attest_tensor* tensor, Access access);
  struct List {
    const void* data;
    std::size_t bytes, buffer;
  };
  const void* list(std::string_view name, const void* data, std::size_t bytes);
  attest_lists lists(std::string_view name, const attest_lists& given, std::int64_t lines);
  void sparsity(const attest_problem& problem);
  std::uint64_t in_block(const void* member) const;

  bool on_emulated_device_;
  Arena& arena_;
  CallMemory memory_;
  std::size_t block_index_;
  CallBlock block_;
  std::vector<Placed> tensors_;
  std::vector<List> lists_;
  char* text_ = nullptr;  // where the caller wants it
  std::size_t text_bytes_ = 0, text_buffer_ = 0;
};

}  // namespace attest::certify::worker
