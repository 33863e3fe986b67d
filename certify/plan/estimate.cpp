#include "certify/plan/estimate.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "certify/plan/plan.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/rng.hpp"

namespace attest::certify {
namespace {

struct Check {
  const proptest::Law* law = nullptr;
  const proptest::Case* of = nullptr;
  double work = 0;
};

// Multiplications of a dense pass, and as many for what a check costs without any: setting up,
// drawing values, messages to a worker.
double work_of(const Problem& problem) {
  constexpr double kSetUp = 1 << 17;
  return kSetUp + static_cast<double>(problem.batch) * static_cast<double>(problem.num_heads_q) *
                      static_cast<double>(problem.seqlen_q) *
                      static_cast<double>(problem.seqlen_k) *
                      static_cast<double>(problem.head_dim_qk + problem.head_dim_v);
}

double seconds_of(const attest_kernel& kernel, const Check& check) {
  const auto begin = std::chrono::steady_clock::now();
  worker::check(*check.law, kernel, *check.of);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Group {
  std::size_t first = 0, end = 0;
  double work = 0;
};

// Groups of about as much work each, with checks of like work together.
std::vector<Group> groups_of(const std::vector<Check>& checks) {
  constexpr double kGroups = 48;
  double all = 0;
  for (const Check& check : checks) all += check.work;
  std::vector<Group> groups;
  for (std::size_t first = 0; first < checks.size(); first = groups.back().end) {
    Group group{first, first, 0};
    while (group.end < checks.size() && group.work < all / kGroups) {
      group.work += checks[group.end++].work;
    }
    groups.push_back(group);
  }
  return groups;
}

// Times one check of each group, chosen at random, and scales it to its group; what time does not
// allow for is as the others. The stride takes small and large ones by turns.
void extrapolate(const attest_kernel& kernel, const std::vector<Check>& checks, std::uint64_t seed,
                 const std::function<bool()>& interrupted, Estimate& estimate) {
  constexpr double kMostSeconds = 10;
  constexpr std::size_t kStride = 53;  // a prime above the number of groups
  const std::vector<Group> groups = groups_of(checks);
  double all = 0, sampled = 0;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const Group& group = groups[(k + 1) * kStride % groups.size()];
    all += group.work;
    if (estimate.sample_seconds >= kMostSeconds || interrupted()) continue;
    const Check& chosen = checks[group.first + mix(seed, k) % (group.end - group.first)];
    const double seconds = seconds_of(kernel, chosen);
    estimate.sample_seconds += seconds;
    estimate.seconds += seconds * group.work / chosen.work;
    sampled += group.work;
  }
  if (sampled > 0) estimate.seconds *= all / sampled;
}

}  // namespace

Estimate estimate_campaign(const attest_kernel& kernel, const CampaignOptions& options,
                           const std::function<bool()>& interrupted) {
  const std::vector<PlannedCase> plan = planned_cases(kernel.description, options);
  const std::vector<Batch> batches = batches_of(plan, 0, laws_of(kernel.description, options));
  std::vector<Check> checks;
  std::set<std::uint64_t> cases;
  for (std::size_t k = options.shard.index - 1; k < batches.size(); k += options.shard.count) {
    for (const std::uint64_t position : batches[k].positions) {
      const proptest::Case& c = plan[position].c;
      checks.push_back({batches[k].law, &c, work_of(c.problem)});
      cases.insert(position);
    }
  }
  std::stable_sort(checks.begin(), checks.end(),
                   [](const Check& a, const Check& b) { return a.work < b.work; });
  Estimate estimate;
  estimate.cases = cases.size();
  estimate.checks = checks.size();
  extrapolate(kernel, checks, options.seed, interrupted, estimate);
  estimate.seconds /= std::max(1u, options.jobs);
  return estimate;
}

}  // namespace attest::certify
