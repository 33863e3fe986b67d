// Costs of counting: dry counts of the cost model's goals and of a million queries and keys, and
// counting with data against running without, verified first, timed in shuffled rounds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "certify/bench/loss_timing.hpp"
#include "certify/bench/timing/statistics.hpp"
#include "certify/bench/timing/timing.hpp"
#include "core/error.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"
#include "schedules/register.hpp"

namespace {

using attest::AbiProblem;
using attest::Direction;
using attest::InvalidProblem;
using attest::Problem;
using attest::certify::Quartiles;
using attest::io::FastMemory;
using attest::io::ScheduleRegistry;

constexpr int kUsage = 2, kInternal = 5;

struct Options {
  std::int64_t seqlen = 1024, head_dim = 64, fast_words = 12288, dry_seqlen = 1000000;
  int rounds = 5;
};

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Best schedule, its dry count and the bounds for each goal.
void goal_table(const ScheduleRegistry& schedules) {
  const auto count = [&](Direction direction, std::int64_t seqlen, std::int64_t fast_words) {
    const Problem problem = Problem::parse(fmt::format("sq={},d=64", seqlen));
    const AbiProblem form(problem, 1);
    const FastMemory capacity = FastMemory::of_words(fast_words);
    const auto best = best_schedule(schedules, direction, *form.get(), capacity).best();
    const auto spec = attest::io::ScheduleSpec::parse(best.schedule);
    const auto& family = schedules.find(spec.name);
    count_schedule(family, *family.make(spec, *form.get(), capacity), problem, capacity);
  };
  const double seconds = seconds_of([&] {
    for (const std::int64_t fast_words : {64, 256, 1024, 4096, 8192, 16384, 32768}) {
      count(Direction::forward, 4096, fast_words);
    }
    count(Direction::backward, 65536, 32768);
  });
  fmt::print("goals: 8 searches, dry counts and bounds   {:.3f} s\n", seconds);
}

void dry_counts(const ScheduleRegistry& schedules, const Options& options) {
  for (const char* mask : {"none", "causal_br"}) {
    double total = 0, longest = 0;
    std::string slowest;
    for (const auto& family : schedules.families()) {
      const bool loss = family->direction() == Direction::loss_gradient;
      const Problem problem = Problem::parse(fmt::format("sq={},d={},mask={}", options.dry_seqlen,
                                                         options.head_dim, loss ? "none" : mask));
      const AbiProblem form(problem, 1);
      // A schedule that stores a row of scores or P needs the row in fast memory.
      const auto capacity = FastMemory::of_words(options.fast_words + 2 * options.dry_seqlen);
      const auto schedule = family->make({family->name(), {}}, *form.get(), capacity);
      const double seconds = seconds_of([&] { schedule->dry_count(capacity); });
      total += seconds;
      if (seconds > longest) slowest = family->name();
      longest = std::max(longest, seconds);
    }
    fmt::print("dry counts of {} schedules, N = {}, {:<9}   {:.3f} s, longest {:.3f} s ({})\n",
               schedules.families().size(), options.dry_seqlen, mask, total, longest, slowest);
  }
}

// A schedule as a kernel, with data: counted, or run as it is.
enum class Mode : std::uint8_t { counted, native };

struct Runner {
  const ScheduleRegistry* schedules;
  std::string forward, own;  // own: the schedule of the direction that is timed
  Direction direction;
  FastMemory capacity;
  Mode mode;

  template <class Arguments>
  attest_status run(const std::string& text, const Arguments& args) const {
    const auto schedule = schedules->make(text, *args.problem, capacity);
    if (mode == Mode::native) {
      schedule->run(args);
    } else {
      schedule->count(capacity, args);
    }
    return ATTEST_OK;
  }
};

const Runner& runner_of(const void* self) { return *static_cast<const Runner*>(self); }

attest_status forward(const void* self, const attest_forward_args* args) {
  return runner_of(self).run(runner_of(self).forward, *args);
}
attest_status backward(const void* self, const attest_backward_args* args) {
  return runner_of(self).run(runner_of(self).own, *args);
}
attest_status loss_gradient(const void* self, const attest_loss_args* args) {
  return runner_of(self).run(runner_of(self).own, *args);
}

attest_kernel kernel_of(Runner& runner) {
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  attest_description& description = kernel.description;
  description.struct_size = sizeof description;
  description.name = runner.mode == Mode::native ? "native" : "counted";
  description.summary = "a schedule";
  description.device = ATTEST_CPU;
  description.dtypes = 1U << ATTEST_F32;
  description.numerics.struct_size = sizeof description.numerics;
  description.numerics.delta_from_p = runner.own.rfind("standard_bwd", 0) == 0 ? 1 : 0;
  kernel.self = &runner;
  switch (runner.direction) {
    case Direction::forward:
      description.directions = ATTEST_FORWARD;
      break;
    case Direction::backward:
      description.directions = ATTEST_FORWARD | ATTEST_BACKWARD;
      description.features = ATTEST_LSE;
      kernel.backward = backward;
      break;
    case Direction::loss_gradient:
      description.directions = ATTEST_LOSS_GRADIENT;
      kernel.loss_gradient = loss_gradient;
      return kernel;
  }
  kernel.forward = forward;
  return kernel;
}

// Verified on a short problem, then timed; and the operations of the long one that are of use.
attest::certify::Measurement timed(const std::vector<const attest_kernel*>& kernels,
                                   Direction direction, const Problem& problem,
                                   const Options& options, double& operations) {
  const Problem small = Problem::parse(
      fmt::format("sq={},d={}", std::min<std::int64_t>(options.seqlen, 128), options.head_dim));
  if (direction == Direction::loss_gradient) {
    attest::certify::verify_loss(kernels, small, 1);
    operations = attest::certify::useful_loss_flops(problem);
    return attest::certify::measure_loss(kernels, problem, options.rounds, 1);
  }
  const auto of =
      direction == Direction::backward ? attest::Direction::backward : attest::Direction::forward;
  attest::certify::verify(kernels, small, 1);
  operations = attest::certify::useful_flops(problem, of);
  return attest::certify::measure(kernels, problem, of, 1, options.rounds, 1);
}

void data_counts(const ScheduleRegistry& schedules, const Options& options) {
  const Problem problem =
      Problem::parse(fmt::format("sq={},d={}", options.seqlen, options.head_dim));
  const AbiProblem form(problem, 1);
  const auto capacity = FastMemory::of_words(options.fast_words);
  const auto spelled = [&](const std::string& name) {
    return schedules.make(name, *form.get(), capacity)->spec().to_string();
  };
  fmt::print("\ncounting with data, N = {}, d = {}, {} words, 1 thread: speed over native\n",
             options.seqlen, options.head_dim, options.fast_words);
  for (const auto& family : schedules.families()) {
    const Direction direction = family->direction();
    std::string text;
    try {
      text = spelled(family->name());
    } catch (const attest::io::CapacityExceeded&) {
      fmt::print("  {:<50} does not fit\n", family->name());
      continue;
    }
    Runner counted{&schedules, direction == Direction::forward ? text : spelled("flash2"),
                   text,       direction,
                   capacity,   Mode::counted};
    Runner native = counted;
    native.mode = Mode::native;
    const attest_kernel kernels[] = {kernel_of(counted), kernel_of(native)};
    double operations = 0;
    const auto measured =
        timed({&kernels[0], &kernels[1]}, direction, problem, options, operations);
    const Quartiles speed =
        attest::certify::paired_ratios(measured.timings[1].seconds, measured.timings[0].seconds);
    const double rate = operations / attest::certify::quartiles(measured.timings[1].seconds).median;
    fmt::print("  {:<50} {:>5.1f}% [{:.1f} {:.1f}] of {:.1f} GFLOP/s\n", text, 100 * speed.median,
               100 * speed.low, 100 * speed.high, rate / 1e9);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"count_bench times dry counts, and counting with data against running without."};
  Options options;
  app.add_option("--seqlen", options.seqlen, "rows of Q and of K, with data")
      ->check(CLI::PositiveNumber);
  app.add_option("--head-dim", options.head_dim, "head dimension")->check(CLI::PositiveNumber);
  app.add_option("--fast-words", options.fast_words, "fast memory that tiles are chosen for")
      ->check(CLI::PositiveNumber);
  app.add_option("--dry-seqlen", options.dry_seqlen, "rows of Q and of K, dry")
      ->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "timed rounds")->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
    const ScheduleRegistry& schedules = attest::dense_schedules();
    goal_table(schedules);
    dry_counts(schedules, options);
    data_counts(schedules, options);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  } catch (const InvalidProblem& error) {
    fmt::print(stderr, "count_bench: {}\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "count_bench: internal error: {}\n", error.what());
    return kInternal;
  }
}
