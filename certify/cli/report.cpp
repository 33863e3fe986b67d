#include "certify/cli/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "certify/cli/terminal.hpp"
#include "certify/files.hpp"
#include "certify/printable.hpp"
#include "certify/report/sampled.hpp"
#include "certify/where_run.hpp"
#include "certify/worker/isolated_kernel.hpp"

namespace attest::certify::cli {

void print_finding(const std::string& kernel, const Finding& finding) {
  fmt::print("    {} {}: {}\n", finding.law, name(finding.verdict), hanging(finding.message, 6));
  if (!finding.also.empty()) fmt::print("    also fails: {}\n", fmt::join(finding.also, ", "));
  if (!finding.evidence.bound_term.empty()) {
    fmt::print("    largest term of the bound of {}\n", finding.evidence.bound_term);
  }
  for (const proptest::Signature& one : finding.evidence.signatures) {
    fmt::print("    equals {}\n", one.statement);
  }
  for (const Suspicion& one : finding.evidence.suspicions) {
    fmt::print("    seen: it {}\n", one.statement);
  }
  for (const std::string& hint : finding.evidence.hints) fmt::print("    {}\n", hint);
  if (!finding.file.empty()) fmt::print("    tensors: {}\n", printable(finding.file));
  fmt::print("    reproduce: {}\n", reproduce_line(kernel, finding));
}

std::string headline(const CampaignResult& result) {
  const std::string_view word = outcome(result);
  if (word == "incomplete") return warning("INCOMPLETE");
  if (word == "law_holds") return good("LAW HOLDS");
  if (word == "mask_holds") return good("HOLDS ON THE MASK");
  if (word == "shard_passed") {
    const std::string shard = "SHARD " + to_string(result.shard);
    return result.checks == 0 ? warning(shard + " EMPTY") : good(shard + " PASSED");
  }
  return result.verdict == Verdict::passed ? good("CERTIFIED") : verdict_text(result.verdict);
}

std::string cases_text(std::uint64_t done, std::uint64_t planned) {
  return done == planned ? fmt::format("{} cases", done)
                         : fmt::format("{} of {} cases", done, planned);
}

void print_io(const ScheduleAudit& io) {
  fmt::print("  I/O of {}", bold(io.schedule));
  if (io.fast_memory_bytes > 0) fmt::print(" in {} bytes of fast memory", io.fast_memory_bytes);
  fmt::print(": {} cases counted with data, {} with the kernel's bits\n", io.cases, io.equal_bits);
  // Prints the class that the lower bounds below hold for; a problem to which one does not apply
  // has none printed.
  if (!io.table.empty()) {
    fmt::print("{}", indented(::attest::io::class_text(io.table.front().count.kernel), 4));
  }
  for (const CountedProblem& counted : io.table) {
    const ::attest::io::ScheduleCount& count = counted.count;
    const ::attest::io::Traffic& moved = count.counted;
    fmt::print("    {}\n      {}: {} words read, {} written, peak {}; closed form {}\n",
               counted.problem.to_string(), count.schedule, moved.reads.words.value(),
               moved.writes.words.value(), moved.peak.words.value(),
               count.closed_form_equal() ? "equal" : bad("differs"));
    for (const ::attest::io::Bound& bound : count.bounds) {
      if (!bound.is_lower_bound() || bound.words == 0) continue;
      fmt::print(
          "      {:.3f} times {}, {} words, {}\n",
          static_cast<double>(moved.total_words().value()) / static_cast<double>(bound.words),
          bound.name, bound.words, bound.label());
    }
  }
  for (const std::string& reason : io.not_counted) {
    fmt::print("    {} {}\n", warning("not counted:"), reason);
  }
  for (const std::string& violation : io.violations) {
    fmt::print("    {} {}\n", bad("violated:"), violation);
  }
}

void print_sampled(std::int64_t positions) {
  if (positions > 0) fmt::print("  {}\n", sampled_words(positions));
}

void print_result(const attest_kernel& kernel, const CampaignResult& result) {
  fmt::print("{}  {}  ({}, {} checks passed, {} vacuous)\n", bold(result.kernel), headline(result),
             cases_text(result.cases, result.planned_cases), result.passed(), result.vacuous());
  if (result.mask) {
    fmt::print("  on the mask {} alone: certifies no other\n", printable(*result.mask));
  }
  if (outcome(result) == "law_holds") fmt::print("  one law alone: certifies nothing\n");
  fmt::print("  ran {}\n", where_run(kernel.description));
  // Names the device; and of a library, only its author knows what it does on the CPU.
  const auto library = worker::library_of(kernel);
  if (kernel.description.device == ATTEST_CUDA || library) {
    fmt::print("  {}\n", printable(kernel.description.summary));
  }
  if (library) fmt::print("  content of the file       {}\n", content_id(*library));
  for (const auto& [law, count] : result.laws) {
    fmt::print("  {:<24} passed {:>5}  vacuous {:>4}  unsupported {:>4}", law, count.passed,
               count.vacuous, count.unsupported);
    if (count.improbable > 0) fmt::print("  improbable once {}", count.improbable);
    if (count.failed > 0) fmt::print("  {}", bad("FAILED"));
    fmt::print("\n");
  }
  if (!result.worst.empty()) {
    fmt::print("  worst error/bound       ");
    for (const auto& [output, worst] : result.worst) {
      fmt::print(" {}={}", output, error_ratio_text(worst.ratio));
    }
    fmt::print("\n");
  }
  if (!result.claimed.empty() && result.shard.whole()) {
    fmt::print("  pairs of properties      {} of {} claimed met against the reference\n",
               result.claimed.size() - unmet_pairs(result).size(), result.claimed.size());
  }
  for (const auto& [mask, covered] : result.sizes) {
    fmt::print("  sizes covered: {:<9} {}\n", mask, sizes_text(sizes_json(covered)));
  }
  print_sampled(sampled_positions(result.sizes));
  const std::vector<std::string> missed = unexercised(kernel.description, result);
  if (!missed.empty() && outcome(result) != "incomplete" && result.shard.whole()) {
    fmt::print("  claimed, never exercised: {}\n", fmt::join(missed, " "));
  }
  for (const auto& [feature, count] : result.not_claimed) {
    const std::string checks = count == 0 ? "" : fmt::format(" ({} checks)", count);
    fmt::print("  not covered: {}{}\n", feature, checks);
  }
  for (const std::string& file : result.loaded) {
    fmt::print("  loaded in a call: {}\n", printable(file));
  }
  for (const Refusal& one : result.refused) {
    fmt::print("  {} ({} {}), first: {}\n", warning(printable(one.message)), one.checks,
               one.checks == 1 ? "check" : "checks", one.example);
  }
  if (outcome(result) == "incomplete" || result.interrupted) {
    for (const std::string& gap : result.gaps) {
      fmt::print("  {} {}\n", warning("incomplete:"), gap);
    }
  }
  if (result.io) print_io(*result.io);
  if (result.io_backward) print_io(*result.io_backward);
  for (const Finding& finding : result.findings) print_finding(result.kernel, finding);
}

}  // namespace attest::certify::cli
