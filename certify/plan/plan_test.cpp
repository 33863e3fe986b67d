#include "certify/plan/plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "certify/campaign/campaign.hpp"
#include "certify/testing/problem_kinds.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "cpu/register.hpp"
#include "fixtures/defects/defect.hpp"
#include "fixtures/defects/loss_defect.hpp"
#include "gpu/register.hpp"
#include "proptest/values/fixed_problems.hpp"
#include "sparse/register.hpp"

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

// Kinds that a direction of the kernel claims and no case of the plan is of.
std::set<std::string> missing_kinds(const attest_description& description,
                                    const std::vector<PlannedCase>& plan, Direction direction) {
  std::set<std::string> missing = claimed_kinds(description, direction);
  for (const PlannedCase& planned : plan) {
    const Problem& problem = planned.c.problem;
    if (!proptest::unclaimed(description, problem, direction).empty()) continue;
    for (const std::string& kind : kinds_of(problem, description.features)) missing.erase(kind);
  }
  return missing;
}

constexpr std::array kDirections{Direction::forward, Direction::backward};

void check_every_kind(const attest_description& description, std::uint64_t seed) {
  CampaignOptions options;
  options.seed = seed;
  const std::vector<PlannedCase> plan = planned_cases(description, options);
  for (const auto direction : kDirections) {
    for (const std::string& kind : missing_kinds(description, plan, direction)) {
      INFO(description.name << " features " << description.features << " dtypes "
                            << description.dtypes << " seed " << seed << ": " << kind);
      CHECK(false);
    }
  }
}

TEST_CASE("the plan of every kernel holds a case of every kind that it claims", "[plan][nightly]") {
  Registry registry;
  register_cpu(registry);
  register_gpu(registry);
  register_sparse(registry);
  registry.add(&fixtures::defective_kernel(fixtures::Defect::none));
  for (const attest_kernel* kernel : registry.kernels()) check_every_kind(kernel->description, 1);
}

TEST_CASE("the plan of any claims holds a case of every kind that they have", "[plan]") {
  const int sets = attest::testing::is_nightly() ? 60 : 3;
  Rng rng(1, 0x6b696e64u);
  for (int set = 0; set < sets; ++set) {
    attest_description description = correct();
    description.features &= static_cast<std::uint32_t>(rng.between(0, 0xffffff));
    description.dtypes = static_cast<std::uint32_t>(rng.between(1, 15));
    description.head_dim_multiple = std::array{0, 1, 8, 64}[static_cast<std::size_t>(set % 4)];
    description.directions = ATTEST_FORWARD | (set % 3 == 0 ? 0 : ATTEST_BACKWARD);
    check_every_kind(description, static_cast<std::uint64_t>(set));
  }
}

TEST_CASE("fixed problems are within the limits of a description", "[plan]") {
  attest_description description = correct();
  attest_limits limits{};
  limits.struct_size = sizeof(limits);
  limits.seqlen_k = {64, 0, 64};
  limits.only = ATTEST_ONLY_ONE_SCALE;
  limits.softmax_scale = 0.5;
  description.limits = &limits;
  std::set<std::string> kinds;
  for (const proptest::Case& c : proptest::fixed_cases(description, 1)) {
    kinds.merge(kinds_of(c.problem, description.features));
    CHECK(c.problem.scale() == 0.5);
    if (!c.problem.mask.packed()) CHECK(c.problem.seqlen_k % 64 == 0);
  }
  CHECK(kinds.count("one query, grouped heads, several batch entries, tiles of keys") == 1);
}

// A kernel that writes down the kinds of the problems that it is called with.
class Recording {
 public:
  explicit Recording(const attest_kernel& right) : right_(right), kernel_(right) {
    kernel_.self = this;
    kernel_.forward = [](const void* self, const attest_forward_args* args) {
      const auto& own = *static_cast<const Recording*>(self);
      own.note(*args->problem, own.forward_);
      return own.right_.forward(own.right_.self, args);
    };
    kernel_.backward = [](const void* self, const attest_backward_args* args) {
      const auto& own = *static_cast<const Recording*>(self);
      own.note(*args->problem, own.backward_);
      return own.right_.backward(own.right_.self, args);
    };
    // Few head dimensions and one dtype, for time; the models' shapes are larger.
    kernel_.description.max_head_dim = 16;
    kernel_.description.dtypes = 1u << ATTEST_F32;
  }
  const attest_kernel& kernel() const { return kernel_; }
  std::set<std::string> missing(Direction direction) const {
    std::set<std::string> kinds = claimed_kinds(kernel_.description, direction);
    for (const auto& kind : direction == kDirections[0] ? forward_ : backward_) kinds.erase(kind);
    return kinds;
  }

 private:
  void note(const attest_problem& problem, std::set<std::string>& kinds) const {
    const std::lock_guard lock(mutex_);
    kinds.merge(kinds_of(problem));
  }

  const attest_kernel& right_;
  attest_kernel kernel_;
  mutable std::mutex mutex_;
  mutable std::set<std::string> forward_, backward_;
};

TEST_CASE("a campaign calls the kernel with problems of every kind", "[plan][nightly]") {
  Registry registry;
  register_cpu(registry);
  const Recording recording(registry.find("cpu/flash2"));  // a fast one that claims everything
  const CampaignResult result =
      run_campaign(recording.kernel(), CampaignOptions(), [](std::uint64_t, std::uint64_t) {});
  CHECK(result.findings.empty());
  for (const auto direction : kDirections) {
    for (const std::string& kind : recording.missing(direction)) {
      INFO(kind);
      CHECK(false);
    }
  }
}

// Seen to fail: without the fixed problems kinds are missing, more of them than by bad luck.
TEST_CASE("a plan without the fixed problems lacks kinds", "[plan]") {
  std::set<std::string> missing;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CampaignOptions options;
    options.seed = seed;
    std::set<std::string> fixed;
    for (const proptest::Case& c : proptest::fixed_cases(correct(), seed)) {
      fixed.insert(c.problem.to_string());
    }
    std::vector<PlannedCase> plan = planned_cases(correct(), options);
    const auto is_fixed = [&](const PlannedCase& planned) {
      return fixed.count(planned.c.problem.to_string()) > 0;
    };
    plan.erase(std::remove_if(plan.begin(), plan.end(), is_fixed), plan.end());
    missing.merge(missing_kinds(correct(), plan, Direction::backward));
  }
  for (const char* kind :
       {"one query, grouped heads, several batch entries, tiles of keys",
        "one query, packed, grouped heads", "one query, a narrow window, key lengths",
        "first and last chunk hidden"}) {
    INFO(kind);
    CHECK(missing.count(kind) == 1);
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

TEST_CASE("model shapes come in a dtype that is claimed", "[plan]") {
  CampaignOptions options;
  options.cases = 0;
  for (const std::uint32_t dtypes : {1U << ATTEST_F32, 1U << ATTEST_F16 | 1U << ATTEST_F64}) {
    attest_description description = correct();
    description.dtypes = dtypes;
    for (const PlannedCase& planned : planned_cases(description, options)) {
      INFO(planned.c.problem.to_string());
      CHECK((dtypes & 1U << abi(planned.c.problem.dtype)) != 0);
    }
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

TEST_CASE("shapes are spelled", "[plan]") {
  for (const Shapes shapes : {Shapes::model, Shapes::none}) {
    CHECK(parse_shapes(to_string(shapes)) == shapes);
  }
  for (const char* text : {"", "models", "None"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_shapes(text), Catch::Contains("must be model or none"));
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
