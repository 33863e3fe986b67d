#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/emulated/families.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/words.hpp"
#include "io/bounds/bound.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/dense/loss.hpp"

namespace attest::gpu {
namespace {

constexpr std::int64_t kRows = 128, kHeadDim = 128;
constexpr const char* kProblem = "sq=128,d=128";

// The largest that applies to blocks that could run one after another in the fast memory of one.
std::int64_t greatest_words(const std::vector<io::Bound>& bounds) {
  const std::optional<io::Bound> greatest = io::greatest(bounds);
  REQUIRE(greatest);
  return greatest->words;
}

std::int64_t forward_bound(std::int64_t fast_words) {
  return greatest_words(io::forward_bounds(io::dense_extent(kRows, kRows, kHeadDim, kHeadDim),
                                           io::KernelClass{}, fast_words));
}

std::int64_t backward_bound(std::int64_t fast_words) {
  return greatest_words(io::backward_bounds(io::dense_extent(kRows, kRows, kHeadDim, kHeadDim),
                                            io::KernelClass{}, fast_words));
}

std::int64_t loss_bound(std::int64_t fast_words) {
  return greatest_words(io::loss_bounds({kRows, kHeadDim}, io::KernelClass{}, fast_words));
}

template <class Call, class Args>
std::int64_t moved(const EmulatedDirection<Call>& direction, const Args& args) {
  Call call(args);
  const simt::LaunchReport report = direction.run(call, {});
  const DType dtype = dtype_of(args.problem->dtype);
  const MovedWords words = total(moved_by_tensor(call.memory, report.traffic, dtype));
  return words.reads + words.writes;
}

template <class Call>
std::int64_t fast_words(const EmulatedDirection<Call>& direction) {
  return direction.plan(shape_of(*testing::Call(kProblem).form.get())).fast_memory().words();
}

// Returns the kernels of every size of tiles.
std::set<const EmulatedKernel*> all_kernels() {
  std::set<const EmulatedKernel*> all(emulated_kernels().begin(), emulated_kernels().end());
  for (const Family& family : families()) {
    for (const Variant& variant : family.variants) all.insert(variant.kernel);
  }
  return all;
}

TEST_CASE("no kernel moves fewer words than the bounds allow in its shared memory and registers",
          "[gpu][bounds]") {
  for (const EmulatedKernel* kernel : all_kernels()) {
    INFO(kernel->description().name);
    const EmulatedDirections& all = kernel->directions();
    testing::Call call(testing::spelled_for(kernel->abi(), kProblem));
    if (all.forward.exists()) {
      CHECK(moved(all.forward, call.forward_arguments(kernel->abi())) >=
            forward_bound(fast_words(all.forward)));
    }
    if (all.backward.exists()) {
      CHECK(moved(all.backward, call.backward_arguments(kernel->abi())) >=
            backward_bound(fast_words(all.backward)));
    }
    if (all.loss_gradient.exists()) {
      testing::LossCall loss(testing::loss_problem(kRows, kHeadDim));
      attest_loss_args args = loss.arguments(kernel->abi());
      args.dY = nullptr;
      CHECK(moved(all.loss_gradient, args) >= loss_bound(fast_words(all.loss_gradient)));
    }
  }
}

// The deliberately wrong subjects: large tiles that are said to fit in 64 words.
TEST_CASE("the bounds refuse words that need more fast memory", "[gpu][bounds]") {
  const EmulatedKernel& kernel = *families().front().variants.front().kernel;
  testing::Call call(kProblem);
  CHECK(moved(kernel.directions().forward, call.forward_arguments(kernel.abi())) <
        forward_bound(64));
  CHECK(moved(kernel.directions().backward, call.backward_arguments(kernel.abi())) <
        backward_bound(64));
}

TEST_CASE("every kernel declares its registers for every head dimension that it takes",
          "[gpu][bounds][fast_memory]") {
  for (const EmulatedKernel* kernel : all_kernels()) {
    const EmulatedDirections& all = kernel->directions();
    for (const char* text : {"sq=3,d=8", "sq=3,d=64", "sq=3,d=128", "sq=3,d=256", "sq=3,d=576"}) {
      INFO(kernel->description().name << " " << text);
      const AttentionShape shape = shape_of(*testing::Call(text).form.get());
      const auto declared = [&](const auto& direction) {
        if (!direction.exists() || !direction.fits(shape, {})) return;
        const LaunchPlan plan = direction.plan(shape);
        for (const PlannedLaunch& launch : plan.launches()) {
          CHECK(launch.fast_memory().thread.registers > 0);
        }
      };
      declared(all.forward);
      declared(all.backward);
      declared(all.loss_gradient);
    }
  }
}

}  // namespace
}  // namespace attest::gpu
