#include "certify/count/instrumentation.hpp"

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "certify/worker/process/sanitizers.hpp"
#include "core/error.hpp"
#include "core/workspace.hpp"
#include "proptest/judge/loss.hpp"
#include "proptest/judge/run.hpp"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif

namespace attest::certify {
namespace {

// Valgrind and a sanitizer's shadow memory do not go together.
#if defined(CALLGRIND_START_INSTRUMENTATION) && !defined(ATTEST_SHADOW_MEMORY)
constexpr bool kHasRequests = true;
void start() { CALLGRIND_START_INSTRUMENTATION; }
void stop() { CALLGRIND_STOP_INSTRUMENTATION; }
#else
constexpr bool kHasRequests = false;
void start() {}
void stop() {}
#endif

// Memory whose every line is read once: it takes the place of all else in a cache of its size.
class Flush {
 public:
  explicit Flush(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        memory_(static_cast<std::byte*>(
                    std::aligned_alloc(kPage, (bytes_ + kPage - 1) / kPage * kPage)),
                &std::free) {
    if (!memory_) throw InvalidProblem("cache: not enough memory for one of this size");
  }
  void read() const {
    constexpr std::size_t kWord = 32;  // the shortest line
    const volatile std::byte* memory = memory_.get();
    for (std::size_t k = 0; k < bytes_; k += kWord) static_cast<void>(memory[k]);
  }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t bytes_;
  std::unique_ptr<std::byte, decltype(&std::free)> memory_;
};

// The kernel with its call in one direction instrumented.
struct Instrumented {
  const attest_kernel& kernel;
  const Flush& flush;

  template <class Call>
  attest_status operator()(const Call& call) const {
    start();
    const attest_status status = call();
    flush.read();
    stop();
    return status;
  }
};

const Instrumented& self_of(const void* self) { return *static_cast<const Instrumented*>(self); }

attest_kernel instrumented(const Instrumented& whole, Direction direction) {
  attest_kernel kernel = whole.kernel;
  // Everything but the one call goes to the kernel itself, which needs its own `self`.
  kernel.self = const_cast<Instrumented*>(&whole);
  kernel.workspace_bytes = [](const void* self, const attest_problem* problem,
                              std::uint32_t directions) -> std::size_t {
    return workspace_bytes_of(self_of(self).kernel, *problem, directions);
  };
  if (direction == Direction::forward) {
    kernel.forward = [](const void* self, const attest_forward_args* args) {
      const Instrumented& subject = self_of(self);
      return subject([&] { return subject.kernel.forward(subject.kernel.self, args); });
    };
  } else {
    kernel.forward = [](const void* self, const attest_forward_args* args) {
      const attest_kernel& inner = self_of(self).kernel;
      return inner.forward(inner.self, args);
    };
  }
  kernel.backward = [](const void* self, const attest_backward_args* args) {
    const Instrumented& subject = self_of(self);
    return subject([&] { return subject.kernel.backward(subject.kernel.self, args); });
  };
  kernel.loss_gradient = [](const void* self, const attest_loss_args* args) {
    const Instrumented& subject = self_of(self);
    return subject([&] { return subject.kernel.loss_gradient(subject.kernel.self, args); });
  };
  return kernel;
}

}  // namespace

bool can_instrument() { return kHasRequests; }

void call_instrumented(const attest_kernel& kernel, const Problem& problem, Direction direction,
                       std::int64_t flush_bytes) {
  const Direction wanted = direction;
  const std::string missing = proptest::unclaimed(kernel.description, problem, wanted);
  if (!missing.empty()) {
    throw InvalidProblem(std::string(kernel.description.name) + ": does not claim " + missing);
  }
  const Flush flush(flush_bytes);
  const Instrumented subject{kernel, flush};
  const attest_kernel called = instrumented(subject, direction);
  const proptest::Case c{problem, proptest::Values::normal, 1, 1};
  attest_status status = ATTEST_OK;
  std::string misconduct;
  if (wanted == Direction::loss_gradient) {
    const auto run =
        run_loss(called, problem, proptest::make_loss_values(problem, c.values, c.seed), c);
    status = run.status;
    misconduct = run.misconduct;
  } else {
    const auto run =
        proptest::run(called, problem, proptest::make_values(problem, c.values, c.seed), wanted, c);
    status = run.status;
    misconduct = run.misconduct;
  }
  if (status != ATTEST_OK) {
    throw InvalidProblem(std::string(kernel.description.name) +
                         ": refused or failed on this problem");
  }
  if (!misconduct.empty()) {
    throw InvalidProblem(std::string(kernel.description.name) + ": " + misconduct +
                         "; certify it first");
  }
}

}  // namespace attest::certify
