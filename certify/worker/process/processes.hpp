#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "certify/worker/process/process.hpp"

namespace attest::certify::worker {

/// Starts the processes of one source, from several threads.
class Processes {
 public:
  Processes(Source source, const Limits& limits);

  /// A process that has loaded and was not called: forked from one that is kept for it, where the
  /// source forks and that one can be; else started. Throws InvalidProblem as Process does, and
  /// where what others are forked from has died twice in a row.
  /// [certify/worker/process/forked_test "a program that is forked"]
  std::unique_ptr<Process> begin();

  const Source& source() const { return source_; }

 private:
  Source source_;
  Limits limits_;
  std::atomic<bool> forks_;  // false once it was seen not to
  std::mutex mutex_;         // of the origin
  std::shared_ptr<Process> origin_;
};

}  // namespace attest::certify::worker
