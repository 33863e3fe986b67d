#include "certify/count/count.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "certify/cli/commands.hpp"
#include "certify/cli/commands/count_cache.hpp"
#include "certify/cli/python_function.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/count/count_sweep.hpp"
#include "certify/count/memory_sweep.hpp"
#include "certify/files.hpp"
#include "certify/printable.hpp"
#include "certify/sparse_inputs/sparse_inputs.hpp"
#include "core/error.hpp"
#include "core/text/thousands.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"
#include "sparse/inputs/schedules/input_schedules.hpp"

namespace attest::certify::cli {
namespace {

constexpr int kInternal = 5;

struct CountOptions {
  std::string schedule, problem, inputs;
  std::string fast_words, fast_bytes;  // as memory_sizes takes them
  CacheCountOptions cache;
  std::string trace;
  std::vector<std::string> replays;
  FunctionOptions function;
  bool without_best = false, json = false;
};

std::vector<io::FastMemory> capacities_of(const CountOptions& options) {
  const bool words = !options.fast_words.empty(), bytes = !options.fast_bytes.empty();
  if (words && bytes) {
    throw InvalidProblem("--fast-words and --fast-bytes together; pass one of them");
  }
  if (!words && !bytes) {
    throw InvalidProblem("no fast memory given; pass --fast-words M or --fast-bytes B");
  }
  std::vector<io::FastMemory> capacities;
  for (const std::int64_t size : memory_sizes(words ? options.fast_words : options.fast_bytes)) {
    capacities.push_back(words ? io::FastMemory::of_words(size) : io::FastMemory::of_bytes(size));
  }
  return capacities;
}

// Refuses what is no size of fast memory, no list and no range of them.
CLI::Validator sizes_of_memory() {
  return CLI::Validator(
      [](std::string& text) {
        try {
          memory_sizes(text);
          return std::string();
        } catch (const InvalidProblem& error) {
          return std::string(error.what());
        }
      },
      "");
}

std::string text(io::FastMemory capacity) {
  return capacity.words != io::FastMemory::kUnlimited ? thousands(capacity.words) + " words"
                                                      : thousands(capacity.bytes) + " bytes";
}

void print_row(const char* what, io::Words words, io::Words bytes) {
  fmt::print("  {:<8} {:>20} words {:>20} bytes\n", what, thousands(words.value()),
             thousands(bytes.value()));
}

void print_traffic(const io::ScheduleCount& count) {
  const io::Traffic& moved = count.counted;
  print_row("read", moved.reads.words, moved.reads.bytes);
  print_row("written", moved.writes.words, moved.writes.bytes);
  print_row("moved", moved.total_words(), moved.total_bytes());
  print_row("peak", moved.peak.words, moved.peak.bytes);
  fmt::print("  closed form: {}\n",
             count.closed_form_equal() ? good("equal") : bad("differs from the count"));
  if (count.blocks.count > 1) {
    fmt::print("  {} parallel blocks, the busiest moves {} words\n",
               thousands(count.blocks.count.value()),
               thousands(count.blocks.busiest_words.value()));
  }
}

void print_bounds(const io::ScheduleCount& count) {
  fmt::print("\n{}", io::report(count.kernel, count.bounds));
  if (const auto ratio = count.ratio()) {
    fmt::print("moved / greatest lower bound: {}\n", bold(fmt::format("{:.3f}", *ratio)));
  }
  const auto &lower = count.lower, &every = count.lower_of_every;
  if (lower && every && every->words != lower->words) {
    fmt::print("of kernels that declare nothing: {} words, {}\n", thousands(every->words),
               every->name);
  }
}

TraceOptions trace_options(const CountOptions& options) {
  TraceOptions trace;
  trace.file = options.trace;
  if (!trace.file.empty()) require_writable(trace.file);  // before the work, not after it
  for (const std::string& cache : options.replays) {
    trace.caches.push_back(io::CacheSpec::parse(cache));
  }
  return trace;
}

void print_replays(const std::vector<Replayed>& replays, io::Words explicit_reads) {
  if (replays.empty()) return;
  fmt::print("\nreplay of the recorded run by caches\n");
  for (const Replayed& replayed : replays) {
    const io::CacheTraffic& traffic = replayed.traffic;
    const double times = static_cast<double>(traffic.read_words().value()) /
                         static_cast<double>(explicit_reads.value());
    fmt::print(
        "  {}: reads {} words, {:.2f} times the schedule's; writes {} words, {} of scratch\n",
        replayed.cache.to_string(), thousands(traffic.read_words().value()), times,
        thousands(traffic.written_words().value()),
        thousands(traffic.scratch_written_words().value()));
  }
}

struct Counted {
  io::ScheduleCount of;
  std::optional<io::BestSchedule> best;
  std::vector<Replayed> replays;
  std::string inputs;  // of sparse ones
};

Counted counted_dense(const io::ScheduleRegistry& schedules, const CountOptions& options,
                      const Problem& problem, io::FastMemory capacity) {
  const TraceOptions trace = trace_options(options);
  const auto spec = io::ScheduleSpec::parse(options.schedule);
  for (const sparse::InputSchedule& schedule : sparse::input_schedules()) {
    if (schedule.name != spec.name) continue;
    throw InvalidProblem(
        "schedule: '" + spec.name +
        "' is of sparse inputs; give them, as in --inputs csr:density=0.05,seed=1");
  }
  const io::ScheduleFamily& family = schedules.find(spec.name);
  const AbiProblem form(problem, 1);
  std::optional<ElapsedLine> line("counting " + spec.name);
  const auto schedule = family.make(spec, *form.get(), capacity);
  Counted counted{io::count_schedule(family, *schedule, problem, capacity), std::nullopt,
                  record_schedule(*schedule, problem, capacity, trace), ""};
  if (options.without_best) return counted;
  line.reset();
  line.emplace("searching the best tiles of every schedule (--no-best leaves it out)");
  counted.best = io::best_schedule(schedules, family.direction(), *form.get(), capacity);
  return counted;
}

Counted counted_sparse(const CountOptions& options, const Problem& problem,
                       io::FastMemory capacity) {
  if (!options.trace.empty() || !options.replays.empty()) {
    throw InvalidProblem("--trace and --replay are for dense inputs; leave --inputs out");
  }
  const SparseInputs inputs = parse_sparse_inputs(options.inputs, problem);
  const auto spec = io::ScheduleSpec::parse(options.schedule);
  const ElapsedLine line("counting " + spec.name);
  auto found = sparse::count_sparse_inputs(spec, inputs.operands, capacity);
  Counted counted{std::move(found.count), std::move(found.best), {}, inputs.spelling};
  if (options.without_best) counted.best.reset();
  return counted;
}

Counted counted(const io::ScheduleRegistry& schedules, const CountOptions& options,
                const Problem& problem, io::FastMemory capacity) {
  return options.inputs.empty() ? counted_dense(schedules, options, problem, capacity)
                                : counted_sparse(options, problem, capacity);
}

// Where the schedule fits in no memory of the sweep, the reason is an error as without a sweep.
int sweep(const io::ScheduleRegistry& schedules, const CountOptions& options,
          const std::vector<io::FastMemory>& capacities) {
  if (!options.trace.empty() || !options.replays.empty()) {
    throw InvalidProblem("--trace and --replay are for one size of fast memory");
  }
  const Problem problem = Problem::parse(options.problem);
  std::vector<SweepRow> rows;
  std::vector<std::string> faults;
  std::string inputs;
  bool any = false;
  for (const io::FastMemory capacity : capacities) {
    rows.push_back({capacity, std::nullopt, std::nullopt, ""});
    try {
      Counted found = counted(schedules, options, problem, capacity);
      for (const std::string& fault : found.of.faults()) faults.push_back(fault);
      rows.back().count = std::move(found.of);
      rows.back().best = std::move(found.best);
      inputs = found.inputs;
      any = true;
    } catch (const io::CapacityExceeded& error) {
      if (!any && rows.size() == capacities.size()) throw;
      rows.back().refusal = error.what();
    }
  }
  const int code = faults.empty() ? 0 : kInternal;
  if (options.json) {
    fmt::print("{}\n", json_text(sweep_json(rows, problem, inputs, code)));
  } else {
    fmt::print("{}  {}\n{}\n", bold("schedule"), printable(options.schedule),
               printable(problem.to_string()));
    if (!inputs.empty()) fmt::print("inputs {}\n", printable(inputs));
    fmt::print("\n{}", sweep_text(rows));
  }
  for (const std::string& fault : faults) fmt::print(stderr, "attest: internal error: {}\n", fault);
  return code;
}

int count(const io::ScheduleRegistry& schedules, const CountOptions& options) {
  const std::vector<io::FastMemory> capacities = capacities_of(options);
  if (capacities.size() > 1) return sweep(schedules, options, capacities);
  const io::FastMemory capacity = capacities.front();
  const Problem problem = Problem::parse(options.problem);
  const Counted counted = cli::counted(schedules, options, problem, capacity);
  const std::vector<std::string> faults = counted.of.faults();
  const int code = faults.empty() ? 0 : kInternal;
  if (options.json) {
    fmt::print("{}\n", json_text(count_json(counted.of, counted.best, counted.replays, problem,
                                            code, counted.inputs)));
  } else {
    fmt::print("{}  {}\n{}\n", bold("schedule"), counted.of.schedule,
               printable(problem.to_string()));
    if (!counted.inputs.empty()) fmt::print("inputs {}\n", printable(counted.inputs));
    fmt::print("{} of fast memory\n\n", text(capacity));
    print_traffic(counted.of);
    print_bounds(counted.of);
    print_replays(counted.replays, counted.of.counted.reads.words);
    if (counted.best) {
      fmt::print("\nbest_schedule, {} of fast memory\n", text(capacity));
      fmt::print("{}", indented(counted.best->to_string(), 2));
    }
  }
  for (const std::string& fault : faults) fmt::print(stderr, "attest: internal error: {}\n", fault);
  return code;
}

// Counts what the kernels of a function move, in this process's place.
[[noreturn]] void count_function(const CountOptions& options) {
  const std::string& direction = options.cache.direction;
  if (!options.cache.cache.empty() || (direction != "forward" && direction != "backward")) {
    throw InvalidProblem(
        "--cache and --direction loss_gradient are for kernels in C; a function's kernels in "
        "Triton are executed, forward and with --direction backward too, and their words counted "
        "as they are loaded and stored");
  }
  std::vector<std::string> flags;
  if (direction == "backward") flags.emplace_back("--gradients");
  if (options.json) flags.emplace_back("--json");
  if (options.without_best) flags.emplace_back("--no-best");
  become_function_count(options.cache.kernel, options.function, options.problem, flags);
}

// A schedule is counted exactly in a fast memory, a kernel in C is simulated with a cache, and one
// of a function in Python is executed on an emulated GPU.
int count_either(const Registry& registry, const io::ScheduleRegistry& schedules,
                 CountOptions& options) {
  const bool of_schedule = !options.schedule.empty();
  if (of_schedule == !options.cache.kernel.empty()) {
    throw InvalidProblem(
        "pass --schedule S with --fast-words or --fast-bytes, or --kernel K with --cache");
  }
  const bool of_function = !of_schedule && names_function(options.cache.kernel);
  if (options.function.given() && !of_function) {
    throw InvalidProblem("--device, --like, --numerics and --backward are for functions in Python");
  }
  if (of_schedule) {
    if (!options.cache.cache.empty()) {
      throw InvalidProblem("--cache is for --kernel; caches replay a schedule with --replay");
    }
    return count(schedules, options);
  }
  if (!options.fast_words.empty() || !options.fast_bytes.empty() || !options.trace.empty() ||
      !options.replays.empty() || !options.inputs.empty() ||
      (options.without_best && !of_function)) {
    throw InvalidProblem(
        "--fast-words, --fast-bytes, --trace, --replay, --inputs and --no-best are for --schedule; "
        "--kernel takes --cache");
  }
  if (of_function) count_function(options);
  if (options.cache.cache.empty()) {
    throw InvalidProblem("--kernel needs --cache SIZE,ASSOC,LINE, as in --cache 32768,8,64");
  }
  options.cache.problem = options.problem;
  options.cache.json = options.json;
  return count_cache(registry, schedules, options.cache);
}

}  // namespace

void add_count(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
               Action& action) {
  CLI::App* command =
      app.add_subcommand("count", "words and bytes a schedule moves, and what every kernel must");
  auto options = std::make_shared<CountOptions>();
  command
      ->add_option("--schedule", options->schedule,
                   "a schedule (attest list schedules), tiles as in flash2:bq=64,bk=32 or left "
                   "open")
      ->check(not_empty());
  command
      ->add_option("--kernel,--plugin", options->cache.kernel,
                   "or a kernel, built in or of a library (./libmine.so, ./libmine.so:name): one "
                   "call under valgrind, with --cache; or a function in Python with kernels in "
                   "Triton (file.py:function), executed on an emulated GPU")
      ->check(not_empty());
  command->add_option("--problem", options->problem, "problem string, for example sq=4096,d=64")
      ->required();
  command
      ->add_option("--inputs", options->inputs,
                   "sparse Q, K and V in compressed rows, index words counted: random ones, "
                   "csr:density=D,seed=S, or those of a file, PATH.safetensors; schedules "
                   "sparse_flash, stored_support, sparse_flash_bwd, stored_support_bwd")
      ->check(not_empty());
  command
      ->add_option("--fast-words,--M", options->fast_words,
                   "fast memory in words; several sizes as 1024,4096 or 1024:65536:x2 or "
                   "1024:8192:+1024 make a table")
      ->check(sizes_of_memory());
  command->add_option("--fast-bytes", options->fast_bytes, "the same in bytes")
      ->check(sizes_of_memory());
  command
      ->add_option("--cache", options->cache.cache,
                   "SIZE,ASSOC,LINE: bytes, ways and bytes of a line of the cache simulated")
      ->check(not_empty());
  command->add_option(
      "--direction", options->cache.direction,
      "of the kernel's call: forward, backward or loss_gradient, default forward; of a function: "
      "backward counts that pass too, apart from the forward one");
  command
      ->add_option("--trace", options->trace,
                   "write the run, word by word, to this file (docs/how-to/count-words.md)")
      ->check(not_empty());
  command
      ->add_option("--replay", options->replays,
                   "what a cache moves that sees the run's addresses only: lru:WORDS, belady:WORDS "
                   "or set:WORDS,ways=W, each with ,line=L; may be given again")
      ->allow_extra_args(false);
  command->add_flag("--no-best", options->without_best,
                    "leave out the table of every schedule with its best tiles, which takes "
                    "long on large masks");
  command->add_flag("--json", options->json,
                    "as JSON (certify/schemas/count.schema.json, cache_count.schema.json)");
  add_function_options(*command, options->function);
  command->footer(
      "Tiles left open are searched for the fewest words (bytes, with --fast-bytes).\n"
      "Examples:\n"
      "  attest count --schedule flash2:bq=64,bk=64 --problem sq=4096,d=64 --fast-words 16384\n"
      "  attest count --schedule two_pass_row --problem sq=65536,d=64 --fast-words 32768\n"
      "  attest count --schedule hybrid --problem sq=4096,d=64 --M 1024:65536:x2\n"
      "  attest count --schedule flash2:bq=16,bk=1 --problem sq=64,d=8 --fast-words 320 "
      "--replay lru:320 --replay belady:320\n"
      "  attest count --schedule hybrid --problem sq=4096,d=64,dtype=bf16 --fast-bytes 8192\n"
      "  attest count --schedule sparse_flash --problem sq=512,d=64 --inputs csr:density=0.05 "
      "--fast-words 4096\n"
      "  attest count --schedule stored_support_bwd --problem sq=512,d=64 --inputs qkv.safetensors "
      "--fast-words 4096\n"
      "  attest count --schedule flash2 --problem sq=4096,d=64,mask=block_64_25_1 "
      "--fast-words 65536 --no-best\n"
      "  attest count --plugin ./libmine.so --cache 32768,8,64 --problem sq=256,d=64\n"
      "  attest count --kernel flash.py:attention --device emulated:sm_80 --numerics "
      "p_cast_to_input --problem sq=1024,d=64,dtype=f16");
  command->callback([&registry, &schedules, &action, options] {
    action = [&registry, &schedules, options] {
      return count_either(registry, schedules, *options);
    };
  });
}

}  // namespace attest::certify::cli
