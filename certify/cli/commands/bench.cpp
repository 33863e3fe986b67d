#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "certify/audit/voucher.hpp"
#include "certify/campaign/campaign.hpp"
#include "certify/campaign/code_content.hpp"
#include "certify/campaign/host.hpp"
#include "certify/campaign/where_run.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/commands/kernel_campaign.hpp"
#include "certify/cli/interrupt.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/cli/report.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/cli/timer.hpp"
#include "certify/plan/coverage.hpp"
#include "certify/printable.hpp"
#include "certify/report/comparison.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "proptest/judge/truth/affordable.hpp"

namespace attest::certify::cli {
namespace {

using KernelList = std::vector<const attest_kernel*>;

struct BenchOptions {
  std::vector<std::string> kernels;
  std::string problem, direction;
  std::vector<std::string> certificates;
  BenchSetting setting{{}, 1, 9, 1};
  bool json = false;
  IsolationOptions isolation;
};

bool has(const attest_kernel& kernel, Direction direction) {
  const std::uint32_t flag = direction == Direction::forward ? ATTEST_FORWARD : ATTEST_BACKWARD;
  return (kernel.description.directions & flag) != 0;
}

// Returns the directions that were asked for, else those that all kernels have.
std::vector<Direction> directions_of(const KernelList& kernels, const std::string& word) {
  const std::vector<std::string> names{"forward", "backward"};
  if (!word.empty() && std::find(names.begin(), names.end(), word) == names.end()) {
    throw InvalidProblem(fmt::format("direction: '{}' is unknown{} ({})", word,
                                     did_you_mean(word, names), fmt::join(names, ", ")));
  }
  std::vector<Direction> chosen;
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    if (!word.empty() && word != word_of(direction)) continue;
    const auto lacking = std::find_if(kernels.begin(), kernels.end(),
                                      [&](const auto* kernel) { return !has(*kernel, direction); });
    if (lacking == kernels.end()) {
      chosen.push_back(direction);
    } else if (!word.empty() || direction == Direction::forward) {
      throw InvalidProblem(fmt::format("kernel '{}': has no {} pass of attention to time",
                                       (*lacking)->description.name, word_of(direction)));
    }
  }
  return chosen;
}

// Times are of host memory, packed: what else a kernel takes is for laws, not for the clock.
void require_timed(const KernelList& kernels, const Problem& problem) {
  for (const attest_kernel* kernel : kernels) {
    const std::string_view where = where_run(kernel->description);
    if (where == "on the CPU") continue;
    throw InvalidProblem(
        fmt::format("kernel '{}': runs {}, whose time says nothing of a device; "
                    "docs/how-to/on-a-gpu.md times it there",
                    kernel->description.name, where));
  }
  if (problem.layout == Layout::bhsd || problem.strides != Strides::packed) {
    throw InvalidProblem(
        "problem: times are of packed tensors in layout bshd (thd with cu_…); "
        "leave layout and strides out");
  }
  if (problem.shared_kv != SharedKv::none) {
    throw InvalidProblem("problem: times are of K and V in two buffers; leave shared_kv out");
  }
}

CampaignOptions campaign_options(std::uint64_t seed) {
  CampaignOptions options;
  options.seed = seed;
  options.jobs = std::max(1u, std::thread::hardware_concurrency());
  return options;
}

// The problem that is timed, by the reference: a campaign's problems are smaller.
proptest::LawResult judged(const attest_kernel& kernel, const BenchSetting& setting,
                           Direction direction) {
  const proptest::Case c{setting.problem, proptest::Values::normal, setting.seed, setting.threads};
  const ElapsedLine line(fmt::format("reference for {}", kernel.description.name));
  return worker::check(proptest::find_law(fmt::format("reference_{}", word_of(direction))), kernel,
                       c);
}

// The kernels that a certificate vouches for, each with the file of it.
using Vouched = std::map<std::string, std::string>;

VouchedKernel as_vouched(const attest_kernel& kernel, const Problem& problem,
                         const std::vector<Direction>& directions) {
  const std::string content = content_of_code(kernel);
  VouchedKernel vouched{kernel.description.name,
                        content.empty() ? program_sha256() : content,
                        exercised_by(problem, kernel.description.features),
                        {}};
  for (const Direction direction : directions) {
    vouched.directions.emplace_back(word_of(direction));
  }
  return vouched;
}

// A certificate of none of the kernels is a mistake of the caller's.
Vouched vouched_kernels(const KernelList& kernels, const BenchOptions& options,
                        const Problem& problem, const std::vector<Direction>& directions) {
  Vouched vouched;
  for (const std::string& file : options.certificates) {
    const nlohmann::json certificate = read_certificate(file);
    bool any = false;
    for (const attest_kernel* kernel : kernels) {
      if (!vouches(certificate, as_vouched(*kernel, problem, directions))) continue;
      vouched.emplace(kernel->description.name, file);
      any = true;
    }
    if (any) continue;
    throw InvalidProblem("--certificate " + file +
                         ": names none of these kernels; pass one that attest certify --out wrote "
                         "of them");
  }
  return vouched;
}

// The first kernel that may not be timed. This problem first: it takes less than a campaign.
std::optional<Refusal> refusal(const Registry& registry, const io::ScheduleRegistry& schedules,
                               const KernelList& kernels, const BenchSetting& setting,
                               const std::vector<Direction>& directions, const Vouched& vouched) {
  for (const attest_kernel* kernel : kernels) {
    for (const Direction direction : directions) {
      const proptest::LawResult found = judged(*kernel, setting, direction);
      if (found.verdict == Verdict::passed) continue;
      Refusal refused;
      refused.result.kernel = kernel->description.name;
      refused.result.verdict = found.verdict;
      refused.why = fmt::format("did not pass {} on this problem", word_of(direction));
      refused.details = printable(found.message);
      return refused;
    }
  }
  for (const attest_kernel* kernel : kernels) {
    if (vouched.count(kernel->description.name) > 0) continue;
    CampaignResult result =
        kernel_campaign(registry, schedules, *kernel, campaign_options(setting.seed));
    if (outcome(result) != "certified") return Refusal{std::move(result), "is not certified", ""};
  }
  return std::nullopt;
}

void print_refusal(const attest_kernel& kernel, const Refusal& refused,
                   const BenchSetting& setting) {
  const CampaignResult& result = refused.result;
  if (refused.details.empty()) {
    print_result(kernel, result, Detail::summary);
  } else {
    fmt::print("{}  {}\n  {}\n  {}\n", bold(result.kernel), verdict_text(result.verdict),
               printable(setting.problem.to_string()), refused.details);
  }
  fmt::print("not timed: {} {}\n", result.kernel, refused.why);
}

constexpr double kMilli = 1e3, kGiga = 1e-9, kPercent = 100;

void print_times(const BenchSetting& setting, const std::vector<KernelTime>& rows) {
  fmt::print("{}\n{} thread{}, {} rounds in shuffled order; median [quartiles]\n\n",
             printable(setting.problem.to_string()), setting.threads,
             setting.threads == 1 ? "" : "s", setting.rounds);
  std::size_t width = std::string("kernel").size();
  for (const KernelTime& row : rows) width = std::max(width, row.kernel.size());
  fmt::print("{:<9} {:<{}}  {:>26}  {:>8} {:>7}  {}\n", "direction", "kernel", width, "ms",
             "Gflop/s", "of peak", "time over the first");
  for (const KernelTime& row : rows) {
    const auto spread = [](const Quartiles& q, double unit) {
      return fmt::format("{:.3f} [{:.3f} {:.3f}]", q.median * unit, q.low * unit, q.high * unit);
    };
    fmt::print("{:<9} {:<{}}  {:>26}  {:>8.2f} {:>5.0f} %  {}\n", word_of(row.direction),
               row.kernel, width, spread(row.seconds, kMilli), row.flops * kGiga,
               row.share_of_peak * kPercent, spread(row.against_first, 1));
  }
  fmt::print(
      "\nOperations are those on visible pairs, without recomputation; the peak is that of\n"
      "multiply-adds in float32, measured in every round.\n");
}

// Prints what has times and what has none; the exit status.
int tell(const Registry& kernels, const Times& times, const BenchSetting& setting,
         const Vouched& vouched, bool json) {
  std::vector<CampaignResult> results;
  for (const Refusal& refused : times.refused) results.push_back(refused.result);
  const int code = exit_code(results);
  if (json) {
    nlohmann::json object = bench_json(setting, times.rows);
    if (!times.refused.empty()) {
      const Refusal& first = times.refused.front();
      const CampaignResult& result = first.result;
      object["refused"] = {
          {"kernel", result.kernel},
          {"verdict", first.details.empty() ? outcome(result) : name(result.verdict)},
          {"why", first.why + (first.details.empty() ? "" : ": ") + first.details}};
    }
    object["certificates"] = nlohmann::json::array();
    for (const auto& [kernel, file] : vouched) {
      object["certificates"].push_back({{"kernel", kernel}, {"file", file}});
    }
    object["exit_code"] = code;
    fmt::print("{}\n", json_text(object));
    return code;
  }
  if (!times.rows.empty()) print_times(setting, times.rows);
  for (const auto& [kernel, file] : vouched) {
    fmt::print("{} is certified by {}\n", kernel, printable(file));
  }
  for (const Refusal& refused : times.refused) {
    if (!times.rows.empty()) fmt::print("\n");
    print_refusal(kernels.find(refused.result.kernel), refused, setting);
  }
  return code;
}

int end_interrupted() {
  constexpr int kNothingProven = 3;
  fmt::print(stderr, "attest: interrupted, nothing was timed\n");
  return kNothingProven;
}

// Times in every direction; a kernel that is refused in one is not timed in the next.
Times timed(KernelList kernels, const BenchSetting& setting,
            const std::vector<Direction>& directions, double timeout_seconds) {
  Times all;
  for (const Direction direction : directions) {
    const ElapsedLine line(fmt::format("timing {}", word_of(direction)));
    Times times = times_of(kernels, setting, direction, timeout_seconds);
    all.interrupted = times.interrupted;
    if (all.interrupted) return all;
    std::move(times.rows.begin(), times.rows.end(), std::back_inserter(all.rows));
    for (Refusal& refused : times.refused) {
      kernels.erase(std::find_if(kernels.begin(), kernels.end(), [&](const auto* kernel) {
        return kernel->description.name == refused.result.kernel;
      }));
      all.refused.push_back(std::move(refused));
    }
  }
  return all;
}

int bench(const Registry& registry, const io::ScheduleRegistry& schedules,
          const BenchOptions& options) {
  Kernels known(registry, options.isolation);
  KernelList kernels;
  for (const std::string& word : options.kernels) {
    const KernelList found = known.find(word);
    kernels.insert(kernels.end(), found.begin(), found.end());
  }
  BenchSetting setting = options.setting;
  setting.problem = Problem::parse(options.problem);
  const std::vector<Direction> directions = directions_of(kernels, options.direction);
  require_timed(kernels, setting.problem);
  for (const attest_kernel* kernel : kernels) {
    proptest::require_affordable(kernel->description, setting.problem, proptest::Work::judgement);
  }
  const std::vector<std::string> libraries = library_contents(kernels);
  const Vouched vouched = vouched_kernels(kernels, options, setting.problem, directions);
  const InterruptGuard guard(OnInterrupt::ask);
  if (auto refused = refusal(registry, schedules, kernels, setting, directions, vouched)) {
    return tell(known.registry(), {{}, {std::move(*refused)}}, setting, vouched, options.json);
  }
  if (interrupted()) return end_interrupted();
  // Calls through a worker would be timed with their messages.
  const Times times = timed(kernels, setting, directions, options.isolation.timeout_seconds);
  if (times.interrupted) return end_interrupted();
  require_unchanged(kernels, libraries);
  return tell(known.registry(), times, setting, vouched, options.json);
}

}  // namespace

void add_bench(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
               Action& action) {
  CLI::App* command =
      app.add_subcommand("bench", "wall clock; refuses to time what it has not certified");
  auto options = std::make_shared<BenchOptions>();
  command
      ->add_option("kernel", options->kernels,
                   "names of kernels (attest list kernels) or libraries (./libmine.so)")
      ->required();
  command
      ->add_option("--problem", options->problem,
                   "problem string, for example hq=8,sq=2048,d=64,mask=causal_br")
      ->required()
      ->check(not_empty());
  command
      ->add_option(
          "--certificate", options->certificates,
          "a file that attest certify --out wrote of one of the kernels, from the same file of "
          "the same bytes: it is not certified again; may be given again")
      ->allow_extra_args(false)
      ->check(not_empty());
  command->add_option("--direction", options->direction,
                      "forward or backward; default both where every kernel has them");
  command->add_option("--threads", options->setting.threads, "threads a kernel may use, default 1")
      ->check(CLI::Range(1, 1024));
  command->add_option("--rounds", options->setting.rounds, "timed calls of each kernel, default 9")
      ->check(CLI::Range(1, 100000));
  command->add_option("--seed", options->setting.seed, "seed of values and order, default 1")
      ->check(whole_number());
  command->add_flag("--json", options->json, "as JSON (certify/schemas/bench.schema.json)");
  add_isolation_options(*command, options->isolation);
  command->footer(
      "Every kernel is certified first (tier smoke) and judged on this problem; one that does not\n"
      "pass is not timed, with the exit status of attest certify. Every timed call has values of\n"
      "its own, the same for every kernel in a round, and results are judged between the calls. "
      "One\n"
      "that dies or takes longer than --timeout is refused, and the others are timed without it.\n"
      "Ratios are paired by round, so that what slows the machine for a while cancels.\n"
      "A certificate of another file, of another verdict, or without checks of what the problem "
      "has is\n"
      "bad input, exit status 2; one that vouches for a kernel takes the place of its campaign.\n"
      "Examples:\n"
      "  attest bench cpu/standard cpu/flash2 --problem hq=8,sq=2048,d=64\n"
      "  attest bench cpu/flash2 ./libmine.so --problem sq=4096,d=128 --direction forward "
      "--threads 2\n"
      "  attest bench ./libmine.so --certificate certificate.json --problem sq=4096,d=128\n"
      "  attest bench cpu/flash2 sparse/block_flash2 --problem sq=4096,d=64,mask=block_64_10_1");
  command->callback([&registry, &schedules, &action, options] {
    action = [&registry, &schedules, options] { return bench(registry, schedules, *options); };
  });
}

}  // namespace attest::certify::cli
