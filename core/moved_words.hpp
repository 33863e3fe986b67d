#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

/// Words that the code of a kernel counts itself.
namespace attest {

/// Words that a call moved between slow memory, where its tensors and what its threads leave for
/// each other lie, and fast memory.
struct MovedWords {
  std::int64_t reads = 0, writes = 0;

  std::int64_t total() const { return reads + writes; }
};

/// Adds to MovedWords, or to none.
class WordCounter {
 public:
  explicit WordCounter(MovedWords* words) : words_(words) {}
  bool counts() const { return words_ != nullptr; }
  void read(std::int64_t words) const {
    if (words_ != nullptr) words_->reads += words;
  }
  void write(std::int64_t words) const {
    if (words_ != nullptr) words_->writes += words;
  }

 private:
  MovedWords* words_;
};

/// The code of a kernel, counted on one thread: each makes the call and adds to `words` what it
/// moves of Q, K, V, O, LSE, their gradients and what it leaves for itself; biases, sinks and masks
/// are not counted, as schedules do not count them. Outputs are those of the kernel bit for bit.
/// Null where a direction is not counted.  [schedules/kernel_words_test]
struct CountedCode {
  void (*forward)(const attest_forward_args& args, MovedWords* words) = nullptr;
  void (*backward)(const attest_backward_args& args, MovedWords* words) = nullptr;
};

}  // namespace attest
