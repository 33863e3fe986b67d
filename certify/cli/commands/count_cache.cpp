#include "certify/cli/commands/count_cache.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "certify/cli/commands.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/count/cache_count.hpp"
#include "certify/count/instrumentation.hpp"
#include "certify/printable.hpp"
#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify::cli {
namespace {

Direction parse_direction(const std::string& text) {
  std::vector<std::string> names;
  for (const Direction direction :
       {Direction::forward, Direction::backward, Direction::loss_gradient}) {
    if (text == name(direction)) return direction;
    names.emplace_back(name(direction));
  }
  throw InvalidProblem(fmt::format("direction: '{}' is unknown{} ({})", text,
                                   did_you_mean(text, names), fmt::join(names, ", ")));
}

void print_row(const char* what, std::int64_t bytes, const char* why) {
  fmt::print("  {:<13} {:>16} bytes  {}\n", what, thousands(bytes), why);
}

void print_lines(const CacheCount& count) {
  const CacheLines& lines = count.lines;
  const std::int64_t line = count.cache.line_bytes;
  print_row("read", lines.read * line, "lines fetched to be read");
  print_row("allocated", lines.allocated * line, "lines fetched because a part was written");
  print_row("written back", lines.written_back * line, "changed lines, those left at the end too");
  print_row("moved", count.moved_bytes(), "all three");
}

void print_own_count(const CacheCount& count) {
  if (!count.of_itself) return;
  const io::ScheduleCount& own = *count.of_itself;
  const std::int64_t bytes = own.counted.total_bytes().value();
  fmt::print(
      "\nits own schedule, {}, moves {} bytes with {} bytes of fast memory:\n"
      "the cache moved {:.3f} times as many, {:.3f} without what it fetched to be overwritten\n",
      own.schedule, thousands(bytes), thousands(own.capacity.bytes),
      static_cast<double>(count.moved_bytes()) / static_cast<double>(bytes),
      static_cast<double>(count.moved_bytes_without_allocation()) / static_cast<double>(bytes));
}

void print_best(const CacheCount& count) {
  const io::Candidate& best = count.best.best();
  const std::int64_t bytes = best.traffic.total_bytes().value();
  fmt::print("best_schedule, {} bytes of fast memory: {} moves {} bytes, {:.3f} of this kernel's\n",
             thousands(count.fast_bytes), best.schedule, thousands(bytes),
             static_cast<double>(bytes) / static_cast<double>(count.moved_bytes()));
}

void print(const CacheCount& count) {
  fmt::print("{}  {}  {}\n{}\n", bold("kernel"), count.call.kernel, name(count.call.direction),
             printable(count.problem.to_string()));
  fmt::print(
      "one call on one thread, a cache of {} bytes, {} ways, lines of {} bytes, empty before\n\n",
      thousands(count.cache.bytes), count.cache.ways, thousands(count.cache.line_bytes));
  print_lines(count);
  fmt::print("\nnothing of this kernel is known; the bounds take for granted:\n{}",
             io::report(count.kernel, count.bounds));
  if (const auto ratio = count.ratio()) {
    fmt::print("moved / greatest lower bound, {} bytes with cache, filter and registers: {}\n",
               thousands(count.fast_bytes), bold(fmt::format("{:.3f}", *ratio)));
  }
  print_best(count);
  print_own_count(count);
  if (!count.own_refusal.empty()) fmt::print("\nits own schedule: {}\n", count.own_refusal);
  if (count.below_bound()) {
    fmt::print(
        "\n{}: fewer bytes than the bound. The kernel is outside the bound's class, or it does not "
        "compute attention: certify it\n",
        warning("NOTHING PROVEN"));
  }
}

}  // namespace

int count_cache(const Registry& registry, const io::ScheduleRegistry& schedules,
                const CacheCountOptions& options) {
  if (!can_instrument()) {
    throw InvalidProblem(
        "--kernel: built with a sanitizer or without valgrind's headers; install valgrind and "
        "build again without sanitizers");
  }
  const CacheGeometry cache = CacheGeometry::parse(options.cache);
  const CallToSimulate call{options.kernel, options.problem, parse_direction(options.direction)};
  Problem::parse(call.problem);  // its errors before the work
  Kernels known(registry, {});
  const attest_kernel& kernel = known.find_one(call.kernel);
  const CacheLines lines = [&] {
    const ElapsedLine elapsed("simulating");
    return simulate_call(call, cache, std::filesystem::read_symlink("/proc/self/exe").string());
  }();
  const CacheCount count = judge_lines(schedules, kernel, call, cache, lines);
  constexpr int kNothingProven = 3;
  const int code = count.below_bound() ? kNothingProven : 0;
  if (options.json) {
    fmt::print("{}\n", json_text(cache_count_json(count, code)));
  } else {
    print(count);
  }
  return code;
}

void add_simulated_call(CLI::App& app, const Registry& registry, Action& action) {
  CLI::App* command = app.add_subcommand("simulated-call", "one call under valgrind");
  command->group("");  // for `attest count --kernel`, not for people: hidden in the help
  struct Options {
    CacheCountOptions call;
    std::int64_t flush_bytes = 0;
  };
  auto options = std::make_shared<Options>();
  command->add_option("--kernel", options->call.kernel)->required();
  command->add_option("--problem", options->call.problem)->required();
  command->add_option("--direction", options->call.direction)->required();
  command->add_option("--flush-bytes", options->flush_bytes)->required()->check(whole_number());
  command->callback([&registry, &action, options] {
    action = [&registry, options] {
      call_instrumented(find_in_process(registry, options->call.kernel),
                        Problem::parse(options->call.problem),
                        parse_direction(options->call.direction), options->flush_bytes);
      return 0;
    };
  });
}

}  // namespace attest::certify::cli
