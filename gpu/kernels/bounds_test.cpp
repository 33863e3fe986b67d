#include <optional>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/families.hpp"
#include "gpu/watch.hpp"
#include "io/bounds/backward.hpp"
#include "io/bounds/bound.hpp"
#include "io/bounds/forward.hpp"
#include "io/bounds/loss.hpp"

namespace attest::gpu {
namespace {

constexpr std::int64_t kRows = 128, kHeadDim = 128;

// Blocks that could run one after another in the fast memory of one.
std::int64_t bound_words(const Family& family, std::int64_t fast_words) {
  io::KernelClass kernel;
  const io::Extent extent = io::dense_extent(kRows, kRows, kHeadDim, kHeadDim);
  std::vector<io::Bound> bounds;
  if (family.direction == ATTEST_FORWARD) {
    kernel.lse = io::LseOutput::written;
    bounds = io::forward_bounds(extent, kernel, fast_words);
  } else if (family.direction == ATTEST_BACKWARD) {
    bounds = io::backward_bounds(extent, kernel, fast_words);
  } else {
    bounds = io::loss_bounds({kRows, kHeadDim}, kernel, fast_words);
  }
  const std::optional<io::Bound> greatest = io::greatest(bounds);
  REQUIRE(greatest);
  return greatest->words;
}

TEST_CASE("no kernel moves fewer words than the bounds allow in its shared memory and registers",
          "[gpu][bounds]") {
  const Problem problem = Problem::parse("sq=128,d=128");
  for (const Family& family : families()) {
    for (const Variant& variant : family.variants) {
      const AbiProblem form(problem, 1);
      const EmulatedDirections& all = variant.kernel->directions();
      const AttentionShape shape = shape_of(*form.get());
      const LaunchPlan plan = family.direction == ATTEST_FORWARD    ? all.forward.plan(shape)
                              : family.direction == ATTEST_BACKWARD ? all.backward.plan(shape)
                                                                    : all.loss_gradient.plan(shape);
      const std::int64_t fast_words = plan.fast_memory().words();
      const CappedCount count = count_capped(family.name, 4 * fast_words, problem);
      INFO(count.schedule << " in " << fast_words << " words");
      const std::int64_t moved = count.read_words() + count.written_words();
      CHECK(moved >= bound_words(family, fast_words));
      // The deliberately wrong subject: large tiles that are said to fit in 64 words.
      const bool large = &variant == &family.variants.front();
      if (large && family.direction != ATTEST_LOSS_GRADIENT) {
        CHECK(moved < bound_words(family, 64));
      }
    }
  }
}

}  // namespace
}  // namespace attest::gpu
