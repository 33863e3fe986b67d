#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/kernels/emulated/families.hpp"
#include "gpu/testing/words.hpp"
#include "gpu/watch.hpp"

namespace attest::gpu {
namespace {

constexpr std::int64_t kAnyCap = std::int64_t{1} << 40;

AttentionShape shape_of_text(const char* text) {
  return shape_of(*AbiProblem(Problem::parse(text), 1).get());
}

LaunchPlan plan_of(const Family& family, const Variant& variant, const AttentionShape& shape) {
  const EmulatedDirections& all = variant.kernel->directions();
  if (family.direction == ATTEST_FORWARD) return all.forward.plan(shape);
  if (family.direction == ATTEST_BACKWARD) return all.backward.plan(shape);
  return all.loss_gradient.plan(shape);
}

std::int64_t fast_bytes(const Family& family, const Variant& variant, const AttentionShape& shape) {
  return 4 * plan_of(family, variant, shape).fast_memory().words();
}

// Without groups of heads, of which backward kernels save words.
std::vector<const char*> problems_of(const Family& family) {
  if (family.direction == ATTEST_LOSS_GRADIENT) return {"sq=70,d=33", "sq=33,d=8"};
  return {"b=2,hq=2,sq=70,sk=90,d=40,dv=72", "sq=65,sk=65,d=5,mask=window_tl_7_3",
          "hq=2,d=8,mask=cu_5x9_70x33+causal_br", "hq=2,sq=40,sk=100,d=7,mask=random_3_1"};
}

MovedWords words_of(const CappedCount& count) {
  return {count.read_words(), count.written_words()};
}

TEST_CASE("under a cap: the variant is the largest that fits, and its words are its schedule's",
          "[gpu][capped]") {
  for (const Family& family : families()) {
    for (const char* text : problems_of(family)) {
      const Problem problem = Problem::parse(text);
      const AttentionShape shape = shape_of_text(text);
      for (const Variant& variant : family.variants) {
        const std::int64_t bytes = fast_bytes(family, variant, shape);
        const CappedCount count = count_capped(family.name, bytes, problem);
        INFO(text << " within " << bytes << " bytes: " << count.schedule);
        CHECK(count.fast_bytes() <= bytes);
        CHECK(words_of(count) == testing::counted_words(count.schedule, problem));
        for (const Variant& other : family.variants) {
          if (fast_bytes(family, other, shape) > bytes) continue;
          CHECK(count.schedule == other.schedule(shape));  // the first that fits
          break;
        }
      }
    }
  }
}

TEST_CASE("under a cap: smaller tiles take less fast memory and move more words", "[gpu][capped]") {
  for (const Family& family : families()) {
    INFO(family.name);
    const char* const text = "sq=256,d=128";
    const Problem problem = Problem::parse(text);
    const AttentionShape shape = shape_of_text(text);
    std::set<std::string> schedules;
    std::int64_t bytes = kAnyCap, words = 0;
    for (const Variant& variant : family.variants) {
      const std::int64_t of_variant = fast_bytes(family, variant, shape);
      CHECK(of_variant < bytes);
      bytes = of_variant;
      const MovedWords moved = testing::counted_words(variant.schedule(shape), problem);
      CHECK(moved.reads + moved.writes > words);
      words = moved.reads + moved.writes;
      schedules.insert(variant.schedule(shape));
    }
    CHECK(schedules.size() == family.variants.size());
  }
}

// The deliberately wrong subject.
TEST_CASE("under a cap: words are not those of another variant", "[gpu][capped]") {
  for (const Family& family : families()) {
    const char* const text = "sq=70,d=33";
    const Problem problem = Problem::parse(text);
    const AttentionShape shape = shape_of_text(text);
    const Variant& largest = family.variants.front();
    const MovedWords moved = words_of(count_capped(family.name, kAnyCap, problem));
    CHECK(moved == testing::counted_words(largest.schedule(shape), problem));
    for (std::size_t k = 1; k < family.variants.size(); ++k) {
      INFO(family.variants[k].schedule(shape));
      CHECK_FALSE(moved == testing::counted_words(family.variants[k].schedule(shape), problem));
    }
  }
}

TEST_CASE("under a cap: the least that works is named, and works", "[gpu][capped]") {
  for (const Family& family : families()) {
    const char* const text = "sq=9,d=64";
    const Problem problem = Problem::parse(text);
    const AttentionShape shape = shape_of_text(text);
    const Variant& smallest = family.variants.back();
    const std::int64_t least = fast_bytes(family, smallest, shape);
    CHECK_THROWS_WITH(count_capped(family.name, least - 1, problem),
                      "cap_bytes: " + std::to_string(least - 1) + ", but " +
                          smallest.schedule(shape) + " needs " + std::to_string(least) +
                          ", the least of " + family.name + "; give more");
    CHECK(count_capped(family.name, least, problem).schedule == smallest.schedule(shape));
    CHECK(count_capped(family.name, least, problem).fast_bytes() == least);
  }
}

TEST_CASE("under a cap: what no variant takes is refused", "[gpu][capped]") {
  const auto count = [](const char* family, const char* problem) {
    return count_capped(family, kAnyCap, Problem::parse(problem));
  };
  CHECK_THROWS_WITH(count("flash3", "sq=4,d=8"), Catch::Contains("the families are flash2, "));
  CHECK_THROWS_WITH(count("flash2", "sq=4,d=8,dv=600"), Catch::Contains("no variant takes"));
  CHECK_THROWS_WITH(count("square_tiled_bwd", "sq=4,d=8,softcap=3"),
                    Catch::Contains("no variant takes"));
  CHECK_THROWS_WITH(count("loss_small", "hq=2,sq=4,d=8"), Catch::Contains("no variant takes"));
  CHECK_THROWS_WITH(count("flash2", "sq=4,d=8,dtype=bf16"), Catch::Contains("f32"));
}

TEST_CASE("under a cap: launch by launch, blocks are those of the grid", "[gpu][capped]") {
  const Problem problem = Problem::parse("b=2,hq=3,sq=40,sk=50,d=8");
  const CappedCount forward = count_capped("square_tiled", kAnyCap, problem);
  REQUIRE(forward.launches.size() == 2);
  CHECK(forward.launches[0].kernel == "square_tiled_scores<SquareTile<128>>");
  CHECK(forward.launches[0].written_words == 6 * (40 * 50 + 40));  // S and LSE
  CHECK(forward.launches[1].written_words == 6 * 40 * 8);
  CHECK(forward.blocks() == 2 * 6);
  CHECK(count_capped("flash2", kAnyCap, problem).blocks() == 6);
  CHECK(count_capped("two_pass", kAnyCap, Problem::parse("sq=0,sk=70,d=8")).blocks() == 2);
}

}  // namespace
}  // namespace attest::gpu
