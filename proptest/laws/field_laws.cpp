// Two problems of one shape that differ in one field, called in turn.
#include <algorithm>

#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/field_changes.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

Direction shared_direction(const attest_kernel& kernel, const Problem& p,
                           const FieldChange& change) {
  if (change.asks_first == LseRequest::never) return Direction::forward;
  return std::min(furthest(kernel, p), furthest(kernel, change.problem));
}

// Tells whether the outputs of the call before would pass for those of this one.
bool same_within_bounds(const attest_kernel& kernel, const Truth& truth, const KernelRun& before) {
  const reference::ForwardBounds& bounds = truth.forward_bounds();
  if (!passes(before.O.view(), truth.forward().O, bounds.O)) return false;
  return (kernel.description.features & ATTEST_LSE) == 0 ||
         passes(before.LSE.view(), truth.forward().LSE, bounds.LSE);
}

// Judges a call that LSE was not asked of where the change is in that.
LawResult judged_alone(const attest_kernel& kernel, const Problem& p, const InputValues& in,
                       Direction direction, const Case& c, const FieldChange& change,
                       const KernelRun& run) {
  if (change.asks_first != LseRequest::never) {
    return judged(truth_of(kernel, p, in, direction, c)->judge(run));
  }
  attest_description asked = kernel.description;
  asked.features &= ~std::uint32_t{ATTEST_LSE};
  return judged(Truth(asked, p, in, direction, c.seed).judge(run));
}

LawResult prefixed(LawResult result, const std::string& words) {
  if (result.verdict != Verdict::passed) result.message = words + ": " + result.message;
  return result;
}

LawResult check_changed_field(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const Problem& p = c.problem;
    require_pairs(kernel, p, Direction::forward);
    const auto change = field_change(kernel.description, c);
    if (!change) stop(Verdict::unsupported, "not claimed: another problem of this shape");
    const Direction direction = shared_direction(kernel, p, *change);
    const InputValues in = make_values(p, c.values, c.seed);
    const auto call = [&] { return complete(kernel, p, in, direction, c, change->asks_first); };
    // State that earlier calls of this shape left behind is none of this law's doing.
    call_with_another_shape(kernel, p, direction, c);
    const KernelRun before = call();
    const Solved changed(kernel, change->problem, in, direction, c);
    const KernelRun after = call();
    LawResult result = prefixed(judged(changed.truth.judge(changed.run)),
                                "called as " + change->problem.to_string() +
                                    " after a call of this shape with another " + change->field);
    if (result.verdict != Verdict::passed) return result;
    const std::string again =
        "called again after a call of this shape with another " + change->field;
    const bool equal_bits = kernel.description.numerics.nondeterministic == 0;
    LawResult back =
        equal_bits ? same_bits(before, after, direction, again)
                   : prefixed(judged_alone(kernel, p, in, direction, c, *change, after), again);
    if (back.verdict != Verdict::passed) return back;
    if (change->in_values && same_within_bounds(kernel, changed.truth, before)) {
      return LawResult{Verdict::vacuous, "the results differ by less than their bounds",
                       result.comparisons};
    }
    return result;
  });
}

}  // namespace

std::vector<Law> field_laws() {
  return {{"changed_field",
           "calls of one shape with another scale, mask, length, stride or the like in between are "
           "right and equal to the bit",
           check_changed_field}};
}

}  // namespace attest::proptest
