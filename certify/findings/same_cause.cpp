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

// "sum of V o dV" is of dV.
std::string last_word(const std::string& text) { return text.substr(text.find_last_of(' ') + 1); }

// The results of `law` as the smallest case of `head` is reproduced.
proptest::LawResult on_smallest_case(const std::string& law, const attest_kernel& kernel,
                                     const Finding& head) {
  std::vector<proptest::Case> before = head.after;
  const bool race = head.message.starts_with("race: ");  // needs no earlier check
  const int earlier = race ? 0 : head.checks - 1;
  before.insert(before.end(), static_cast<std::size_t>(earlier), head.shrunk);
  return check_after(proptest::find_law(law), kernel, before, head.shrunk);
}

}  // namespace

std::set<std::string> refused_outputs(const proptest::LawResult& result) {
  std::set<std::string> outputs;
  for (const proptest::Comparison& comparison : result.comparisons) {
    const bool refused = comparison.verdict == Verdict::violated;
    const std::string output = last_word(comparison.output);
    if (refused && is_output(output)) outputs.insert(output);
  }
  // "O[batch=0, ...] is", "dQ: rms of error".
  const std::string& text = result.message;
  for (std::size_t at = text.find_first_of("[:"); at != std::string::npos;
       at = text.find_first_of("[:", at + 1)) {
    const std::string word = last_word(text.substr(0, at));
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
  const int most = head.message.rfind("race: ", 0) == 0 ? kTries : 1;
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
