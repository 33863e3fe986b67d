#include "certify/worker/process/processes.hpp"

#include <utility>

#include "core/error.hpp"

namespace attest::certify::worker {

Processes::Processes(Source source, const Limits& limits)
    : source_(std::move(source)), limits_(limits), forks_(source_.forks) {}

std::unique_ptr<Process> Processes::begin() {
  constexpr int kAttempts = 2;
  for (int attempt = 1; forks_; ++attempt) {
    std::shared_ptr<Process> origin;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!origin_) {
        auto first = std::make_unique<Process>(source_, limits_);
        if (!first->forks()) {
          forks_ = false;
          return first;  // it makes calls itself
        }
        origin_ = std::move(first);
      }
      origin = origin_;
    }
    try {
      return std::make_unique<Process>(source_, limits_, origin.get());
    } catch (const InvalidProblem&) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!origin->forks()) {
        forks_ = false;
      } else if (origin->alive() || attempt == kAttempts) {
        throw;
      } else if (origin_ == origin) {
        origin_.reset();  // somebody has ended it
      }
    }
  }
  Source alone = source_;
  alone.forks = false;
  return std::make_unique<Process>(alone, limits_);
}

}  // namespace attest::certify::worker
