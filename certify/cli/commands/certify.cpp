#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "certify/audit/seal.hpp"
#include "certify/campaign/campaign.hpp"
#include "certify/campaign/merge.hpp"
#include "certify/campaign/tier.hpp"
#include "certify/certificate.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/commands/certify_estimate.hpp"
#include "certify/cli/commands/defects.hpp"
#include "certify/cli/commands/kernel_campaign.hpp"
#include "certify/cli/early_end.hpp"
#include "certify/cli/interrupt.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/cli/report.hpp"
#include "certify/cli/reports.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/files.hpp"
#include "certify/history/failed_checks.hpp"
#include "certify/history/known_failures.hpp"
#include "certify/plan/own_problems.hpp"
#include "certify/plan/plan.hpp"
#include "certify/printable.hpp"
#include "certify/report/remarks/source_place.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/error.hpp"
#include "fixtures/register.hpp"
#include "proptest/judge/truth/affordable.hpp"

namespace attest::certify::cli {
namespace {

constexpr std::uint64_t kMostCases = 1000000000;

struct CertifyOptions {
  std::vector<std::string> kernels, except;
  bool all = false, correct = false, json = false, verbose = false, defects = false;
  std::string tier = "smoke", shapes = "model", only, mask, out, resume, shard = "1/1";
  std::vector<std::string> problems;
  std::string problem_file;
  ReportFiles reports;
  std::string failures;  // folder
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> data_seed, cases;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::string> merge;
  IsolationOptions isolation;
  std::string max_time, known_failures, failed_first;
  bool fail_fast = false, estimate = false;
};

std::vector<std::string> chosen_kernels(const Registry& registry, const CertifyOptions& options) {
  if (options.all && !options.kernels.empty()) {
    throw InvalidProblem("--all and kernel names together; pass one of them");
  }
  if (options.correct && (options.all || !options.kernels.empty())) {
    throw InvalidProblem("--correct and other kernels together; pass one of them");
  }
  if (options.correct) return correct_fixtures();
  if (options.kernels.empty() && !options.all) {
    throw InvalidProblem("no kernel given; pass names (attest list kernels) or --all");
  }
  if (!options.except.empty() && !options.all) {
    throw InvalidProblem("--except without --all; name the kernels that are meant");
  }
  std::vector<std::string> names;
  if (!options.all) {
    for (const std::string& name : options.kernels) {  // a kernel named twice runs once
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
  }
  for (const std::string& name : registry.names()) {
    if (!is_fixture(name)) names.push_back(name);
  }
  for (const std::string& begin : options.except) {
    const auto excepted = [&](const std::string& name) { return name.rfind(begin, 0) == 0; };
    if (std::erase_if(names, excepted) == 0) {
      throw InvalidProblem("--except " + begin + ": no kernel's name begins so (attest list)");
    }
  }
  if (names.empty()) throw InvalidProblem("--except leaves no kernel of --all to certify");
  return names;
}

// Subject of a certification: kernels, options, and what is known of earlier runs or other shards.
struct Order {
  CampaignOptions campaign;
  std::vector<const attest_kernel*> kernels;
  std::vector<std::string> libraries;  // what theirs held before a journal or certificate said so
  Journal journal;
  std::map<std::string, double> seconds;      // that the shards took
  std::map<std::string, FailedChecks> first;  // checks that failed before, by kernel
};

// Checks that failed before, by kernel. The first run of a pipeline has no journal yet.
std::map<std::string, FailedChecks> failed_before(
    const CertifyOptions& options, const std::vector<const attest_kernel*>& kernels) {
  if (options.failed_first.empty()) return {};
  if (!std::filesystem::exists(options.failed_first)) {
    fmt::print(stderr, "attest: --failed-first: there is no '{}'; checks run in their order\n",
               printable(options.failed_first));
    return {};
  }
  std::vector<std::string> names;
  for (const attest_kernel* kernel : kernels) names.push_back(kernel->description.name);
  return failed_checks(options.failed_first, names);
}

void load_shards(const CertifyOptions& options, Kernels& known, Order& order) {
  const MergedCampaign merged = merge_shards(options.merge, order.journal);
  order.campaign = merged.options;
  order.seconds = merged.seconds;
  for (const std::string& name : merged.kernels) order.kernels.push_back(&known.find_one(name));
  order.libraries = library_contents(order.kernels);
  require_same_campaign(merged.header, campaign_header(order.kernels, order.campaign),
                        options.merge.front());
}

// Requires that kernels claim a form of the mask; of --all, leaves out and names those that do not.
void require_forms(const CampaignMask& mask, bool all, std::vector<const attest_kernel*>& kernels) {
  if (!all) {
    for (const attest_kernel* kernel : kernels) require_form(*kernel, mask);
    return;
  }
  std::erase_if(kernels, [&](const attest_kernel* kernel) {
    try {
      require_form(*kernel, mask);
      return false;
    } catch (const InvalidProblem& without) {
      fmt::print(stderr, "attest: left out: {}\n", printable(without.what()));
      return true;
    }
  });
  if (kernels.empty()) throw InvalidProblem("--mask " + mask.spelling + ": no kernel left");
}

void load_options(const Registry& registry, const CertifyOptions& options, Kernels& known,
                  Order& order) {
  order.campaign.tier = parse_tier(options.tier);
  order.campaign.seed = options.seed;
  order.campaign.data_seed = options.data_seed;
  order.campaign.cases = options.cases;
  order.campaign.shapes = parse_shapes(options.shapes);
  order.campaign.shard = parse_shard(options.shard);
  if (!options.only.empty()) order.campaign.law = proptest::find_law(options.only).name;
  if (!options.mask.empty()) order.campaign.mask = parse_campaign_mask(options.mask);
  if (order.campaign.mask && !options.only.empty() &&
      proptest::find_law(options.only).mask == proptest::MaskUse::replaced) {
    throw InvalidProblem("--only " + options.only +
                         ": the law has masks of its own, or none, and says nothing about --mask; "
                         "leave one of the two out");
  }
  order.campaign.problems = own_problems(options.problems, options.problem_file);
  if (!order.campaign.problems.empty() && !options.only.empty() &&
      reference_laws().count(options.only) == 0) {
    throw InvalidProblem("--only " + options.only +
                         ": problems of your own meet the laws of the reference alone; leave "
                         "--only out, or pass one of those");
  }
  for (const std::string& word : chosen_kernels(registry, options)) {
    const std::vector<const attest_kernel*> found = known.find(word);
    order.kernels.insert(order.kernels.end(), found.begin(), found.end());
  }
  for (const attest_kernel* kernel : order.kernels) {
    require_affordable_problems(*kernel, order.campaign.problems);
  }
  if (order.campaign.mask) require_forms(*order.campaign.mask, options.all, order.kernels);
  if (order.campaign.mask && order.campaign.mask->shape) {
    for (const attest_kernel* kernel : order.kernels) {
      Problem one_head;
      one_head.seqlen_q = order.campaign.mask->shape->rows;
      one_head.seqlen_k = order.campaign.mask->shape->columns;
      proptest::require_affordable(kernel->description, one_head, proptest::Work::judgement);
    }
  }
  order.libraries = library_contents(order.kernels);
  order.first = failed_before(options, order.kernels);
  if (options.resume.empty()) return;
  for (const attest_kernel* kernel : order.kernels) {
    if (!names_function(kernel->description.name) || worker::library_of(*kernel)) continue;
    throw InvalidProblem(fmt::format(
        "--resume: '{}' is in no file, so a journal cannot tell whether it is still the same "
        "function; leave --resume out",
        kernel->description.name));
  }
  order.journal.open(options.resume, campaign_header(order.kernels, order.campaign));
  for (const std::string& command : order.journal.unfinished()) {
    fmt::print(stderr, "attest: an earlier run ended within: {}\n", printable(command));
  }
}

std::vector<NamedFile> files_of(const CertifyOptions& options) {
  std::vector<NamedFile> files{{"--out", options.out},
                               {"--resume", options.resume},
                               {"--failed-first", options.failed_first},
                               {"--known-failures", options.known_failures},
                               {"--problems", options.problem_file}};
  for (const auto& [option, path] : options.reports.named()) files.push_back({option, path});
  for (const std::string& shard : options.merge) files.push_back({"--merge", shard});
  if (!options.reports.source.empty()) {
    files.push_back({"--source", parse_place(options.reports.source).file});
  }
  return files;
}

// Requires that no file of the options is that of a kernel's code, which is known once it is
// loaded.
void require_beside(const std::vector<const attest_kernel*>& kernels,
                    std::vector<NamedFile> files) {
  for (const attest_kernel* kernel : kernels) {
    if (const auto code = worker::library_of(*kernel)) files.push_back({"the kernel", *code});
  }
  require_distinct(files);
}

// Requires that the file of a kernel is what it was, and that of the mask. Where it is not, when it
// became another is not known: the journal keeps nothing of this run.
void require_same_files(Order& order, std::size_t kernel) {
  try {
    require_unchanged({order.kernels[kernel]}, {order.libraries[kernel]});
    if (order.campaign.mask) require_unchanged(*order.campaign.mask);
  } catch (const InvalidProblem&) {
    order.journal.forget_run();
    throw;
  }
}

// Runs the campaign of each kernel and prints what it found.
std::vector<CampaignResult> carry_out(const Registry& registry,
                                      const io::ScheduleRegistry& schedules,
                                      const CertifyOptions& options,
                                      const std::vector<KnownFailure>& known, Order& order) {
  std::optional<double> most_seconds;
  if (!options.max_time.empty()) most_seconds = parse_duration("--max-time", options.max_time);
  EarlyEnd end(most_seconds, options.fail_fast);
  std::vector<CampaignResult> results;
  for (std::size_t k = 0; k < order.kernels.size(); ++k) {
    const attest_kernel* kernel = order.kernels[k];
    const std::string name = kernel->description.name;
    Surveillance surveillance{[&end] { return end.reached(); }, &order.journal};
    surveillance.ended_by = [&end] { return end.cause(); };
    // Laws that fail of a listed cause are told at the end alone.
    surveillance.failed = [&](const std::string&) {
      if (!has_entry(known, name)) end.note_failure();
    };
    surveillance.expected = expected_kinds(known, name);
    if (order.first.count(name) > 0) surveillance.first = order.first.at(name);
    results.push_back(kernel_campaign(registry, schedules, *kernel, order.campaign, surveillance));
    if (order.seconds.count(name) > 0) results.back().seconds += order.seconds.at(name);
    mark_known(known, results);
    if (!options.failures.empty()) save_failures(options.failures, *kernel, results.back());
    require_same_files(order, k);  // before its verdict is told
    if (options.json) continue;
    print_result(*kernel, results.back(), options.verbose ? Detail::whole : Detail::summary);
    if (order.campaign.cases && outcome(results.back()) == "incomplete") {
      fmt::print("  run it without --cases: a tier adds the cases that are missing\n");
    }
    std::fflush(stdout);  // a log shows it now
  }
  return results;
}

// Refuses what is wrong with the options and files before the work, not after it.
std::vector<KnownFailure> require_options(const CertifyOptions& options) {
  require_distinct(files_of(options));
  certificate_date();
  if (!options.out.empty()) require_writable(options.out);
  require_report_files(options.reports);
  if (!options.failures.empty()) require_folder(options.failures);
  if (!options.max_time.empty()) parse_duration("--max-time", options.max_time);
  if (options.known_failures.empty()) return {};
  return read_known_failures(options.known_failures);
}

void load(const Registry& registry, const CertifyOptions& options, Kernels& known, Order& order) {
  if (options.merge.empty()) {
    load_options(registry, options, known, order);
  } else {
    load_shards(options, known, order);
    order.first = failed_before(options, order.kernels);
  }
  order.campaign.jobs = options.jobs;
  require_beside(order.kernels, files_of(options));
}

// Does what comes before the first check. Where that refuses, files of an earlier run stay, and are
// named: none must be taken for the result of this one.
template <class Work>
auto before_the_first_check(const CertifyOptions& options, const Work& work) {
  try {
    return work();
  } catch (const InvalidProblem&) {
    for (const std::string& path : earlier_files(options.out, options.reports)) {
      fmt::print(stderr, "attest: '{}' is of an earlier run\n", printable(path));
    }
    throw;
  }
}

int certify(const Registry& registry, const io::ScheduleRegistry& schedules,
            const CertifyOptions& options) {
  Kernels known(registry, options.isolation);
  const std::vector<KnownFailure> known_failures =
      before_the_first_check(options, [&] { return require_options(options); });
  if (options.defects) {
    CampaignOptions campaign;
    campaign.tier = parse_tier(options.tier);
    campaign.seed = options.seed;
    campaign.data_seed = options.data_seed;
    campaign.cases = options.cases;
    campaign.jobs = options.jobs;
    return certify_defects(registry, options.kernels, campaign, options.isolation.limits(),
                           {options.out, options.json});
  }
  Order order;
  before_the_first_check(options, [&] { load(registry, options, known, order); });
  const CampaignOptions& campaign = order.campaign;
  const InterruptGuard guard(OnInterrupt::ask);
  if (options.estimate) return tell_estimates(order.kernels, campaign, options.json);
  // A run that ends without a certificate leaves none of an earlier one.
  for (const std::string& path : earlier_files(options.out, options.reports)) remove_file(path);
  std::vector<CampaignResult> results =
      carry_out(registry, schedules, options, known_failures, order);
  for (std::size_t k = 0; k < order.kernels.size(); ++k) require_same_files(order, k);
  const std::vector<KnownOutcome> outcomes = mark_known(known_failures, results);
  if (!options.json) print_total(results);
  if (!options.json) print_known(outcomes, results);
  nlohmann::json object = certificate(known.registry(), campaign, results, &order.journal);
  object["known_failures"] = known_json(outcomes);
  seal(object);
  const std::string text = json_text(object) + "\n";
  if (!options.out.empty()) write_file(options.out, text);
  write_reports(object, options.reports);
  if (options.json) fmt::print("{}", text);
  if (!options.json && !options.out.empty()) {
    fmt::print("certificate: {}\n", printable(options.out));
  }
  return exit_code(results);
}

}  // namespace

void add_certify(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
                 Action& action) {
  CLI::App* command = app.add_subcommand(
      "certify", "the campaign: every law on generated cases, the reference on long ones");
  auto options = std::make_shared<CertifyOptions>();
  command->add_option(
      "kernel", options->kernels,
      "names of kernels (attest list kernels), libraries (./libmine.so) or functions "
      "in Python (package.module:function, file.py:function)");
  command->add_flag("--all", options->all, "every kernel that is not broken on purpose");
  command->add_flag("--correct", options->correct,
                    "the correct kernels that the bounds are tested on, the loosest of every "
                    "contract among them: a finding is a false alarm");
  command
      ->add_option("--except", options->except,
                   "with --all: not the kernels whose names begin so, for example gpu/")
      ->check(not_empty());
  command->add_option("--tier", options->tier, "smoke (default), fast or full");
  command->add_option("--seed", options->seed, "seed of the campaign, default 1")
      ->check(whole_number());
  command->add_option("--cases", options->cases, "generated cases instead of the tier's")
      ->check(whole_number(kMostCases));
  command->add_option("--shapes", options->shapes,
                      "model (default): those of published models, too; none: generated cases "
                      "alone, for a quick look; certifies nothing");
  command->add_option("--data-seed", options->data_seed, "seed of the values, default --seed")
      ->check(whole_number());
  command
      ->add_option("--jobs", options->jobs,
                   "checks at a time, default one for each processor; changes no result")
      ->check(CLI::Range(1u, 1024u));
  command->add_option("--shard", options->shard,
                      "i/n: only part i of n of the checks; --merge joins the parts");
  command
      ->add_option("--resume", options->resume,
                   "journal (JSON lines): begin it, or go on where it ends")
      ->check(not_empty());
  command->add_option("--merge", options->merge,
                      "certificates of all shards: the verdict on the whole, in place of kernels");
  command
      ->add_option("--only", options->only, "only this law (attest list laws); certifies nothing")
      ->check(not_empty());
  command
      ->add_option("--mask", options->mask,
                   "every case with this mask (docs/how-to/masks.md; file_PATH, pattern_PATH) in "
                   "place of its own, without model shapes; certifies no other mask")
      ->check(not_empty());
  CLI::Option* problem =
      command
          ->add_option("--problem", options->problems,
                       "a problem of your own beside the campaign's, judged by the reference, by a "
                       "sample where it is long; several with --problem each")
          ->check(not_empty());
  CLI::Option* problems =
      command
          ->add_option("--problems", options->problem_file,
                       "the same with a file: one problem a line, # begins a comment")
          ->check(not_empty());
  problem->allow_extra_args(false);
  for (CLI::Option* own : {problem, problems}) own->excludes(command->get_option("--mask"));
  command
      ->add_option("--max-time", options->max_time,
                   "end at the next check after this time (90, 20m, 1.5h); what is missing then "
                   "makes the campaign incomplete, --resume goes on")
      ->check(not_empty());
  command->add_flag("--fail-fast", options->fail_fast,
                    "end at the first check that fails, without shrinking; kernels in the list of "
                    "--known-failures run to their end");
  command
      ->add_option("--known-failures", options->known_failures,
                   "file with a line KERNEL LAW for each finding that is expected: it is told and "
                   "does not fail the run; one that occurs no longer is named")
      ->check(not_empty());
  command
      ->add_option("--failed-first", options->failed_first,
                   "journal of an earlier run: what failed there runs first; changes no result")
      ->check(not_empty());
  command->add_flag("--estimate", options->estimate,
                    "run a sample of the checks and tell how long all will take, no more");
  command->add_option("--out", options->out, "write the certificate (JSON) to this file")
      ->check(not_empty());
  add_report_files(*command, options->reports);
  command
      ->add_option("--failures", options->failures,
                   "folder: the tensors of every failure as safetensors, see attest check --file")
      ->check(not_empty());
  command->add_flag("--json", options->json, "print the certificate instead of the report");
  command->add_flag("--verbose", options->verbose,
                    "print every law, kind of mask, model shape and lower bound");
  command->add_flag("--emulate", options->isolation.emulate,
                    "libraries for CUDA without a GPU: the PTX of their kernels is carried out on "
                    "the host, a call in 20 times --timeout at most "
                    "(docs/how-to/cuda-libraries-without-a-gpu.md)");
  add_isolation_options(*command, options->isolation);
  add_function_options(*command, options->isolation.functions);
  command->footer(
      "Examples:\n"
      "  attest certify cpu/flash2\n"
      "  attest certify ./libmine.so\n"
      "  attest certify ./libmine_cuda.so --emulate\n"
      "  attest certify mypackage.attention:flash --like flash_attn_func --numerics tensor_core\n"
      "  attest certify --all --tier fast --seed 7 --out certificate.json\n"
      "  attest certify --all --except gpu/ --except cpu/schedule/\n"
      "  attest certify broken/missing_rescale --only reference_forward\n"
      "  attest certify cpu/flash2 --problem 'hq=4,hkv=1,sq=4096,d=64,mask=causal_br'\n"
      "  attest certify sparse/csr_gather --mask pattern_mask.json\n"
      "  attest certify cpu/flash2 --tier full --resume journal.jsonl\n"
      "  attest certify cpu/flash2 --shard 1/2 --out 1.json   (and 2/2), then\n"
      "  attest certify --merge 1.json 2.json --out certificate.json\n"
      "  attest certify cpu/flash2 --html report.html --junit junit.xml --failures failures\n"
      "  attest certify ./libmine.so --tier fast --estimate\n"
      "  attest certify ./libmine.so --max-time 20m --known-failures known.txt --resume now.jsonl\n"
      "    --failed-first last.jsonl --sarif findings.sarif --markdown summary.md --github\n"
      "    (docs/how-to/put-into-your-ci.md)\n"
      "Ctrl-C ends at the next check: the certificate then says that it is partial, and the exit\n"
      "status is 3 unless something was found. A second one ends at once, without a certificate;\n"
      "a journal is kept. The status is 3, too, where part of\n"
      "what the kernel claims was not judged.");
  command->add_flag("--defects", options->defects,
                    "every kernel that is broken on purpose, or those named: which law refuses "
                    "it, how soon, and which published rules do not");
  command->callback([&registry, &schedules, &action, options, command] {
    for (const char* other : {"--all",          "--correct",   "--except",
                              "--only",         "--mask",      "--shapes",
                              "--problem",      "--problems",  "--shard",
                              "--resume",       "--merge",     "--html",
                              "--junit",        "--sarif",     "--markdown",
                              "--github",       "--source",    "--failures",
                              "--max-time",     "--fail-fast", "--known-failures",
                              "--failed-first", "--estimate"}) {
      if (!options->defects || command->count(other) == 0) continue;
      throw InvalidProblem(fmt::format("--defects and {} together; pass one of them", other));
    }
    for (const char* other :
         {"kernel", "--all", "--correct", "--except", "--tier", "--seed", "--data-seed", "--cases",
          "--shapes", "--only", "--mask", "--problem", "--problems", "--shard", "--resume"}) {
      if (command->count("--merge") == 0 || command->count(other) == 0) continue;
      throw InvalidProblem(fmt::format(
          "--merge and {} together; the shards' certificates name kernels and options", other));
    }
    for (const char* other :
         {"--resume", "--merge", "--out", "--html", "--junit", "--sarif", "--markdown", "--github",
          "--failures", "--max-time", "--fail-fast", "--known-failures", "--failed-first"}) {
      if (!options->estimate || command->count(other) == 0) continue;
      throw InvalidProblem(fmt::format(
          "--estimate and {} together; an estimate finds nothing, leave it out", other));
    }
    if (options->json && options->reports.github) {
      throw InvalidProblem("--json and --github both print; pass one, and --out for the other");
    }
    action = [&registry, &schedules, options] { return certify(registry, schedules, *options); };
  });
}

}  // namespace attest::certify::cli
