#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "certify/campaign/campaign.hpp"
#include "certify/certificate.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/emulate.hpp"
#include "certify/cli/interrupt.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/cli/sparse_check.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/findings/case_text.hpp"
#include "certify/plan/plan.hpp"
#include "certify/printable.hpp"
#include "certify/report/evidence.hpp"
#include "certify/report/failure.hpp"
#include "core/error.hpp"
#include "proptest/judge/affordable.hpp"
#include "proptest/judge/sample.hpp"

namespace attest::certify::cli {
namespace {

struct CheckOptions {
  std::string kernel, problem, values = "normal", law, file, inputs;
  std::uint64_t seed = 1;
  std::int32_t threads = 1, repeat = 1;
  std::vector<std::string> after;  // cases checked before it, as case_text spells them
  bool json = false, emulate = false, races = false;
  IsolationOptions isolation;
};

nlohmann::json comparison_json(const proptest::Comparison& c) {
  return {{"output", c.output},
          {"verdict", name(c.verdict)},
          {"elements", c.elements},
          {"error_over_bound", c.ratio},
          {"rms_over_sigma", c.aggregate}};
}

// Returns what the laws that judge the problem itself say where they were asked and none of them
// counted; others draw simpler problems from it, and passing those proves nothing of this one.
std::optional<Verdict> nothing_judged(const std::map<std::string, Verdict>& found) {
  std::optional<Verdict> verdict;
  for (const std::string& law : reference_laws()) {
    const auto known = found.find(law);
    if (known == found.end()) continue;
    if (known->second != Verdict::vacuous && known->second != Verdict::unsupported) return {};
    verdict = graver(verdict.value_or(known->second), known->second);
  }
  return verdict;
}

// The last of so many checks in one process, or the first that fails; after those of other cases,
// in a process of their own where there are any.
proptest::LawResult check_repeatedly(const proptest::Law& law, const attest_kernel& kernel,
                                     const std::vector<proptest::Case>& after,
                                     const proptest::Case& c, int count) {
  if (!after.empty()) worker::restart(kernel);
  for (const proptest::Case& earlier : after) worker::check(law, kernel, earlier);
  proptest::LawResult result = worker::check(law, kernel, c);
  for (int done = 1; done < count; ++done) {
    if (result.verdict == Verdict::violated || result.verdict == Verdict::crashed) break;
    result = worker::check(law, kernel, c);
  }
  return result;
}

// Subject of a check: the case of the options, or the one of a file, whose kernel and law are the
// default.
struct Subject {
  CheckOptions options;
  proptest::Case c;
  std::optional<Inputs> given;  // by the file
  std::string law;              // that failed, as the file says
};

Subject subject_of(const CheckOptions& options) {
  Subject subject{options, {}, {}, ""};
  if (options.file.empty()) {
    if (options.problem.empty()) {
      throw InvalidProblem("no problem given; pass --problem, or --file with a saved failure");
    }
    subject.c = {Problem::parse(options.problem), proptest::parse_values(options.values),
                 options.seed, options.threads};
  } else {
    Failure failure = parse_failure(read_safetensors(options.file), options.file);
    if (subject.options.kernel.empty()) subject.options.kernel = failure.note.kernel;
    subject.options.repeat = std::max(options.repeat, failure.note.checks);
    subject.c = failure.of;
    subject.law = failure.note.law;
    subject.options.values = proptest::name(failure.of.values);
    subject.options.seed = failure.of.seed;
    subject.options.threads = failure.of.threads;
    subject.given = std::move(failure.inputs);
  }
  if (subject.options.kernel.empty()) {
    throw InvalidProblem("no kernel given; pass --kernel (attest list kernels)");
  }
  return subject;
}

void require_kind(const attest_kernel& kernel, const Subject& subject) {
  const bool loss = (kernel.description.directions & ATTEST_LOSS_GRADIENT) != 0;
  if (loss == subject.given->loss.has_value()) return;
  throw InvalidProblem("file '" + subject.options.file + "': holds inputs of " +
                       (loss ? "attention" : "the loss gradient") + ", the kernel '" +
                       subject.options.kernel + "' computes " +
                       (loss ? "the loss gradient" : "attention"));
}

// Tells whether the problem is so long that the reference alone judges it, by a sample. A file's
// inputs and other laws, when one is named, take all of it.
bool judges_a_sample(const attest_kernel& kernel, const Subject& subject) {
  const std::string& law = subject.options.law;
  const bool loss = (kernel.description.directions & ATTEST_LOSS_GRADIENT) != 0;
  return !loss && !subject.given && (law.empty() || reference_laws().count(law) > 0) &&
         proptest::judged_by_sample(subject.c.problem);
}

std::string sample_words(const proptest::Case& c) {
  const auto sample = proptest::sample_of(c.problem, c.seed);
  std::size_t queries = 0, keys = 0;
  for (const auto& positions : sample->queries) queries += positions.size();
  for (const auto& positions : sample->keys) keys += positions.size();
  return fmt::format(
      "long: {} of {} queries and {} of {} keys judged, {} at random, by the laws of the reference "
      "alone\n",
      queries, c.problem.tensor_batch() * c.problem.tensor_seqlen_q(), keys,
      c.problem.tensor_batch() * c.problem.tensor_seqlen_k(), proptest::kRandomPositions);
}

int check(const Registry& registry, const CheckOptions& given_options) {
  if (given_options.emulate && !given_options.isolation.emulate) {
    if (given_options.kernel.empty())
      throw InvalidProblem("no kernel given; pass --kernel gpu/...");
    become_emulation({given_options.kernel, given_options.problem, given_options.values,
                      given_options.seed, given_options.races, given_options.json});
  }
  const Subject subject = subject_of(given_options);
  const CheckOptions& options = subject.options;
  const proptest::Case& c = subject.c;
  const InterruptGuard guard(OnInterrupt::end);
  Kernels known(registry, options.isolation);
  const attest_kernel& kernel = known.find_one(options.kernel);
  const bool sampled = judges_a_sample(kernel, subject);
  proptest::require_affordable(
      kernel.description, c.problem,
      sampled ? proptest::Work::sampled_judgement : proptest::Work::judgement);
  std::vector<const proptest::Law*> chosen;
  proptest::Law on_file;
  if (subject.given) {
    // A file's inputs are held against the reference; other laws draw theirs from the seed.
    require_kind(kernel, subject);
    if (subject.given->attention) proptest::require_answer(c.problem, *subject.given->attention);
    on_file = law_on(*subject.given);
    chosen.push_back(&on_file);
    const proptest::Law& law = proptest::find_law(subject.law);
    if (same_inputs(c, *subject.given, generated_inputs(kernel, c))) chosen.push_back(&law);
  } else {
    proptest::require_answer(c.problem, proptest::make_values(c.problem, c.values, c.seed));
  }
  if (!subject.given && options.law.empty()) {
    for (const proptest::Law& law : proptest::laws()) {
      if (sampled && reference_laws().count(std::string(law.name)) == 0) continue;
      if (proptest::concerns(law, kernel.description)) chosen.push_back(&law);
    }
  } else if (!subject.given) {
    chosen.push_back(&proptest::find_law(options.law));
  }
  std::vector<proptest::Case> after;
  for (const std::string& text : options.after) {
    after.push_back(parse_case_text(text, c));
    proptest::require_affordable(kernel.description, after.back().problem,
                                 proptest::Work::judgement);
  }
  CampaignResult result;
  result.kernel = options.kernel;
  std::map<std::string, Verdict> verdicts;
  nlohmann::json laws = nlohmann::json::array();
  if (!options.json) {
    fmt::print("{}  {}\n{}  values={} seed={} threads={}\n\n", bold("kernel"), options.kernel,
               printable(c.problem.to_string()), options.values, options.seed, options.threads);
    if (sampled) fmt::print("{}\n", sample_words(c));
  }
  for (const proptest::Law* law : chosen) {
    const proptest::LawResult found = [&] {
      const ElapsedLine line(std::string(law->name));
      return check_repeatedly(*law, kernel, after, c, options.repeat);
    }();
    result.verdict = graver(result.verdict, found.verdict);
    verdicts[std::string(law->name)] = found.verdict;
    nlohmann::json comparisons = nlohmann::json::array();
    for (const auto& comparison : found.comparisons) {
      comparisons.push_back(comparison_json(comparison));
    }
    const bool failed = found.verdict == Verdict::violated || found.verdict == Verdict::crashed;
    const bool judged =
        failed && !subject.given && reference_laws().count(std::string(law->name)) > 0;
    const std::string term = judged ? bound_term(kernel, c) : "";
    const bool on_own_masks =
        law->mask == proptest::MaskUse::replaced && c.problem.mask.to_string() != "none";
    laws.push_back({{"law", law->name},
                    {"verdict", name(found.verdict)},
                    {"on_own_masks", on_own_masks},
                    {"message", found.message},
                    {"bound_term", term},
                    {"outputs", comparisons}});
    if (options.json) continue;
    const std::string word = fmt::format("{:<12}", name(found.verdict));
    fmt::print("  {:<24} {}", law->name, failed ? bad(word) : word);
    for (const auto& comparison : found.comparisons) {
      if (!failed) fmt::print(" {}={:.2g}", comparison.output, comparison.ratio);
    }
    fmt::print("{}\n", on_own_masks ? " (without the problem's mask)" : "");
    if (!found.message.empty()) fmt::print("    {}\n", hanging(found.message, 6));
    if (!term.empty()) fmt::print("    largest term of the bound of {}\n", term);
  }
  if (const auto verdict = nothing_judged(verdicts); verdict && result.verdict == Verdict::passed) {
    result.verdict = *verdict;
  }
  // One improbable case is not a defect yet, and no certificate either.
  const int code = exit_code({result});
  if (options.json) {
    nlohmann::json object{
        {"schema", "attest-check-1"}, {"kernel", options.kernel},        {"case", case_json(c)},
        {"sampled", sampled},         {"verdict", name(result.verdict)}, {"laws", laws},
        {"exit_code", code}};
    fmt::print("{}\n", json_text(object));
  } else {
    // One case certifies nothing; it passes or it does not.
    fmt::print("\n{}\n", verdict_text(result.verdict));
  }
  return code;
}

}  // namespace

void add_check(CLI::App& app, const Registry& registry, Action& action) {
  CLI::App* command =
      app.add_subcommand("check", "one case, the form in which every failure is printed");
  auto options = std::make_shared<CheckOptions>();
  command
      ->add_option("--kernel", options->kernel,
                   "name of a kernel (attest list kernels), a library "
                   "(./libmine.so, ./libmine.so:name) or a function in Python "
                   "(package.module:function, file.py:function)")
      ->check(not_empty());
  CLI::Option* problem =
      command->add_option("--problem", options->problem, "problem string, for example sq=17,d=64")
          ->check(not_empty());
  CLI::Option* file =
      command
          ->add_option("--file", options->file,
                       "a failure saved by attest certify --failures: its kernel, problem and "
                       "inputs, held against the reference")
          ->check(not_empty());
  const std::vector<CLI::Option*> of_the_case{
      problem,
      command->add_option("--values", options->values, "value family (attest list values)"),
      command->add_option("--law", options->law, "only this law (attest list laws)")
          ->check(not_empty()),
      command->add_option("--seed", options->seed, "seed of the values")->check(whole_number()),
      command->add_option("--threads", options->threads, "threads the kernel may use")
          ->check(CLI::Range(1, 1024))};
  CLI::Option* repeat =
      command
          ->add_option("--repeat", options->repeat, "check so often in one process, default once")
          ->check(CLI::Range(1, 1000000));
  CLI::Option* after =
      command
          ->add_option(
              "--after", options->after,
              "check this case first in the same process, as 'PROBLEM values=V seed=S "
              "threads=T', in which what is left out is as in the case itself (repeatable)")
          ->allow_extra_args(false)
          ->check(not_empty());
  CLI::Option* emulate =
      command->add_flag("--emulate", options->emulate,
                        "a CUDA kernel (gpu/...), emulated: no law, but every order of lanes and "
                        "blocks, and what the emulation finds wrong. A library for CUDA: the PTX "
                        "of its kernels is carried out on the host");
  CLI::Option* races = command
                           ->add_flag("--races", options->races,
                                      "with that, races, and uninitialised reads of shared memory")
                           ->needs(emulate);
  command->add_flag("--json", options->json, "as JSON (certify/schemas/check.schema.json)");
  for (CLI::Option* of_the_file : of_the_case) file->excludes(of_the_file);
  add_isolation_options(*command, options->isolation);
  add_function_options(*command, options->isolation.functions);
  CLI::Option* inputs =
      command
          ->add_option("--inputs", options->inputs,
                       "sparse Q, K and V, random ones (csr:density=D,seed=S) or those of a file "
                       "(PATH.safetensors), with a kernel of attest list sparse_inputs or all of "
                       "them; O, LSE, dQ, dK, dV against the dense reference")
          ->check(not_empty());
  for (CLI::Option* dense : {file, of_the_case[2], of_the_case[4], repeat, after, emulate, races}) {
    inputs->excludes(dense);
  }
  // The emulation of gpu/... has its own orders and threads, and calls each kernel once in each.
  std::vector<CLI::Option*> not_emulated{of_the_case[2], of_the_case[4], repeat, after};
  for (const char* word : {"--isolate", "--timeout", "--memory-limit"}) {
    not_emulated.push_back(command->get_option(word));
    inputs->excludes(command->get_option(word));
  }
  command->footer(
      "Numbers after an output are its worst error over its bound.\n"
      "Examples:\n"
      "  attest check --kernel cpu/flash2 --problem 'sq=17,sk=33,d=64,mask=causal_br'\n"
      "  attest check --kernel broken/missing_rescale --problem 'sq=1,sk=17,d=4' --law "
      "reference_forward\n"
      "  attest check --kernel gpu/flash2 --problem 'sq=65,d=64' --emulate --races\n"
      "  attest check --inputs csr:density=0.1,seed=3 --problem sq=64,d=32 --values negative\n"
      "  attest check --inputs qkv.safetensors --problem sq=64,d=32\n"
      "  attest check --file failures/broken-missing_rescale.reference_forward.safetensors");
  command->callback(
      [&registry, &action, options, not_emulated, file, problem, races, values = of_the_case[1]] {
        const bool of_library = names_library(options->kernel) || file->count() > 0;
        options->isolation.emulate = options->emulate && of_library;
        if (options->emulate && !options->isolation.emulate) {
          if (problem->count() == 0) throw CLI::RequiresError("--emulate", "--problem");
          for (const CLI::Option* other : not_emulated) {
            if (other->count() > 0) throw CLI::ExcludesError("--emulate", other->get_name());
          }
        } else if (races->count() > 0) {
          throw InvalidProblem("--races: races of a library for CUDA are always looked for");
        }
        if (options->inputs.empty()) {
          action = [&registry, options] { return check(registry, *options); };
          return;
        }
        SparseCheckOptions sparse{options->inputs, options->kernel, options->problem, {},
                                  options->seed,   options->json};
        if (values->count() > 0) sparse.values = options->values;
        action = [sparse] { return check_sparse_inputs(sparse); };
      });
}

}  // namespace attest::certify::cli
