#pragma once

#include <memory>
#include <string>

#include "proptest/judge/truth/truth.hpp"
#include "proptest/laws/law.hpp"

/// Helpers with which the laws are written.
namespace attest::proptest {

/// The law, said to replace the mask of a case.
Law replacing_mask(Law law);

/// Ends a check early with its result: refused, crashed, misbehaved or without content. Internal
/// to the laws; `guarded` turns it into the result.
struct Stopped {
  LawResult result;
};

/// Why a case says nothing about an f16 kernel.
inline constexpr const char* kOutsideDomain = "scores or results near the end of the number range";

[[noreturn]] void stop(Verdict verdict, const std::string& message);

/// Runs the body and catches Stopped.
LawResult guarded(const std::function<LawResult()>& body);

/// Stops when the kernel says that equal calls may differ.
void require_deterministic(const attest_kernel& kernel);

/// Stops when the kernel does not claim the feature.
void require_feature(const attest_kernel& kernel, std::uint32_t feature, const std::string& words);

/// Stops when the kernel does not claim the problem. Before a check for content: a law that needs
/// what is not claimed is not a law without content.
void require_claimed(const attest_kernel& kernel, const Problem& problem, Direction direction);

/// The truth of a case, all of it or of a sample; stops where no bound covers the kernel's
/// contract, and outside the domain.
std::shared_ptr<const Truth> truth_of(const attest_kernel& kernel, const Problem& problem,
                                      const InputValues& values, Direction direction, const Case& c,
                                      std::optional<reference::Sample> sample = std::nullopt);

/// Begins the message of a kernel that does not compute what it claims: see refused and failed.
inline constexpr const char* kRefused = "refused although claimed: ";
inline constexpr const char* kItSays = "; it says: ";

/// Stops where the call misbehaved, refused or failed; with the text that it handed back.
/// [proptest/values/case_test "a call that does not succeed"]
void require_success(attest_status status, const std::string& misconduct, const std::string& words,
                     const Problem& problem);

/// Runs the kernel; stops when it does not claim the problem, refuses, fails or misbehaves.
KernelRun complete(const attest_kernel& kernel, const Problem& problem, const InputValues& values,
                   Direction direction, const Case& of,
                   LseRequest request = LseRequest::where_claimed);

/// A completed run with its truth; stops as `complete` does, and outside f16's domain.
struct Solved {
  InputValues values;
  std::shared_ptr<const Truth> shared;
  const Truth& truth;
  KernelRun run;

  Solved(const attest_kernel& kernel, const Problem& problem, InputValues in, Direction direction,
         const Case& c);
};

/// `passed` or the gravest comparison.
LawResult judged(const std::vector<Comparison>& comparisons);

/// The law's comparisons of results with each other; when they pass, the outputs of `solved` must
/// lie within the bounds of the reference too, for results that are wrong alike (all zeros) satisfy
/// such a law. The message then begins with kWrongAlike.
LawResult judged_with_truth(const std::vector<Comparison>& comparisons, const Solved& solved);

/// Stops where a result lies outside its bounds: nothing is made from results that are wrong. The
/// message then begins with `part`, which says whose they are.
/// [proptest/suites/wrong_outputs_test]
void require_right(const Solved& solved, const std::string& part);

/// Begins the message where a law's own comparisons passed and the reference refused.
inline constexpr const char* kWrongAlike = "the law holds, but the results are wrong: ";

/// `judged`, where a violation's message begins with `what`.
LawResult judged_bits(const std::vector<Comparison>& found, const std::string& what);

/// Compares every output of two runs bit for bit.
LawResult same_bits(const KernelRun& a, const KernelRun& b, Direction direction,
                    const std::string& what);

/// Calls the kernel with another few queries and keys and without a mask, if it claims that: what
/// it keeps for the problem's shape is then not of its last call. The result is not looked at.
void call_with_another_shape(const attest_kernel& kernel, const Problem& problem,
                             Direction direction, const Case& of);

/// Backward when the kernel claims it for the problem, else forward.
Direction furthest(const attest_kernel& kernel, const Problem& problem);

/// Outputs of a run by name: O, LSE when claimed, and the gradients in backward.
struct NamedOutput {
  const Tensor* got;
  const reference::ErrorBound* bound;
};

/// Without mask, extras or packed sequences: what laws with MaskUse::replaced need.
Problem plain_problem(const Problem& problem);

/// The same, moved to the nearest that the kernel's limits allow: under a causal mask where it
/// serves no other.  [certify/campaign/limited_test "causal alone"]
Problem plain_problem(const attest_kernel& kernel, const Problem& problem);

/// Stops where the kernel serves causal masks alone. Before a check for content.
void require_unmasked(const attest_kernel& kernel);

/// The same with the band and the pairs of its mask.
Problem unpacked_problem(const Problem& problem);

/// Stops where the kernel does not claim the problem, and then where no query sees a key.
void require_pairs(const attest_kernel& kernel, const Problem& problem, Direction direction);

/// The problem; without a mask that hides keys, under a causal one.
Problem with_hidden_keys(const attest_kernel& kernel, Problem problem);

/// Stops where no problem of the kernel hides a key from a row: one query that the causal mask
/// aligns with the last key sees them all.
void require_hidden_keys(const attest_kernel& kernel);

/// A tensor with the same axes whose element is value(b, s, h, c).
Tensor mapped(
    const Tensor& like,
    const std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& value);

/// A zero bound, for results that must agree but have one bound between them.
reference::ErrorBound no_error(const Tensor& like);

}  // namespace attest::proptest
