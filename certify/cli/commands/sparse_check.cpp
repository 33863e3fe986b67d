#include "certify/cli/commands/sparse_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "certify/campaign/campaign.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/interrupt.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/printable.hpp"
#include "certify/sparse_inputs/sparse_inputs.hpp"
#include "certify/sparse_inputs/sparse_inputs_check.hpp"
#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "fixtures/sparse_kernels.hpp"
#include "proptest/judge/truth/affordable.hpp"
#include "proptest/values/sparse_values.hpp"
#include "sparse/inputs/input_kernels.hpp"

namespace attest::certify::cli {
namespace {

struct SparseCheckOptions {
  std::string inputs;
  std::string kernel;  // empty: all but the broken ones
  std::string problem;
  std::optional<std::string> values;
  std::uint64_t seed = 1;
  bool json = false;
};

std::vector<SparseKernel> chosen_sparse_kernels(const std::string& kernel) {
  if (kernel.empty()) return sparse::input_kernels();
  std::vector<std::string> names;
  for (SparseKernel& known : all_sparse_kernels()) {
    if (known.name == kernel) return {std::move(known)};
    names.push_back(known.name);
  }
  throw InvalidProblem(fmt::format("kernel '{}' takes no sparse Q, K and V{} ({})", kernel,
                                   did_you_mean(kernel, names), fmt::join(names, ", ")));
}

struct SparseSubject {
  std::string inputs;
  std::optional<std::string> values;  // none of a file
  SparseOperands operands;
  std::vector<float> dO;
};

SparseSubject sparse_subject_of(const SparseCheckOptions& options, const Problem& problem) {
  SparseInputs inputs = parse_sparse_inputs(options.inputs, problem);
  SparseSubject subject{inputs.spelling, {}, std::move(inputs.operands), {}};
  if (inputs.source == SparseInputs::Source::drawn) {
    subject.values = options.values.value_or("normal");
    subject.operands = proptest::with_values(proptest::parse_sparse_family(*subject.values),
                                             subject.operands, options.seed);
  } else if (options.values) {
    throw InvalidProblem("--values with a file of inputs, which holds its values; leave it out");
  }
  constexpr std::uint64_t kCotangent = 1;  // another stream than the values
  Rng rng(options.seed, kCotangent);
  subject.dO = proptest::draw_cotangent(rng, problem.seqlen_q * problem.head_dim_v);
  return subject;
}

void require_affordable_judgement(const Problem& problem) {
  attest_description description{};
  description.directions = ATTEST_FORWARD | ATTEST_BACKWARD;
  proptest::require_affordable(description, problem, proptest::Work::judgement);
}

void print_finding(const SparseFinding& finding, std::size_t width) {
  const proptest::LawResult& result = finding.result;
  const std::string word = fmt::format("{:<12}", name(result.verdict));
  fmt::print("  {:<{}}  {:<8}  {}", finding.kernel, width, finding.pass,
             result.verdict == Verdict::violated ? bad(word) : word);
  for (const proptest::Comparison& comparison : result.comparisons) {
    fmt::print(" {}={:.2g}", comparison.output, comparison.ratio);
  }
  fmt::print("\n");
  if (!result.message.empty()) fmt::print("    {}\n", result.message);
}

void print_unseen(const proptest::SparseTruth& truth) {
  const auto line = [](const char* pass, const std::vector<std::string>& names) {
    if (!names.empty()) fmt::print("    {:<8}  {}\n", pass, fmt::join(names, "; "));
  };
  const std::vector<std::string> forward = truth.unseen_forward(),
                                 backward = truth.unseen_backward();
  if (forward.empty() && backward.empty()) return;
  fmt::print("\n  not seen on these inputs, where they are the exact result:\n");
  line("forward", forward);
  line("backward", backward);
}

int check_sparse_inputs(const SparseCheckOptions& options) {
  const std::vector<SparseKernel> kernels = chosen_sparse_kernels(options.kernel);
  const Problem problem = Problem::parse(options.problem);
  require_sparse_problem(problem);
  require_affordable_judgement(problem);
  const SparseSubject subject = sparse_subject_of(options, problem);
  const InterruptGuard guard(OnInterrupt::end);
  std::size_t width = 0;
  for (const SparseKernel& kernel : kernels) width = std::max(width, kernel.name.size());
  if (!options.json) {
    fmt::print("{}  {}\n{}  values={} seed={}\n\n", bold("inputs"), printable(subject.inputs),
               problem.to_string(), subject.values.value_or("of the file"), options.seed);
  }
  const proptest::SparseTruth truth = [&] {
    const ElapsedLine line("reference");
    return proptest::SparseTruth(subject.operands, subject.dO);
  }();
  std::vector<SparseFinding> findings;
  for (const SparseKernel& kernel : kernels) {
    const std::vector<SparseFinding> found = [&] {
      const ElapsedLine line(kernel.name);
      return check_sparse_kernel(kernel, truth);
    }();
    for (const SparseFinding& finding : found) {
      if (!options.json) print_finding(finding, width);
      findings.push_back(finding);
    }
  }
  CampaignResult result;
  result.verdict = verdict_of(findings);
  const int code = exit_code({result});
  if (options.json) {
    const nlohmann::json of{
        {"problem", "v1;" + problem.to_string()},
        {"values", subject.values ? nlohmann::json(*subject.values) : nlohmann::json(nullptr)},
        {"seed", options.seed}};
    fmt::print(
        "{}\n",
        json_text({{"schema", "attest-check-1"},
                   {"inputs", subject.inputs},
                   {"case", of},
                   {"passes", findings_json(findings)},
                   {"unseen",
                    {{"forward", truth.unseen_forward()}, {"backward", truth.unseen_backward()}}},
                   {"verdict", name(result.verdict)},
                   {"exit_code", code}}));
  } else {
    print_unseen(truth);
    fmt::print("\n{}\n", verdict_text(result.verdict));
  }
  return code;
}

}  // namespace

std::vector<SparseKernel> all_sparse_kernels() {
  std::vector<SparseKernel> all = sparse::input_kernels();
  for (SparseKernel& broken : fixtures::broken_sparse_kernels()) all.push_back(std::move(broken));
  return all;
}

void require_dense(const std::string& kernel) {
  for (const SparseKernel& known : all_sparse_kernels()) {
    if (known.name != kernel) continue;
    throw InvalidProblem("kernel '" + kernel +
                         "' takes sparse Q, K and V alone; attest check-sparse runs it, with "
                         "--inputs csr:density=0.1 or a .safetensors file");
  }
}

void add_check_sparse(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "check-sparse", "one case of the kernels of sparse Q, K and V against the dense reference");
  auto options = std::make_shared<SparseCheckOptions>();
  command
      ->add_option("--inputs", options->inputs,
                   "random Q, K and V (csr:density=D,seed=S) or those of a file "
                   "(PATH.safetensors)")
      ->required()
      ->check(not_empty());
  command
      ->add_option("--problem", options->problem,
                   "problem string of one head and batch entry without a mask, for example "
                   "sq=64,d=32")
      ->required()
      ->check(not_empty());
  command
      ->add_option("--kernel", options->kernel,
                   "one of attest list sparse_inputs or of the broken ones, default all of the "
                   "first")
      ->check(not_empty());
  command->add_option("--values", options->values, "value family, default normal");
  command->add_option("--seed", options->seed, "seed of the values and of dO")
      ->check(whole_number());
  command->add_flag("--json", options->json, "as JSON (certify/schemas/check.schema.json)");
  command->footer(
      "O, LSE, dQ, dK and dV are judged; numbers after an output are its worst error over its "
      "bound.\n"
      "Examples:\n"
      "  attest check-sparse --inputs csr:density=0.1,seed=3 --problem sq=64,d=32 --values "
      "negative\n"
      "  attest check-sparse --inputs qkv.safetensors --problem sq=64,d=32");
  command->callback(
      [&action, options] { action = [options] { return check_sparse_inputs(*options); }; });
}

}  // namespace attest::certify::cli
