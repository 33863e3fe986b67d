#pragma once

#include <cstddef>
#include <cstdint>

#include "certify/worker/process/protocol.hpp"

namespace attest::certify::worker {

/// Memory shared with one worker: a Control, then the buffers of the present call.
class Arena {
 public:
  /// Throws InvalidProblem when no shared memory is to be had.
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int descriptor() const { return descriptor_; }
  Control& control() const { return *reinterpret_cast<Control*>(base_); }

  /// Makes at least so many bytes accessible. Pointers made by `at` before are invalid afterwards.
  void reserve(std::size_t bytes);
  std::byte* at(std::size_t offset) const { return base_ + offset; }

  /// Gives pages beyond a few megabytes back.
  void trim();

 private:
  int descriptor_;
  std::size_t bytes_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace attest::certify::worker
