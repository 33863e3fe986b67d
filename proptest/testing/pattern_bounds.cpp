#include "proptest/testing/pattern_bounds.hpp"

#include <utility>

#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/dense/products.hpp"
#include "io/bounds/patterns/backward_pattern.hpp"
#include "io/bounds/patterns/backward_small_pattern.hpp"
#include "io/bounds/patterns/components.hpp"
#include "io/bounds/patterns/pattern.hpp"
#include "io/bounds/weights/weighted_backward.hpp"
#include "io/bounds/weights/weighted_pattern.hpp"

namespace attest::proptest::testing {

BoundsAt bounds_at(Direction direction, const io::PatternDegrees& degrees) {
  if (direction == Direction::forward) {
    return [&degrees](const io::KernelClass& kernel, std::int64_t fast_words) {
      return io::pattern_bounds(degrees, kernel, fast_words);
    };
  }
  return [&degrees, parts = io::backward_parts(degrees), pattern = io::five_product_parts(degrees)](
             const io::KernelClass& kernel, std::int64_t fast_words) {
    std::vector bounds{io::theorem_c_pattern(parts, kernel, fast_words),
                       io::backward_small_pattern(pattern, kernel, fast_words),
                       io::backward_components(degrees, kernel, fast_words)};
    if (degrees.dense_parts) bounds.push_back(io::theorem_c_weighted(degrees, kernel, fast_words));
    return bounds;
  };
}

std::vector<io::Bound> bounds_by_size(Direction direction, const io::Extent& extent,
                                      const io::KernelClass& kernel, std::int64_t fast_words) {
  return direction == Direction::forward ? io::forward_bounds(extent, kernel, fast_words)
                                         : io::backward_bounds(extent, kernel, fast_words);
}

std::vector<io::Bound> all_bounds(Direction direction, const io::Extent& extent,
                                  const BoundsAt& by_pattern, const io::KernelClass& kernel,
                                  std::int64_t fast_words) {
  std::vector<io::Bound> bounds = bounds_by_size(direction, extent, kernel, fast_words);
  for (io::Bound& bound : by_pattern(kernel, fast_words)) bounds.push_back(std::move(bound));
  if (direction == Direction::forward) {
    bounds.push_back(io::forward_other_rows(extent, kernel, fast_words, bounds));
  } else {
    bounds.push_back(io::backward_single_pass(extent, kernel, fast_words, bounds));
    bounds.push_back(io::backward_other_rows(extent, kernel, fast_words, bounds));
    bounds.push_back(io::backward_saved_outputs(extent, kernel, fast_words, bounds));
  }
  return bounds;
}

}  // namespace attest::proptest::testing
