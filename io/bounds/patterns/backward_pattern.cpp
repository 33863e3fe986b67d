#include "io/bounds/patterns/backward_pattern.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/bounds/patterns/backward_small_pattern.hpp"
#include "io/bounds/patterns/components.hpp"
#include "io/bounds/statement.hpp"
#include "io/bounds/weights/priced_parts.hpp"
#include "io/bounds/weights/weighted_backward.hpp"

namespace attest::io {

BackwardParts backward_parts(const PatternDegrees& degrees) {
  const std::int64_t d = std::min(degrees.extent.head_dim_qk, degrees.extent.head_dim_v);
  return parts_of_pattern<BackwardPart>(
      degrees,
      [d](const PatternComponent& component) {
        return BackwardPart{BackwardPrice(component, d), component.pairs(), component.copies};
      },
      [](BackwardPart& shared, const BackwardPart& part) { shared.price.include(part.price); });
}

namespace {

Statement statement_of_theorem_c_pattern(const KernelClass& kernel, std::int64_t fast_words) {
  Statement statement(
      "theorem_c_pattern", Tag::proved,
      "max_{X,Y} Y + X (h - 1) + 1, h = ceil((U(M+X) - Y)/(M+X)) >= 1, U(B) = sum of 12 Z/rho(B)",
      "patterns");
  statement.needs_class(kernel, fast_words).of_events();
  return statement;
}

}  // namespace

Bound theorem_c_pattern(const BackwardParts& pattern, const KernelClass& kernel,
                        std::int64_t fast_words) {
  return statement_of_theorem_c_pattern(kernel, fast_words).words([&] {
    PricedParts priced;
    for (const BackwardPart& part : pattern) {
      priced.push_back(
          {12 * static_cast<double>(part.pairs), part.copies,
           [&part](double usable_words) { return part.price.work_per_word(usable_words); }});
    }
    const Memories memories{fast_words, static_cast<double>(kernel.fast_memories())};
    return whole_or_parts(
        priced, [&](const PricedParts& parts) { return greatest_words_of_parts(parts, memories); });
  });
}

std::vector<Bound> backward_pattern_bounds(const PatternDegrees& degrees, const KernelClass& kernel,
                                           std::int64_t fast_words) {
  std::vector<Bound> bounds;
  try {
    bounds.push_back(theorem_c_pattern(backward_parts(degrees), kernel, fast_words));
  } catch (const CountOverflow& overflow) {
    bounds.push_back(statement_of_theorem_c_pattern(kernel, fast_words)
                         .needs("range", "24 pairs d^2 of a component below 2^63", overflow.what())
                         .words([] { return std::int64_t{0}; }));
  }
  bounds.push_back(backward_small_pattern(five_product_parts(degrees), kernel, fast_words));
  bounds.push_back(backward_components(degrees, kernel, fast_words));
  if (degrees.dense_parts) bounds.push_back(theorem_c_weighted(degrees, kernel, fast_words));
  return bounds;
}

}  // namespace attest::io
