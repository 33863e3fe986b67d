#include "certify/cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "certify/campaign/where_run.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/printable.hpp"
#include "certify/report/certificate_fields.hpp"
#include "certify/report/html/sampled.hpp"
#include "core/contract/contract_text.hpp"
#include "core/text/thousands.hpp"

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
  const std::string standing = standing_of(finding.known, finding.undecided);
  if (!standing.empty()) fmt::print("    {}\n", warning(standing));
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
  if (word == "unsupported" && result.checks == 0) return warning("NOTHING PROVEN (no check ran)");
  return result.verdict == Verdict::passed ? good("CERTIFIED") : verdict_text(result.verdict);
}

std::string cases_text(std::uint64_t done, std::uint64_t planned) {
  return done == planned ? counted(done, "case")
                         : fmt::format("{} of {}", thousands(done), counted(planned, "case"));
}

void print_sampled(std::int64_t positions) {
  if (positions > 0) fmt::print("  {}\n", sampled_words(positions));
}

namespace {

// Lines of one kind that a summary prints; the others are counted.
constexpr std::size_t kFew = 3;

template <typename Items, typename Print>
void print_some(const Items& items, Detail detail, const Print& print) {
  std::size_t printed = 0;
  for (const auto& item : items) {
    if (detail == Detail::summary && printed == kFew) {
      fmt::print("  … and {} more such lines: --verbose\n", items.size() - printed);
      return;
    }
    print(item);
    ++printed;
  }
}

double times(std::int64_t moved, std::int64_t words) {
  return static_cast<double>(moved) / static_cast<double>(words);
}

void print_code(const CodeCount& code) {
  const std::string beside =
      code.lower && code.lower->words > 0
          ? fmt::format("; {:.3f} times {}, {} words", times(code.words.total(), code.lower->words),
                        code.lower->name, thousands(code.lower->words))
          : "";
  fmt::print("      the code as it ran on one thread: {} words read, {} written{}\n",
             thousands(code.words.reads), thousands(code.words.writes), beside);
}

// Prints the class that the lower bounds hold for, and of each problem the words beside them; a
// problem to which a bound does not apply has it not.
void print_table(const ScheduleAudit& io) {
  fmt::print("{}", indented(::attest::io::class_text(io.table.front().count.kernel), 4));
  for (const CountedProblem& counted : io.table) {
    const ::attest::io::ScheduleCount& count = counted.count;
    const ::attest::io::Traffic& moved = count.counted;
    fmt::print("    {}\n      {}: {} words read, {} written, peak {}; closed form {}\n",
               counted.problem.to_string(), count.schedule, thousands(moved.reads.words.value()),
               thousands(moved.writes.words.value()), thousands(moved.peak.words.value()),
               count.closed_form_equal() ? "equal" : bad("differs"));
    for (const ::attest::io::Bound& bound : count.bounds) {
      if (!bound.is_lower_bound() || bound.words == 0) continue;
      fmt::print("      {:.3f} times {}, {} words, {}\n",
                 times(moved.total_words().value(), bound.words), bound.name,
                 thousands(bound.words), bound.label());
    }
    if (counted.of_code) print_code(*counted.of_code);
  }
}

// Prints the least and the most of words over the highest lower bound among the model shapes.
void print_nearness(const ScheduleAudit& io) {
  double least = 0, most = 0;
  for (const CountedProblem& counted : io.table) {
    const auto ratio = counted.ratio();
    if (!ratio) continue;
    least = least == 0 ? *ratio : std::min(least, *ratio);
    most = std::max(most, *ratio);
  }
  if (most > 0) {
    const bool of_code = std::all_of(io.table.begin(), io.table.end(),
                                     [](const auto& counted) { return counted.of_code; });
    fmt::print("    {}on {} model shapes {:.3f} to {:.3f} times the highest lower bound\n",
               of_code ? "the code as it ran on one thread: " : "", io.table.size(), least, most);
  }
}

void print_io(const ScheduleAudit& io, Detail detail) {
  fmt::print("  I/O of {}", bold(io.schedule));
  if (io.fast_memory_bytes > 0) {
    fmt::print(" in {} bytes of fast memory", thousands(io.fast_memory_bytes));
  }
  fmt::print(": {} counted with data, {} with the kernel's bits\n", counted(io.cases, "case"),
             thousands(io.equal_bits));
  if (detail == Detail::whole && !io.table.empty()) print_table(io);
  if (detail == Detail::summary) print_nearness(io);
  print_some(io.not_counted, detail, [](const std::string& reason) {
    fmt::print("    {} {}\n", warning("not counted:"), reason);
  });
  for (const std::string& violation : io.violations) {
    fmt::print("    {} {}\n", bad("violated:"), violation);
  }
}

void print_laws(const std::map<std::string, LawCount>& laws, Detail detail) {
  if (detail == Detail::summary) {
    std::vector<std::string> failed, silent;  // silent: counted on no case
    std::size_t held = 0;
    std::uint64_t improbable = 0;
    for (const auto& [law, count] : laws) {
      improbable += count.improbable;
      if (count.failed > 0) failed.push_back(law);
      if (count.failed == 0 && count.passed > 0) ++held;
      if (count.failed == 0 && count.passed == 0) silent.push_back(law);
    }
    fmt::print("  laws                     {} of {} held", held, laws.size());
    if (!failed.empty()) fmt::print("; {} {}", bad("FAILED:"), fmt::join(failed, " "));
    if (!silent.empty() && silent.size() <= kFew) {
      fmt::print("; no case that counts: {}", fmt::join(silent, " "));
    } else if (!silent.empty()) {
      fmt::print("; {} have no case that counts: --verbose", silent.size());
    }
    fmt::print("\n");
    if (improbable > 0) {
      fmt::print("  improbable once          {} checks, right when drawn again: --verbose\n",
                 thousands(improbable));
    }
    return;
  }
  for (const auto& [law, count] : laws) {
    fmt::print("  {:<24} passed {:>6}  vacuous {:>5}  unsupported {:>5}", law,
               thousands(count.passed), thousands(count.vacuous), thousands(count.unsupported));
    if (count.improbable > 0) fmt::print("  improbable once {}", thousands(count.improbable));
    if (count.failed > 0) fmt::print("  {}", bad("FAILED"));
    fmt::print("\n");
  }
}

void print_not_claimed(const std::map<std::string, std::uint64_t>& missing) {
  std::vector<std::string> features;
  for (const auto& [feature, count] : missing) {
    features.push_back(count == 0 ? feature : feature + " (" + counted(count, "check") + ")");
  }
  if (!features.empty()) fmt::print("  not covered: {}\n", fmt::join(features, ", "));
}

std::uint64_t hidden_checks(const CampaignResult& result) {
  std::uint64_t sum = 0;
  for (const auto& [law, count] : result.laws) sum += count.hidden;
  return sum;
}

void print_sizes(const SizesByKind& sizes, Detail detail) {
  if (sizes.empty()) return;
  if (detail == Detail::summary) {
    fmt::print("  sizes covered            {}\n", sizes_text(sizes_json(of_all_kinds(sizes))));
    return;
  }
  for (const auto& [mask, covered] : sizes) {
    fmt::print("  sizes covered: {:<9} {}\n", mask, sizes_text(sizes_json(covered)));
  }
  print_sampled(sampled_positions(sizes));
}

}  // namespace

void print_result(const attest_kernel& kernel, const CampaignResult& result, Detail detail) {
  fmt::print("{}  {}  ({}, {} passed, {} vacuous)\n", bold(result.kernel), headline(result),
             cases_text(result.cases, result.planned_cases), counted(result.passed(), "check"),
             thousands(result.vacuous()));
  if (result.mask) {
    fmt::print("  on the mask {} alone: certifies no other\n", printable(*result.mask));
  }
  if (outcome(result) == "law_holds") fmt::print("  one law alone: certifies nothing\n");
  fmt::print("  ran {}\n", where_run(kernel.description));
  // Names the device; and of a library, only its author knows what it does on the CPU.
  const bool of_library = !result.library.empty();
  if (kernel.description.device == ATTEST_CUDA || of_library) {
    fmt::print("  {}\n", printable(kernel.description.summary));
  }
  if (of_library) fmt::print("  SHA-256 of the file      {}\n", result.library);
  if (const std::string contract = contract_text(kernel.description.numerics); !contract.empty()) {
    fmt::print("  contract                 {}\n", contract);
  }
  print_laws(result.laws, detail);
  if (!result.worst.empty()) {
    fmt::print("  worst error/bound       ");
    for (const auto& [output, worst] : result.worst) {
      fmt::print(" {}={}", output, error_ratio_text(worst.ratio));
    }
    fmt::print("\n");
  }
  if (!result.claimed.empty() && result.shard.whole()) {
    fmt::print("  pairs of properties      {} of {} claimed met against the reference\n",
               thousands(result.claimed.size() - unmet_pairs(result).size()),
               thousands(result.claimed.size()));
  }
  print_sizes(result.sizes, detail);
  const std::vector<std::string> missed = unexercised(kernel.description, result);
  const bool told_as_gaps = outcome(result) == "incomplete" || fails_as_known(result);
  if (!missed.empty() && !told_as_gaps && result.shard.whole()) {
    fmt::print("  claimed, never exercised: {}\n", fmt::join(missed, " "));
  }
  print_not_claimed(result.not_claimed);
  print_some(result.needed, detail, [](const NeededFile& one) {
    fmt::print("  linked with: {} {}\n", printable(one.path), one.sha256);
  });
  print_some(result.loaded, detail, [](const std::string& file) {
    fmt::print("  loaded in a call: {}\n", printable(file));
  });
  print_some(result.refused, detail, [](const Refusal& one) {
    fmt::print("  {} ({}), first: {}\n", warning(printable(one.message)),
               counted(one.checks, "check"), one.example);
  });
  const bool incomplete = outcome(result) == "incomplete" || result.interrupted;
  print_some(fails_as_known(result) ? result.gaps_beside
             : incomplete           ? result.gaps
                                    : not_judged(result),
             detail,
             [](const std::string& gap) { fmt::print("  {} {}\n", warning("incomplete:"), gap); });
  if (const std::uint64_t hidden = hidden_checks(result); hidden > 0 && fails_as_known(result)) {
    fmt::print("  not judged: the results of {} that met a listed fault\n",
               counted(hidden, "check"));
  }
  if (result.io) print_io(*result.io, detail);
  if (result.io_backward) print_io(*result.io_backward, detail);
  for (const Finding& finding : result.findings) print_finding(result.kernel, finding);
}

void print_total(const std::vector<CampaignResult>& results) {
  if (results.size() < 2) return;
  std::map<std::string, std::size_t> outcomes;
  std::uint64_t cases = 0, checks = 0;
  std::size_t findings = 0;
  for (const CampaignResult& result : results) {
    ++outcomes[headline(result)];
    cases += result.cases;
    checks += result.passed();
    findings += result.findings.size();
  }
  std::vector<std::string> counts;
  for (const auto& [word, count] : outcomes) counts.push_back(fmt::format("{} {}", count, word));
  fmt::print("{} kernels: {}; {}, {} passed, {}\n", results.size(), fmt::join(counts, ", "),
             counted(cases, "case"), counted(checks, "check"), counted(findings, "finding"));
}

void print_known(const std::vector<KnownOutcome>& outcomes,
                 const std::vector<CampaignResult>& results) {
  std::size_t occur = 0;
  for (const KnownOutcome& one : outcomes) {
    const KnownFailure& known = one.failure;
    if (one.expected == Expected::occurs) ++occur;
    const bool named = std::any_of(results.begin(), results.end(), [&](const auto& result) {
      return is_of_kernel(known, result.kernel);
    });
    if (!one.part_of.empty()) {
      fmt::print("{} {} {} ({}) occurs as part of {}, which is not listed; its line is: {} {}\n",
                 warning("known failure:"), printable(known.kernel), known.law,
                 printable(known.where), one.part_of, printable(known.kernel), one.part_of);
    }
    if (named && one.expected != Expected::gone) continue;
    fmt::print("{} {} {} ({}) {}\n", named ? good("known failure:") : warning("known failure:"),
               printable(known.kernel), known.law, printable(known.where),
               named ? "did not occur; take it off the list unless other campaigns meet it"
                     : "names no kernel of this run");
  }
  if (outcomes.empty()) return;
  fmt::print("known failures: {} of {} occur\n", occur, outcomes.size());
}

}  // namespace attest::certify::cli
