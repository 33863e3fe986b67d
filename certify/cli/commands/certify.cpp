#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "certify/audit/seal.hpp"
#include "certify/campaign/campaign.hpp"
#include "certify/campaign/tier.hpp"
#include "certify/certificate.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/commands/certify_estimate.hpp"
#include "certify/cli/commands/certify_options.hpp"
#include "certify/cli/commands/certify_order.hpp"
#include "certify/cli/commands/defects.hpp"
#include "certify/cli/commands/kernel_campaign.hpp"
#include "certify/cli/early_end.hpp"
#include "certify/cli/interrupt.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/cli/report.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/files.hpp"
#include "certify/history/known_failures.hpp"
#include "certify/printable.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {
namespace {

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
    const bool whole = !results.back().interrupted;
    if (whole && order.campaign.cases && outcome(results.back()) == "incomplete") {
      fmt::print("  run it without --cases: a tier adds the cases that are missing\n");
    }
    std::fflush(stdout);  // a log shows it now
  }
  return results;
}

// Does what comes before the first check. Where that refuses, files of an earlier run stay, and are
// named: none must be taken for the result of this one.
template <class Work>
auto before_the_first_check(const CertifyOptions& options, const Work& work) {
  try {
    return work();
  } catch (const SameFile&) {  // which may be of no run
    throw;
  } catch (const InvalidProblem&) {
    for (const std::string& path : earlier_files(options.out, options.reports)) {
      fmt::print(stderr, "attest: '{}' is of an earlier run, and left as it is\n", printable(path));
    }
    throw;
  }
}

// A run that ends without a certificate leaves none of an earlier one, nor tensors of a failure.
void remove_earlier(const CertifyOptions& options,
                    const std::vector<const attest_kernel*>& kernels) {
  for (const std::string& path : earlier_files(options.out, options.reports)) remove_file(path);
  if (options.failures.empty()) return;
  for (const attest_kernel* kernel : kernels) {
    const std::string name = kernel->description.name;
    for (const std::string& path : earlier_failures(options.failures, name)) remove_file(path);
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
  before_the_first_check(options, [&] {
    load_order(registry, options, known, order);
    require_definite(known_failures, names_of(order.kernels));
  });
  const CampaignOptions& campaign = order.campaign;
  const InterruptGuard guard(OnInterrupt::ask);
  if (options.estimate) return tell_estimates(order.kernels, campaign, options.json);
  remove_earlier(options, order.kernels);
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
  add_certify_options(*command, *options);
  command->callback([&registry, &schedules, &action, options, command] {
    require_together(*command, *options);
    action = [&registry, &schedules, options] { return certify(registry, schedules, *options); };
  });
}

}  // namespace attest::certify::cli
