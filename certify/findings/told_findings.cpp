#include "certify/findings/told_findings.hpp"

#include <algorithm>

#include "certify/findings/same_cause.hpp"
#include "certify/findings/shrunk_finding.hpp"
#include "certify/report/contracts.hpp"
#include "certify/report/suspicion.hpp"
#include "certify/worker/process/isolated_kernel.hpp"

namespace attest::certify {
namespace {

using proptest::Case;

class Teller {
 public:
  Teller(Run& run, const std::vector<PlannedCase>& plan) : run_(run), plan_(plan) {}

  // The findings shrunk, those of a law against the reference first, for they say most; forward
  // before backward, which fails of a wrong O, too. An earlier one
  // takes in what fails of its cause.
  std::vector<Finding> tell(std::vector<Finding> pending) const {
    std::stable_sort(pending.begin(), pending.end(), [](const Finding& one, const Finding& other) {
      return rank(one.law) < rank(other.law);
    });
    std::vector<Finding> told;
    while (!pending.empty()) {
      Finding head = std::move(pending.front());
      pending.erase(pending.begin());
      shrink(head);
      // Its smallest case may be one on which the earlier law fails too, where that of the earlier
      // finding was too small to say anything by this law.
      const auto cause = std::find_if(told.begin(), told.end(), [&](const Finding& earlier) {
        return same_mistake(earlier, head) || of_its_cause(head, earlier);
      });
      worker::restart(run_.kernel);
      if (cause != told.end()) {
        fold(*cause, head);
        continue;
      }
      head.outputs = refused_outputs(run_.kernel, head, is_shrunk(head));
      worker::restart(run_.kernel);
      fold_same_cause(head, pending);
      told.push_back(std::move(head));
    }
    return told;
  }

 private:
  static int rank(const std::string& law) {
    if (law == "reference_forward") return 0;
    return reference_laws().count(law) > 0 ? 1 : 2;
  }

  // Tells whether `other` fails of the cause of `head`. Where the campaign is ended nothing is
  // shrunk any more; each of its shards may have found a smallest case of the law, on which a call
  // costs little. One that may hang is not called.
  bool of_its_cause(const Finding& head, const Finding& other) const {
    if (!run_.interrupted()) return same_cause(run_.kernel, head, other);
    const auto known = run_.journal.shrunk_cases(run_.kernel.description.name, head.law);
    return std::any_of(known.begin(), known.end(), [&](const ShrunkRecord& record) {
      Finding smallest = head;
      take(smallest, record);
      return !worker::kind_in_finding(record.message) && same_cause(run_.kernel, smallest, other);
    });
  }

  static void take(Finding& finding, const ShrunkRecord& record) {
    finding.shrunk = record.shrunk;
    finding.message = record.message;
    if (const auto kind = worker::kind_in_finding(record.message)) {
      finding.verdict = worker::verdict_of(*kind);
    }
    finding.checks = record.checks;
    finding.after = record.after;
  }

  // A law may have a finding of each kind of failure, and is named once.
  static void fold(Finding& head, const Finding& other) {
    std::vector<std::string> laws{other.law};
    laws.insert(laws.end(), other.also.begin(), other.also.end());
    for (const std::string& law : laws) {
      const bool named = std::find(head.also.begin(), head.also.end(), law) != head.also.end();
      if (law != head.law && !named) head.also.push_back(law);
    }
  }

  void fold_same_cause(Finding& head, std::vector<Finding>& pending) const {
    std::vector<char> same(pending.size(), 0);
    run_parallel(run_.jobs, pending.size(), [&](std::size_t k) {
      same[k] = of_its_cause(head, pending[k]) ? 1 : 0;
      worker::restart(run_.kernel);
    });
    std::vector<Finding> others;
    for (std::size_t k = 0; k < pending.size(); ++k) {
      if (same[k] != 0) {
        fold(head, pending[k]);
      } else {
        others.push_back(std::move(pending[k]));
      }
    }
    pending = std::move(others);
  }

  // A fault may end the process, or hang: it refuses no output.
  bool is_shrunk(const Finding& finding) const {
    return !run_.interrupted() && !worker::kind_in_finding(finding.message);
  }

  void shrink(Finding& finding) const {
    if (!find_smallest(finding)) {
      finding.evidence.hints = {
          "the campaign ended before it was run again by itself: the line passes where it comes of "
          "earlier calls or of chance; a campaign that runs to its end tells"};
      return;
    }
    if (worker::kind_in_finding(finding.message) == worker::FaultKind::hang) {
      finding.evidence.hints = {"a call that is slow and does return needs a longer --timeout"};
    }
    if (run_.interrupted() || finding.verdict != Verdict::violated) return;
    finding.evidence = evidence_of(run_.kernel, finding);
    worker::restart(run_.kernel);
  }

  // The checks of the process that met the finding, in their order.
  std::vector<Case> sequence_of(const Finding& finding) const {
    std::vector<Case> sequence;
    for (const Batch& batch : run_.batches) {
      const auto& positions = batch.positions;
      if (batch.law->name != finding.law ||
          std::find(positions.begin(), positions.end(), finding.position) == positions.end()) {
        continue;
      }
      for (std::size_t made = 0; made < std::max<std::size_t>(positions.size(), kBatchLength);
           ++made) {
        const std::uint64_t position = positions[made % positions.size()];
        const auto record = run_.journal.check(
            {run_.kernel.description.name, std::string(batch.law->name), position});
        Case c = position == finding.position ? finding.found : plan_[position].c;
        if (record) c.seed = record->seed;
        sequence.push_back(c);
      }
    }
    return sequence;
  }

  // Returns false where the campaign ends first.
  bool find_smallest(Finding& finding) const {
    const CheckName name{run_.kernel.description.name, finding.law, finding.position};
    if (const auto known = run_.journal.shrunk(name)) {
      take(finding, *known);
      return true;
    }
    if (run_.interrupted()) return false;
    worker::restart(run_.kernel);
    shrink_finding(run_.kernel, finding, sequence_of(finding), run_.interrupted);
    worker::restart(run_.kernel);
    if (run_.interrupted()) return false;
    note(run_, name, ShrunkRecord{finding.shrunk, finding.message, finding.checks, finding.after});
    return true;
  }

  Run& run_;
  const std::vector<PlannedCase>& plan_;
};

}  // namespace

Evidence evidence_of(const attest_kernel& kernel, const Finding& finding) {
  Evidence evidence = examine(kernel, finding.found, finding.shrunk);
  evidence.suspicions = suspicions_of(kernel, finding.shrunk, finding.found, finding.message);
  const bool by_itself = finding.checks == 1 && finding.after.empty();
  const bool wrong_results = by_itself && !worker::kind_in_finding(finding.message);
  const bool explained = !evidence.signatures.empty() || !evidence.suspicions.empty();
  if (wrong_results && !explained) {
    evidence.hints =
        hints_of(proptest::find_law(finding.law), kernel, finding.found, finding.shrunk);
  }
  return evidence;
}

std::vector<Finding> told_findings(Run& run, const std::vector<PlannedCase>& plan,
                                   std::vector<Finding> findings) {
  return Teller(run, plan).tell(std::move(findings));
}

}  // namespace attest::certify
