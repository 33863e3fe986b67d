#include "certify/cli/timer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "certify/bench/arithmetic_peak.hpp"
#include "certify/bench/timing/timing_process.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/interrupt.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/printable.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {
namespace {

struct TimerOptions {
  std::vector<std::string> kernels;
  std::string problem, direction;
  BenchSetting setting;
};

std::vector<std::string> timer_words(const std::vector<const attest_kernel*>& kernels,
                                     const BenchSetting& setting, Direction direction) {
  std::vector<std::string> words{"timer",
                                 "--problem=" + setting.problem.to_string(),
                                 fmt::format("--direction={}", word_of(direction)),
                                 fmt::format("--threads={}", setting.threads),
                                 fmt::format("--rounds={}", setting.rounds),
                                 fmt::format("--seed={}", setting.seed),
                                 "--"};
  for (const attest_kernel* kernel : kernels) words.emplace_back(kernel->description.name);
  return words;
}

Refusal refusal_of(const attest_kernel& kernel, Verdict verdict, const std::string& why,
                   const std::string& details) {
  Refusal refused;
  refused.result.kernel = kernel.description.name;
  refused.result.verdict = verdict;
  refused.why = why;
  refused.details = printable(details);
  return refused;
}

Measurement timed_here(const Registry& registry, const TimerOptions& options, Heartbeat& beat) {
  std::vector<const attest_kernel*> kernels;
  for (const std::string& word : options.kernels) {
    beat.begins(kernels.size(), Heartbeat::kLoading);
    kernels.push_back(&find_in_process(registry, word));
    beat.ends();
  }
  const BenchSetting& setting = options.setting;
  const Direction direction =
      options.direction == word_of(Direction::forward) ? Direction::forward : Direction::backward;
  return measure_watched(kernels, Problem::parse(options.problem), direction, setting.threads,
                         setting.rounds, setting.seed, beat);
}

// An objection to those that are faster than the machine. Its speed is measured here, for a library
// may change the clocks of the process that loads it.
void object_to_fast_ones(const std::vector<const attest_kernel*>& kernels,
                         const BenchSetting& setting, Direction direction, Measurement& measured) {
  const std::vector<KernelTime> rows = kernel_times(measured, setting, direction);
  std::optional<double> ceiling;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    std::string& objection = measured.timings[k].objection;
    if (!objection.empty()) continue;
    if (!multiplies_in_float32(kernels[k]->description, setting.problem)) continue;
    if (too_fast(rows[k], setting, arithmetic_peak_flops()).empty()) continue;
    if (!ceiling) ceiling = arithmetic_ceiling_flops();
    if (ceiling) objection = too_fast(rows[k], setting, *ceiling);
  }
}

}  // namespace

Times times_of(std::vector<const attest_kernel*> kernels, const BenchSetting& setting,
               Direction direction, double timeout_seconds) {
  Times times;
  Measurement measured;
  const auto refuse = [&](std::size_t k, Verdict verdict, const char* how,
                          const std::string& details) {
    times.refused.push_back(
        refusal_of(*kernels.at(k), verdict,
                   fmt::format("{} {} while it was timed", how, word_of(direction)), details));
    kernels.erase(kernels.begin() + static_cast<std::ptrdiff_t>(k));
  };
  while (!kernels.empty()) {
    TimedApart timed =
        time_apart(timer_words(kernels, setting, direction), timeout_seconds, interrupted);
    times.interrupted = timed.interrupted;
    if (timed.interrupted) return times;
    measured = std::move(timed.measurement);
    if (!timed.death) break;
    refuse(timed.death->kernel, Verdict::crashed, timed.death->hung ? "hung in" : "died in",
           timed.death->how);
  }
  if (kernels.empty()) return times;
  object_to_fast_ones(kernels, setting, direction, measured);
  for (std::size_t k = kernels.size(); k-- > 0;) {
    KernelTiming& timing = measured.timings[k];
    timing.kernel = kernels[k]->description.name;  // with the library's path
    if (timing.objection.empty()) continue;
    refuse(k, Verdict::violated, "was not right", timing.objection);
    measured.timings.erase(measured.timings.begin() + static_cast<std::ptrdiff_t>(k));
  }
  if (!kernels.empty()) times.rows = kernel_times(measured, setting, direction);
  return times;
}

void add_timer(CLI::App& app, const Registry& registry, Action& action) {
  CLI::App* command = app.add_subcommand("timer", "the process in which kernels are timed");
  command->group("");  // for attest bench, not for people: hidden in the help
  auto options = std::make_shared<TimerOptions>();
  command->add_option("kernel", options->kernels)->required();
  command->add_option("--problem", options->problem)->required();
  command->add_option("--direction", options->direction)->required();
  command->add_option("--threads", options->setting.threads)->required();
  command->add_option("--rounds", options->setting.rounds)->required();
  command->add_option("--seed", options->setting.seed)->required();
  command->callback([&registry, &action, options] {
    action = [&registry, options]() -> int {
      report_times([&](Heartbeat& beat) { return timed_here(registry, *options, beat); });
    };
  });
}

}  // namespace attest::certify::cli
