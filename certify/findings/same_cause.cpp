#include "certify/findings/same_cause.hpp"

#include <algorithm>
#include <array>

#include "certify/findings/state_finding.hpp"
#include "certify/worker/conduct/fault.hpp"

namespace attest::certify {
namespace {

constexpr std::array<std::string_view, 7> kOutputs{"O", "LSE", "dQ", "dK", "dV", "dX", "dY"};

bool is_output(std::string_view word) {
  return std::find(kOutputs.begin(), kOutputs.end(), word) != kOutputs.end();
}

bool by_chance(const Finding& finding) {
  return finding.message.starts_with("race: ") || finding.message.starts_with("chance: ");
}

// The results of `law` as the smallest case of `head` is reproduced.
proptest::LawResult on_smallest_case(const std::string& law, const attest_kernel& kernel,
                                     const Finding& head) {
  std::vector<proptest::Case> before = head.after;
  const int earlier = by_chance(head) ? 0 : head.checks - 1;  // chance needs no earlier check
  before.insert(before.end(), static_cast<std::size_t>(earlier), head.shrunk);
  return check_after(proptest::find_law(law), kernel, before, head.shrunk);
}

}  // namespace

std::string output_of(const std::string& comparison) {
  return comparison.substr(comparison.find_last_of(' ') + 1);
}

std::set<std::string> refused_outputs(const attest_kernel& kernel, const Finding& finding,
                                      bool is_smallest) {
  std::set<std::string> outputs = refused_outputs({finding.verdict, finding.message, {}});
  if (is_smallest) outputs.merge(refused_outputs(on_smallest_case(finding.law, kernel, finding)));
  return outputs;
}

std::set<std::string> refused_outputs(const proptest::LawResult& result) {
  std::set<std::string> outputs;
  for (const proptest::Comparison& comparison : result.comparisons) {
    const bool refused = comparison.verdict == Verdict::violated;
    const std::string output = output_of(comparison.output);
    if (refused && is_output(output)) outputs.insert(output);
  }
  // "O[batch=0, ...] is", "dQ: rms of error".
  const std::string& text = result.message;
  for (std::size_t at = text.find_first_of("[:"); at != std::string::npos;
       at = text.find_first_of("[:", at + 1)) {
    const std::string word = output_of(text.substr(0, at));
    if (is_output(word)) outputs.insert(word);
  }
  return outputs;
}

bool same_cause(const attest_kernel& kernel, const Finding& head, const Finding& other) {
  const auto alike = [&](const proptest::LawResult& result) {
    return result.verdict == other.verdict &&
           worker::kind_in(result.message) == worker::kind_in(other.message);
  };
  // A failure by chance may need a few tries.
  constexpr int kTries = 16;
  const int most = by_chance(head) ? kTries : 1;
  proptest::LawResult result = on_smallest_case(other.law, kernel, head);
  for (int tries = 1; tries < most && !alike(result); ++tries) {
    result = on_smallest_case(other.law, kernel, head);
  }
  if (!alike(result)) return false;
  const std::set<std::string> mine = refused_outputs(on_smallest_case(head.law, kernel, head)),
                              its = refused_outputs(result);
  if (mine.empty() || its.empty()) return mine.empty() && its.empty();
  return std::any_of(mine.begin(), mine.end(),
                     [&](const std::string& output) { return its.count(output) > 0; });
}

bool same_mistake(const Finding& head, const Finding& other) {
  const auto shared = [](const auto& mine, const auto& its) {
    return std::any_of(mine.begin(), mine.end(), [&](const auto& one) {
      return std::any_of(its.begin(), its.end(),
                         [&](const auto& two) { return one.name == two.name; });
    });
  };
  return shared(head.evidence.signatures, other.evidence.signatures) ||
         shared(head.evidence.suspicions, other.evidence.suspicions);
}

}  // namespace attest::certify
