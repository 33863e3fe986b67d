// Laws of paged K and V, which need no reference (docs/theory/laws.md).
#include <algorithm>
#include <string>

#include "core/features/pages.hpp"
#include "core/rng.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

constexpr std::uint64_t kStream = 0x706167u;

// The case's problem in pages: its own, or of a size that the seed draws.
Problem paged(const Case& c) {
  Problem p = c.problem;
  if (is_paged(p)) return p;
  Rng rng(c.seed, kStream);
  p.paged_kv.page_size = rng.between(1, 9);
  p.paged_kv.order = static_cast<std::uint64_t>(rng.between(1, 1000));
  return p;
}

// Pages of K and V in another order: every bit stays.
LawResult check_order(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_deterministic(kernel);
    const Problem first = paged(c);
    require_pairs(kernel, first, Direction::forward);
    Problem other = first;
    other.paged_kv.order += 3;  // rows of the block table keep their length
    const InputValues in = make_values(first, c.values, c.seed);
    return same_bits(complete(kernel, first, in, Direction::forward, c),
                     complete(kernel, other, in, Direction::forward, c), Direction::forward,
                     "pages in another order (" + other.to_string() + ") change a bit");
  });
}

// Slots past the keys and pages without one hold NaN; large numbers in their place change no bit.
LawResult check_unused(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_deterministic(kernel);
    const Problem p = paged(c);
    require_pairs(kernel, p, Direction::forward);
    const InputValues in = make_values(p, c.values, c.seed);
    InputValues other = in;
    constexpr double kLarge = 1000;
    other.unused = kLarge;
    return same_bits(complete(kernel, p, in, Direction::forward, c),
                     complete(kernel, p, other, Direction::forward, c), Direction::forward,
                     "slots and pages that hold no key reach an output");
  });
}

// Pages of another size, and no pages at all where that is claimed: within the bounds of both.
LawResult check_page_size(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const Problem first = paged(c);
    require_pairs(kernel, first, Direction::forward);
    const Solved solved(kernel, first, make_values(first, c.values, c.seed), Direction::forward, c);
    const std::int64_t size = first.paged_kv.page_size;
    std::vector<Comparison> found;
    std::string what;
    for (const std::int64_t other_size :
         {std::int64_t{0}, size + 1, std::max<std::int64_t>(size / 2, 1)}) {
      Problem other = first;
      other.paged_kv.page_size = other_size;
      if (other_size == 0) other.paged_kv = {};
      if (!unclaimed(kernel.description, other, Direction::forward).empty()) continue;
      const std::vector<Comparison> own = solved.truth.agreement(
          complete(kernel, other, solved.values, Direction::forward, c), solved.run);
      found.insert(found.end(), own.begin(), own.end());
      if (!what.empty() || judged(own).verdict != Verdict::violated) continue;
      what = other_size == 0 ? "without pages: "
                             : "in pages of " + std::to_string(other_size) + " keys: ";
    }
    LawResult result = judged_with_truth(found, solved);
    if (result.verdict == Verdict::violated) result.message = what + result.message;
    return result;
  });
}

}  // namespace

std::vector<Law> page_laws() {
  const auto of_pages = [](Law law) {
    law.features = ATTEST_PAGED_KV;
    law.directions = ATTEST_FORWARD;
    return law;
  };
  return {
      of_pages({"page_order", "pages of K and V in another order change no bit", check_order}),
      of_pages({"unused_slots", "slots and pages that hold no key change no bit", check_unused}),
      of_pages({"page_size", "pages of another size change an output within its bounds",
                check_page_size})};
}

}  // namespace attest::proptest
