#include "certify/plan.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "fixtures/defects/loss_defect.hpp"

namespace attest::certify {
namespace {

const attest_description& correct() {
  return fixtures::defective_kernel(fixtures::Defect::none).description;
}

TEST_CASE("geometry and values have seeds of their own", "[plan]") {
  CampaignOptions first, second;
  second.data_seed = 99;
  const auto a = planned_cases(correct(), first), b = planned_cases(correct(), second);
  REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    CHECK(a[k].c.problem.to_string() == b[k].c.problem.to_string());
    CHECK(a[k].c.values == b[k].c.values);
    CHECK(a[k].c.seed != b[k].c.seed);
  }
  second.data_seed.reset();
  second.seed = 2;
  const auto c = planned_cases(correct(), second);
  const auto differ = [&](std::size_t k) {
    return a[k].c.problem.to_string() != c[k].c.problem.to_string();
  };
  bool any = false;
  for (std::size_t k = 0; k < std::min(a.size(), c.size()); ++k) any = any || differ(k);
  CHECK(any);
}

TEST_CASE("a plan meets every claimed pair", "[plan]") {
  CampaignOptions options;
  Pairs missing = claimed_pairs(correct());
  const auto erase = [&](const std::vector<PlannedCase>& plan) {
    for (const PlannedCase& planned : plan) {
      for (const auto direction : claimed_directions(correct(), planned.c.problem)) {
        for (const std::string& pair : pairs_of(planned.c.problem, direction)) missing.erase(pair);
      }
    }
  };
  erase(planned_cases(correct(), options));
  CHECK(missing.empty());
  options.cases = 5;  // so many and no more
  missing = claimed_pairs(correct());
  erase(planned_cases(correct(), options));
  CHECK_FALSE(missing.empty());
}

TEST_CASE("a plan without model shapes is the rest of the plan", "[plan]") {
  CampaignOptions options;
  const auto whole = planned_cases(correct(), options),
             small = small_planned_cases(correct(), options);
  const std::size_t large = whole.size() - small.size();
  CHECK(large > 0);
  CHECK(small.size() > generated_count(options));
  for (std::size_t k = 0; k < small.size(); ++k) {
    CHECK(small[k].c.problem.to_string() == whole[large + k].c.problem.to_string());
    CHECK(small[k].c.seed == whole[large + k].c.seed);
    CHECK(small[k].only.empty() == (k < generated_count(options)));
  }
}

// Several models have heads of the same size, which is all that a loss gradient has.
TEST_CASE("a model shape is planned once", "[plan]") {
  CampaignOptions options;
  options.cases = 0;
  const attest_description& loss =
      fixtures::defective_loss_kernel(fixtures::LossDefect::none).description;
  for (const attest_description* description : {&correct(), &loss}) {
    std::set<std::string> shapes;
    const auto plan = planned_cases(*description, options);
    CHECK(plan.size() > 5);
    for (const PlannedCase& planned : plan) shapes.insert(planned.c.problem.to_string());
    CHECK(shapes.size() == plan.size());
  }
}

TEST_CASE("batches hold every check once", "[plan]") {
  CampaignOptions options;
  options.cases = 40;
  const auto plan = planned_cases(correct(), options);
  std::vector<const proptest::Law*> laws;
  for (const proptest::Law& law : proptest::laws()) laws.push_back(&law);
  std::map<std::pair<const proptest::Law*, std::uint64_t>, int> seen;
  for (const Batch& batch : batches_of(plan, 0, laws)) {
    CHECK(std::is_sorted(batch.positions.begin(), batch.positions.end()));
    for (const std::uint64_t position : batch.positions) ++seen[{batch.law, position}];
  }
  std::size_t expected = 0;
  for (const PlannedCase& planned : plan) {
    expected += planned.only.empty() ? laws.size() : planned.only.size();
  }
  CHECK(seen.size() == expected);
  CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& one) { return one.second == 1; }));
  for (const Batch& batch : batches_of(plan, plan.size() - 2, laws)) {
    CHECK(batch.positions.front() >= plan.size() - 2);
  }
}

TEST_CASE("shards are spelled", "[plan]") {
  CHECK(parse_shard("2/3").index == 2);
  CHECK(parse_shard("2/3").count == 3);
  CHECK(to_string(parse_shard("3/3")) == "3/3");
  CHECK(parse_shard("1/1").whole());
  for (const char* text : {"", "1", "1/", "/2", "0/2", "3/2", "1/2x", "-1/2", "1/0"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_shard(text), Catch::Contains("1 <= i <= n"));
  }
}

}  // namespace
}  // namespace attest::certify
