#include "certify/history/known_failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "certify/files.hpp"
#include "certify/report/kernel_names.hpp"
#include "certify/worker/conduct/fault.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

std::string trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// A path may hold a # as well.
std::string without_comment(const std::string& line) {
  for (std::size_t sign = line.find('#'); sign != std::string::npos;
       sign = line.find('#', sign + 1)) {
    if (sign == 0 || line[sign - 1] == ' ' || line[sign - 1] == '\t') return line.substr(0, sign);
  }
  return line;
}

// Cuts the last word off; a kernel's path may hold spaces.
std::string last_word(std::string& text) {
  const std::size_t space = text.find_last_of(" \t");
  const std::string word = space == std::string::npos ? text : text.substr(space + 1);
  text = space == std::string::npos ? "" : trimmed(text.substr(0, space));
  return word;
}

bool is_fault(const std::string& word) {
  const auto& kinds = worker::all_fault_kinds();
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](worker::FaultKind kind) { return word == worker::name(kind); });
}

std::string fault_kinds() {
  std::string all;
  for (const worker::FaultKind kind : worker::all_fault_kinds()) {
    all += (all.empty() ? "" : ", ") + std::string(worker::name(kind));
  }
  return all;
}

KnownFailure parsed(const std::string& line, const std::string& where) {
  KnownFailure known;
  known.where = where;
  std::string rest = line;
  known.law = last_word(rest);
  if (is_fault(known.law)) {
    known.kind = known.law;
    known.law = last_word(rest);
  }
  known.kernel = rest;
  if (known.kernel.empty() || known.law.empty()) {
    throw InvalidProblem(where + ": '" + line +
                         "' is not KERNEL LAW, with the kind of a fault behind it where the law "
                         "fails by one, as in './libmine.so:x reference_forward crash'");
  }
  try {
    proptest::find_law(known.law);
  } catch (const InvalidProblem& unknown) {
    throw InvalidProblem(where + ": " + unknown.what() +
                         "; behind a law may stand the kind of a fault: " + fault_kinds());
  }
  return known;
}

std::string kind_of(const Finding& finding) {
  const auto kind = worker::kind_in_finding(finding.message);
  return kind ? std::string(worker::name(*kind)) : "";
}

// Tells whether the entry is of the finding's own law. One of a law that fails with it says nothing
// of the finding: a forward pass may be wrong since yesterday.
bool lists(const KnownFailure& known, const Finding& finding) {
  return finding.law == known.law && kind_of(finding) == known.kind;
}

bool is_listed(const std::vector<KnownFailure>& known, const CampaignResult& result,
               const Finding& finding) {
  return std::any_of(known.begin(), known.end(), [&](const KnownFailure& one) {
    return is_of_kernel(one, result.kernel) && lists(one, finding);
  });
}

// The first check of a law that fails otherwise than a finding does; null where all fail alike.
const WrongCheck* other_failure(const Finding& finding, const LawCount& count) {
  for (const auto& [output, check] : count.wrong) {
    if (finding.outputs.count(output) == 0) return &check;
  }
  return count.wrong_otherwise ? &*count.wrong_otherwise : nullptr;
}

// Tells whether a law that fails with a finding fails as that does alone: a mistake in dQ makes
// neither O wrong nor two equal calls differ.
bool goes_with(const Finding& finding, const std::string& law, const CampaignResult& result) {
  if (!kind_of(finding).empty()) return reference_laws().count(law) == 0;
  return result.laws.count(law) > 0 && other_failure(finding, result.laws.at(law)) == nullptr;
}

// The laws for which a finding needs lines besides that of its own law.
std::vector<std::string> laws_lacking(const std::vector<KnownFailure>& known,
                                      const Finding& finding, const CampaignResult& result) {
  const std::string kind = kind_of(finding);
  std::vector<std::string> laws;
  for (const std::string& law : finding.also) {
    const bool has_line = std::any_of(known.begin(), known.end(), [&](const KnownFailure& one) {
      return one.law == law && one.kind == kind && is_of_kernel(one, result.kernel);
    });
    if (!has_line && !goes_with(finding, law, result)) laws.push_back(law);
  }
  return laws;
}

// Tells what laws find that fail with a finding, but not as it does, each output once; and the
// lines that the list lacks.
std::vector<std::string> hints_for(const Finding& finding, const CampaignResult& result,
                                   const std::vector<std::string>& laws) {
  const std::string kind = kind_of(finding);
  std::vector<std::string> told;
  std::set<std::string> outputs;
  std::string lines;
  for (const std::string& law : laws) {
    lines += (lines.empty() ? "" : "; ") + result.kernel + " " + law;
    if (!kind.empty()) lines += " " + kind;
    const auto count = result.laws.find(law);
    if (!kind.empty() || count == result.laws.end()) continue;
    const WrongCheck* const other = other_failure(finding, count->second);
    if (other == nullptr) continue;
    const std::string output = other->message.substr(0, other->message.find('['));
    if (!outputs.insert(output).second) continue;
    told.push_back(fmt::format("listed, but {} finds more than it: {}; {}", law, other->message,
                               reproduce_line(result.kernel, law, other->c, 1, finding.isolation)));
  }
  told.push_back("if the cause is the same, these lines are lacking in the list: " + lines);
  return told;
}

bool occurs(const KnownFailure& known, const Finding& finding) {
  const bool also =
      std::find(finding.also.begin(), finding.also.end(), known.law) != finding.also.end();
  return lists(known, finding) || (also && kind_of(finding) == known.kind);
}

// An entry may occur while its finding fails the run, for the finding is told as another law.
std::string part_of(const KnownFailure& known, const std::vector<KnownFailure>& all,
                    const std::vector<CampaignResult>& results) {
  for (const CampaignResult& result : results) {
    if (!is_of_kernel(known, result.kernel)) continue;
    for (const Finding& finding : result.findings) {
      if (is_listed(all, result, finding) || finding.undecided || !occurs(known, finding)) continue;
      const std::string kind = kind_of(finding);
      return finding.law + (kind.empty() ? "" : " " + kind);
    }
  }
  return "";
}

Expected expected(const KnownFailure& known, const std::vector<CampaignResult>& results) {
  Expected found = Expected::not_looked_for;
  for (const CampaignResult& result : results) {
    if (!is_of_kernel(known, result.kernel)) continue;
    if (std::any_of(result.findings.begin(), result.findings.end(),
                    [&](const Finding& finding) { return occurs(known, finding); })) {
      return Expected::occurs;
    }
    const auto law = result.laws.find(known.law);
    // A law that fails otherwise, as by a crash, has not come right.
    const bool looked =
        law != result.laws.end() && law->second.passed > 0 && law->second.failed == 0;
    if (looked && !result.interrupted && result.shard.whole()) found = Expected::gone;
  }
  return found;
}

}  // namespace

std::string_view name(Expected expected) {
  switch (expected) {
    case Expected::occurs:
      return "occurs";
    case Expected::gone:
      return "gone";
    case Expected::not_looked_for:
      break;
  }
  return "not_looked_for";
}

bool is_of_kernel(const KnownFailure& known, const std::string& kernel) {
  return known.kernel == kernel || without_folder(known.kernel) == without_folder(kernel);
}

std::vector<KnownFailure> read_known_failures(const std::string& path) {
  std::vector<KnownFailure> known;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of editors on Windows
  std::string whole = read_file(path);
  if (whole.starts_with(kByteOrderMark)) whole.erase(0, kByteOrderMark.size());
  std::istringstream lines(whole);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find('\0') != std::string::npos) {
      throw InvalidProblem(
          fmt::format("{}:{}: holds a byte 0; a line is KERNEL LAW", path, number));
    }
    const std::string text = trimmed(without_comment(line));
    if (!text.empty()) known.push_back(parsed(text, fmt::format("{}:{}", path, number)));
  }
  return known;
}

bool has_entry(const std::vector<KnownFailure>& known, const std::string& kernel) {
  return std::any_of(known.begin(), known.end(),
                     [&](const KnownFailure& one) { return is_of_kernel(one, kernel); });
}

void require_definite(const std::vector<KnownFailure>& known,
                      const std::vector<std::string>& kernels) {
  for (const KnownFailure& one : known) {
    std::string first;
    for (const std::string& kernel : kernels) {
      const std::size_t colon = kernel.find(':');
      const bool of_file = colon != std::string::npos && one.kernel.find(':') == std::string::npos;
      if (of_file &&
          without_folder(one.kernel + ":") == without_folder(kernel.substr(0, colon) + ":")) {
        throw InvalidProblem(fmt::format("{}: '{}' is a file; write the kernel, as in '{} {}'",
                                         one.where, one.kernel, one.kernel + kernel.substr(colon),
                                         one.law));
      }
      if (!is_of_kernel(one, kernel) || first == kernel) continue;
      if (!first.empty()) {
        throw InvalidProblem(fmt::format(
            "{}: '{}' is both '{}' and '{}', for a folder tells nothing here; certify one of them "
            "alone, or give its file another name",
            one.where, one.kernel, first, kernel));
      }
      first = kernel;
    }
  }
}

ExpectedKinds expected_kinds(const std::vector<KnownFailure>& known, const std::string& kernel) {
  ExpectedKinds kinds;
  for (const KnownFailure& one : known) {
    if (is_of_kernel(one, kernel)) kinds.insert(worker::kind_in(one.kind));
  }
  // Such an address meets memory of an earlier call where there was one; it is told as of a first.
  const bool beyond = kinds.count(worker::FaultKind::out_of_bounds) > 0;
  if (beyond) kinds.insert(worker::FaultKind::stale_memory);
  return kinds;
}

std::vector<KnownOutcome> mark_known(const std::vector<KnownFailure>& known,
                                     std::vector<CampaignResult>& results) {
  for (CampaignResult& result : results) {
    // A fault makes no other call's results wrong.
    const bool may_be_wrong = expected_kinds(known, result.kernel).count(std::nullopt) > 0;
    for (Finding& finding : result.findings) {
      const bool has_line = is_listed(known, result, finding);
      const std::vector<std::string> lacking = laws_lacking(known, finding, result);
      finding.known = has_line && lacking.empty();
      if (has_line && !lacking.empty()) {
        const auto hints = hints_for(finding, result, lacking);
        auto& told = finding.evidence.hints;
        told.insert(told.end(), hints.begin(), hints.end());
      }
      const bool in_part = result.interrupted || !result.shard.whole();
      finding.undecided = !finding.known && in_part && finding.verdict == Verdict::violated &&
                          kind_of(finding).empty() && may_be_wrong;
    }
  }
  std::vector<KnownOutcome> outcomes;
  outcomes.reserve(known.size());
  for (const KnownFailure& one : known)
    outcomes.push_back({one, expected(one, results), part_of(one, known, results)});
  return outcomes;
}

nlohmann::json known_json(const std::vector<KnownOutcome>& outcomes) {
  nlohmann::json list = nlohmann::json::array();
  for (const KnownOutcome& one : outcomes) {
    const KnownFailure& known = one.failure;
    list.push_back(
        {{"kernel", known.kernel},
         {"law", known.law},
         {"kind", known.kind.empty() ? nlohmann::json(nullptr) : nlohmann::json(known.kind)},
         {"outcome", name(one.expected)},
         {"part_of", one.part_of.empty() ? nlohmann::json(nullptr) : nlohmann::json(one.part_of)}});
  }
  return list;
}

}  // namespace attest::certify
