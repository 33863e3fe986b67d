#include "sparse/schedules/sparse_family.hpp"

#include "core/testing/catch.hpp"
#include "io/best_schedule.hpp"
#include "sparse/schedules/testing/pattern_cases.hpp"

namespace attest::sparse {
namespace {

using testing::sparse_schedules;

TEST_CASE("problems without a pattern of pairs are refused", "[sparse][schedules]") {
  for (const char* mask : {"none", "causal_br", "window_3_0"}) {
    const Problem problem = Problem::parse(std::string("sq=8,sk=8,d=2,mask=") + mask);
    const AbiProblem form(problem, 1);
    for (const auto& family : sparse_schedules().families()) {
      CHECK_THROWS_AS(family->make({family->name(), {}}, *form.get(), io::FastMemory{}),
                      io::NotForProblem);
    }
    CHECK_THROWS_WITH(
        sparse_schedules().make("block_flash2:bq=2,bk=2", *form.get(), io::FastMemory{}),
        "mask: no pattern of pairs, but block_flash2 reads the lists of one; give a sparsity "
        "pattern, as in mask=block_64_10_7, or choose flash2");
  }
}

TEST_CASE("tiles left open fit whatever the pattern", "[sparse][schedules]") {
  Rng rng(8);
  for (const auto& family : sparse_schedules().families()) {
    for (int round = 0; round < 20; ++round) {
      Problem problem = testing::random_problem_for(rng, *family);
      const auto capacity = io::FastMemory::of_words(rng.between(100, 400));
      INFO(family->name() << " in " << capacity.words << " on " << problem.to_string());
      const AbiProblem form(problem, 1);
      const auto schedule = family->make({family->name(), {}}, *form.get(), capacity);
      CHECK(schedule->dry_count(capacity).traffic() == schedule->closed_form());
    }
  }
}

TEST_CASE("families that do not take the problem are no candidates", "[sparse][schedules]") {
  const auto candidates = [](const char* text) {
    const Problem problem = Problem::parse(text);
    const AbiProblem form(problem, 1);
    return best_schedule(sparse_schedules(), io::Direction::forward, *form.get(),
                         io::FastMemory::of_words(500))
        .candidates.size();
  };
  CHECK(candidates("sq=8,sk=8,d=2,mask=block_2_50_1") > 0);
  CHECK_THROWS_AS(candidates("sq=8,sk=8,d=2"), io::CapacityExceeded);
}

}  // namespace
}  // namespace attest::sparse
