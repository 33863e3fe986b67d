#include "certify/plan/plan.hpp"

#include <algorithm>
#include <charconv>

#include "certify/plan/long_problems.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "fixtures/models.hpp"
#include "proptest/judge/claims.hpp"
#include "proptest/judge/loss.hpp"
#include "proptest/values/fixed_problems.hpp"

namespace attest::certify {
namespace {

using proptest::Case;

// Returns the model's shape, in a dtype that the kernel claims.
Problem claimed_shape(Problem shape, std::uint32_t claimed) {
  const auto claims = [&](DType dtype) { return (claimed & 1U << abi(dtype)) != 0; };
  if (claims(shape.dtype)) return shape;
  for (const DType dtype : proptest::kDTypesOfCampaigns) {
    if (!claims(dtype)) continue;
    shape.dtype = dtype;
    break;
  }
  return shape;
}

// Shapes of published models, as attention problems and as loss gradients of their size, each once.
std::vector<Case> model_cases(const attest_description& description,
                              const CampaignOptions& options) {
  constexpr std::int32_t kThreads = 2;
  std::vector<Case> cases;
  if (options.shapes == Shapes::none) return cases;
  if (options.mask) return cases;  // they have masks of their own
  std::set<std::string> known;
  const auto add = [&](const Problem& problem) {
    if (!known.insert(problem.to_string()).second) return;
    cases.push_back(
        {problem, proptest::Values::normal, mix(options.values_seed(), cases.size()), kThreads});
  };
  if ((description.directions & (ATTEST_FORWARD | ATTEST_BACKWARD)) != 0) {
    for (const fixtures::Model& model : fixtures::models()) {
      add(claimed_shape(model.laptop, description.dtypes));
    }
  }
  if ((description.directions & ATTEST_LOSS_GRADIENT) != 0) {
    const bool single = (description.dtypes & (1u << ATTEST_F32)) != 0;
    for (const fixtures::Model& model : fixtures::models()) {
      add(proptest::loss_problem_like(model.laptop, single ? DType::f32 : model.laptop.dtype));
    }
  }
  return cases;
}

// Like the covering cases, they meet the reference alone.
void append_fixed(const attest_description& description, const CampaignOptions& options,
                  std::vector<PlannedCase>& plan) {
  for (Case& c : proptest::fixed_cases(description, options.seed)) {
    c.seed = mix(mix(options.values_seed(), c.seed), plan.size());
    plan.push_back({c, reference_laws()});
  }
}

void append_covering(const attest_description& description, const CampaignOptions& options,
                     std::vector<PlannedCase>& plan) {
  constexpr std::uint64_t kStream = 0x636f766572u;
  Pairs missing = claimed_pairs(description);
  for (const PlannedCase& planned : plan) {
    for (const auto direction : claimed_directions(description, planned.c.problem)) {
      for (const std::string& pair : pairs_of(planned.c.problem, direction)) missing.erase(pair);
    }
  }
  for (Case& c : cases_meeting(description, missing, mix(options.seed, kStream))) {
    c.seed = mix(mix(options.values_seed(), kStream), plan.size());
    plan.push_back({c, reference_laws()});
  }
}

void append_own(const CampaignOptions& options, std::vector<PlannedCase>& plan) {
  constexpr std::uint64_t kStream = 0x6f776eu;
  constexpr std::int32_t kThreads = 2;
  std::uint64_t number = 0;
  for (const std::string& problem : options.problems) {
    const std::uint64_t seed = mix(mix(options.values_seed(), kStream), number++);
    plan.push_back({{Problem::parse(problem), proptest::Values::normal, seed, kThreads},
                    reference_laws(),
                    true});
  }
}

}  // namespace

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char *begin = text.data(), *end = begin + text.size();
  const auto first = std::from_chars(begin, end, shard.index);
  bool good = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  if (good) {
    const auto second = std::from_chars(first.ptr + 1, end, shard.count);
    good = second.ec == std::errc() && second.ptr == end && shard.index >= 1 &&
           shard.index <= shard.count;
  }
  if (!good) {
    throw InvalidProblem("shard is '" + text + "'; it must be i/n with 1 <= i <= n, such as 2/3");
  }
  return shard;
}

Shapes parse_shapes(const std::string& text) {
  if (text == "model") return Shapes::model;
  if (text == "none") return Shapes::none;
  throw InvalidProblem("shapes is '" + text + "'; it must be model or none");
}

std::string to_string(Shapes shapes) { return shapes == Shapes::model ? "model" : "none"; }

std::string to_string(const Shard& shard) {
  return std::to_string(shard.index) + "/" + std::to_string(shard.count);
}

const std::set<std::string>& reference_laws() {
  static const std::set<std::string> names{"reference_forward", "reference_backward",
                                           "reference_loss"};
  return names;
}

std::vector<const proptest::Law*> laws_of(const attest_description& description,
                                          const CampaignOptions& options) {
  std::vector<const proptest::Law*> laws;
  for (const proptest::Law& law : proptest::laws()) {
    const bool about = proptest::concerns(law, description) &&
                       (!options.mask || law.mask == proptest::MaskUse::kept);
    const bool chosen = options.law ? *options.law == law.name : about;
    if (chosen) laws.push_back(&law);
  }
  return laws;
}

std::uint64_t generated_count(const CampaignOptions& options) {
  return options.cases.value_or(proptest::tier_cases(options.tier));
}

Case generated_case(const attest_description& description, const CampaignOptions& options,
                    std::uint64_t index) {
  Case c = proptest::generate(description, options.tier, options.seed, index);
  c.seed = mix(options.values_seed(), index);
  if (options.mask) c.problem = with_mask(c.problem, *options.mask);
  return c;
}

std::vector<PlannedCase> planned_cases(const attest_description& description,
                                       const CampaignOptions& options) {
  std::vector<PlannedCase> plan;
  // Model shapes are large: they meet the reference, the generated cases every law.
  for (const Case& c : model_cases(description, options)) {
    plan.push_back({c, reference_laws()});
  }
  for (std::uint64_t index = 0; index < generated_count(options); ++index) {
    plan.push_back({generated_case(description, options, index), {}});
  }
  if (!options.cases && !options.law && !options.mask) {
    append_fixed(description, options, plan);
    append_covering(description, options, plan);
  }
  if (!options.cases && !options.mask) {
    for (const Case& c : long_cases(description, options.tier, options.values_seed())) {
      plan.push_back({c, reference_laws()});
    }
  }
  append_own(options, plan);
  return plan;
}

std::vector<PlannedCase> small_planned_cases(const attest_description& description,
                                             const CampaignOptions& options) {
  std::vector<PlannedCase> plan = planned_cases(description, options);
  const std::size_t large = model_cases(description, options).size();
  plan.erase(plan.begin(), plan.begin() + static_cast<std::ptrdiff_t>(large));
  return plan;
}

std::vector<Batch> batches_of(const std::vector<PlannedCase>& plan, std::uint64_t first,
                              const std::vector<const proptest::Law*>& laws) {
  std::vector<Batch> batches;
  for (std::uint64_t begin = first; begin < plan.size(); begin += kBatchLength) {
    const std::uint64_t end = std::min<std::uint64_t>(begin + kBatchLength, plan.size());
    for (const proptest::Law* law : laws) {
      Batch batch{law, {}};
      for (std::uint64_t position = begin; position < end; ++position) {
        const auto& only = plan[position].only;
        if (only.empty() || only.count(std::string(law->name)) > 0) {
          batch.positions.push_back(position);
        }
      }
      if (!batch.positions.empty()) batches.push_back(std::move(batch));
    }
  }
  return batches;
}

}  // namespace attest::certify
