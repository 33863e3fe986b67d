#include "certify/cli/commands/certify_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "certify/audit/seal.hpp"
#include "certify/campaign/merge.hpp"
#include "certify/campaign/tier.hpp"
#include "certify/cli/early_end.hpp"
#include "certify/cli/reports.hpp"
#include "certify/files.hpp"
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

// Checks that failed before, by kernel. The first run of a pipeline has no journal yet.
std::map<std::string, FailedChecks> failed_before(
    const CertifyOptions& options, const std::vector<const attest_kernel*>& kernels) {
  if (options.failed_first.empty()) return {};
  if (!std::filesystem::exists(options.failed_first)) {
    fmt::print(stderr, "attest: --failed-first: there is no '{}'; checks run in their order\n",
               printable(options.failed_first));
    return {};
  }
  try {
    return failed_checks(options.failed_first, names_of(kernels));
  } catch (const InvalidProblem& damaged) {  // a cache's file, that changes no result
    fmt::print(stderr, "attest: --failed-first: {}; checks run in their order\n",
               printable(damaged.what()));
    return {};
  }
}

// Kernels are called as those of the shards were.
void load_shards(const Registry& registry, const CertifyOptions& options, Kernels& known,
                 Order& order) {
  const MergedCampaign merged = merge_shards(options.merge, order.journal);
  IsolationOptions isolation = options.isolation;
  for (const std::string& words : merged.isolation) read_isolation(words, isolation);
  known = Kernels(registry, isolation);
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

}  // namespace

std::vector<std::string> names_of(const std::vector<const attest_kernel*>& kernels) {
  std::vector<std::string> names;
  for (const attest_kernel* kernel : kernels) names.push_back(kernel->description.name);
  return names;
}

void load_order(const Registry& registry, const CertifyOptions& options, Kernels& known,
                Order& order) {
  if (options.merge.empty()) {
    load_options(registry, options, known, order);
  } else {
    load_shards(registry, options, known, order);
    order.first = failed_before(options, order.kernels);
  }
  order.campaign.jobs = options.jobs;
  require_beside(order.kernels, files_of(options));
}

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

}  // namespace attest::certify::cli
