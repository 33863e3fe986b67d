#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "certify/campaign/campaign.hpp"
#include "certify/certificate.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/interrupt.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/findings/case_text.hpp"
#include "certify/findings/state_finding.hpp"
#include "certify/plan/plan.hpp"
#include "certify/printable.hpp"
#include "certify/report/failure.hpp"
#include "certify/report/html/evidence.hpp"
#include "core/error.hpp"
#include "proptest/judge/truth/affordable.hpp"
#include "proptest/judge/truth/sample.hpp"

namespace attest::certify::cli {
namespace {

struct CheckOptions {
  std::string kernel, problem, values = "normal", law, file;
  std::uint64_t seed = 1;
  std::int32_t threads = 1, repeat = 1;
  std::vector<std::string> after;  // cases checked before it, as case_text spells them
  bool json = false;
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

// Throws InvalidProblem where the case is too large for this machine or has no answer, or where the
// inputs of a file are of another kind.
void require_judgeable(const attest_kernel& kernel, const Subject& subject) {
  const proptest::Case& c = subject.c;
  const bool sampled = judges_a_sample(kernel, subject);
  proptest::require_affordable(
      kernel.description, c.problem,
      sampled ? proptest::Work::sampled_judgement : proptest::Work::judgement);
  if (!subject.given) {
    proptest::require_answer(c.problem, proptest::make_values(c.problem, c.values, c.seed));
    return;
  }
  require_kind(kernel, subject);
  if (subject.given->attention) proptest::require_answer(c.problem, *subject.given->attention);
}

// The inputs of a file are held against the reference; other laws draw theirs from the seed.
std::vector<proptest::Law> laws_of(const attest_kernel& kernel, const Subject& subject) {
  std::vector<proptest::Law> chosen;
  if (subject.given) {
    chosen.push_back(law_on(*subject.given));
    const proptest::Law& law = proptest::find_law(subject.law);
    const Inputs generated = generated_inputs(kernel, subject.c);
    if (same_inputs(subject.c, *subject.given, generated)) chosen.push_back(law);
    return chosen;
  }
  if (!subject.options.law.empty()) return {proptest::find_law(subject.options.law)};
  const bool sampled = judges_a_sample(kernel, subject);
  for (const proptest::Law& law : proptest::laws()) {
    if (sampled && reference_laws().count(std::string(law.name)) == 0) continue;
    if (proptest::concerns(law, kernel.description)) chosen.push_back(law);
  }
  return chosen;
}

std::vector<proptest::Case> earlier_cases(const attest_kernel& kernel, const Subject& subject) {
  std::vector<proptest::Case> after;
  for (const std::string& text : subject.options.after) {
    after.push_back(parse_case_text(text, subject.c));
    proptest::require_affordable(kernel.description, after.back().problem,
                                 proptest::Work::judgement);
  }
  return after;
}

// Result of a law, with words of the report.
struct Judged {
  std::string law;
  proptest::LawResult found;
  std::string term;           // the largest of the broken bound; "" where none is known
  bool on_own_masks = false;  // the problem's own was left out

  bool failed() const {
    return found.verdict == Verdict::violated || found.verdict == Verdict::crashed;
  }
};

Judged judged(const proptest::Law& law, const attest_kernel& kernel, const Subject& subject,
              proptest::LawResult found) {
  Judged result{std::string(law.name), std::move(found), "", false};
  const bool by_reference = !subject.given && reference_laws().count(result.law) > 0;
  if (result.failed() && by_reference) result.term = bound_term(kernel, subject.c);
  result.on_own_masks =
      law.mask == proptest::MaskUse::replaced && subject.c.problem.mask.to_string() != "none";
  return result;
}

nlohmann::json law_json(const Judged& judged) {
  nlohmann::json comparisons = nlohmann::json::array();
  for (const auto& comparison : judged.found.comparisons) {
    comparisons.push_back(comparison_json(comparison));
  }
  return {{"law", judged.law},
          {"verdict", name(judged.found.verdict)},
          {"on_own_masks", judged.on_own_masks},
          {"message", judged.found.message},
          {"bound_term", judged.term},
          {"outputs", comparisons}};
}

void print_law(const Judged& judged) {
  const std::string word = fmt::format("{:<12}", name(judged.found.verdict));
  fmt::print("  {:<24} {}", judged.law, judged.failed() ? bad(word) : word);
  for (const auto& comparison : judged.found.comparisons) {
    if (!judged.failed()) fmt::print(" {}={:.2g}", comparison.output, comparison.ratio);
  }
  fmt::print("{}\n", judged.on_own_masks ? " (without the problem's mask)" : "");
  if (!judged.found.message.empty()) fmt::print("    {}\n", hanging(judged.found.message, 6));
  if (!judged.term.empty()) fmt::print("    largest term of the bound of {}\n", judged.term);
}

int check(const Registry& registry, const CheckOptions& given_options) {
  const Subject subject = subject_of(given_options);
  const CheckOptions& options = subject.options;
  const proptest::Case& c = subject.c;
  const InterruptGuard guard(OnInterrupt::end);
  Kernels known(registry, options.isolation);
  const attest_kernel& kernel = known.find_one(options.kernel);
  const bool sampled = judges_a_sample(kernel, subject);
  require_judgeable(kernel, subject);
  const std::vector<proptest::Law> chosen = laws_of(kernel, subject);
  const std::vector<proptest::Case> after = earlier_cases(kernel, subject);
  CampaignResult result;
  result.kernel = options.kernel;
  std::map<std::string, Verdict> verdicts;
  nlohmann::json laws = nlohmann::json::array();
  if (!options.json) {
    fmt::print("{}  {}\n{}  values={} seed={} threads={}\n\n", bold("kernel"), options.kernel,
               printable(c.problem.to_string()), options.values, options.seed, options.threads);
    if (sampled) fmt::print("{}\n", sample_words(c));
  }
  for (const proptest::Law& law : chosen) {
    proptest::LawResult found = [&] {
      const ElapsedLine line(std::string(law.name));
      return check_repeatedly(law, kernel, after, c, options.repeat).result;
    }();
    const Judged one = judged(law, kernel, subject, std::move(found));
    result.verdict = graver(result.verdict, one.found.verdict);
    verdicts[one.law] = one.found.verdict;
    laws.push_back(law_json(one));
    if (!options.json) print_law(one);
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

// Refuses an option that a command of its own has now.
void add_moved(CLI::App& command, const std::string& option, const std::string& now) {
  command
      .add_option_function<std::vector<std::string>>(
          option, [now](const auto&) { throw InvalidProblem(now); })
      ->expected(0, 1)
      ->group("");
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
  command->add_option("--repeat", options->repeat, "check so often in one process, default once")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--after", options->after,
                   "check this case first in the same process, as 'PROBLEM values=V seed=S "
                   "threads=T', in which what is left out is as in the case itself (repeatable)")
      ->allow_extra_args(false)
      ->check(not_empty());
  command->add_flag("--emulate", options->isolation.emulate,
                    "a library for CUDA: the PTX of its kernels is carried out on the host");
  command->add_flag("--json", options->json, "as JSON (certify/schemas/check.schema.json)");
  for (CLI::Option* of_the_file : of_the_case) file->excludes(of_the_file);
  add_isolation_options(*command, options->isolation);
  add_function_options(*command, options->isolation.functions);
  add_moved(*command, "--inputs",
            "sparse Q, K and V have a command of their own: attest check-sparse --inputs …");
  add_moved(*command, "--races",
            "races of an emulated kernel are looked for by attest emulate --races; those of a "
            "library for CUDA always are");
  command->footer(
      "Numbers after an output are its worst error over its bound.\n"
      "Examples:\n"
      "  attest check --kernel cpu/flash2 --problem 'sq=17,sk=33,d=64,mask=causal_br'\n"
      "  attest check --kernel broken/missing_rescale --problem 'sq=1,sk=17,d=4' --law "
      "reference_forward\n"
      "  attest check --kernel ./libmine_cuda.so --problem sq=5,sk=7,d=8 --emulate\n"
      "  attest check --file failures/broken-missing_rescale.reference_forward.safetensors");
  command->callback([&registry, &action, options] {
    action = [&registry, options] { return check(registry, *options); };
  });
}

}  // namespace attest::certify::cli
