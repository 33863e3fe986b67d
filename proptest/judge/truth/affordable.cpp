#include "proptest/judge/truth/affordable.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "proptest/judge/truth/sample.hpp"

namespace attest::proptest {
namespace {

struct Factor {
  const char* axis;
  double count;
};

// One kind of array, by its largest factors.
struct Need {
  double arrays;  // of float64
  std::vector<Factor> factors;

  double bytes() const {
    double product = 8 * arrays;
    for (const Factor& factor : factors) product *= factor.count;
    return product;
  }
};

bool judges(Work work) { return work == Work::judgement || work == Work::sampled_judgement; }

std::vector<Need> needs_of(const attest_description& description, const Problem& p, Work work) {
  const auto factor = [](const char* axis, std::int64_t count) {
    return Factor{axis, static_cast<double>(count)};
  };
  const Factor batch = factor("b", p.batch), rows = factor("sq", p.seqlen_q),
               keys = factor("sk", p.seqlen_k), width = factor("d", p.head_dim_qk + p.head_dim_v);
  // Size of the access record of an output's element (gpu/simt/memory/global_races.hpp), in
  // float64.
  constexpr double kAccesses = 33;
  const double elements = judges(work) ? 16 : work == Work::calls_with_races ? 6 + kAccesses : 6;
  std::vector<Need> needs{{elements, {rows, factor("hq", p.num_heads_q), batch, width}},
                          {elements, {keys, factor("hkv", p.num_heads_kv), batch, width}}};
  if (!judges(work)) return needs;
  // The bounds of the gradients hold whole (rows, keys) matrices of one K/V head.
  const bool loss = (description.directions & ATTEST_LOSS_GRADIENT) != 0;
  const double matrices = loss ? 40 : 24;
  const Factor group = factor("hq", p.group_size());
  if (p.bias.kind != Bias::Kind::none) {
    constexpr double kOfBias = 10;  // of each pair of every head
    needs.push_back({kOfBias, {rows, keys, factor("hq", p.num_heads_q), batch}});
  }
  if (work == Work::sampled_judgement && !loss && judged_by_sample(p)) {
    // Magnitudes and deviations of what the gradients of the sampled keys sum up.
    constexpr double kOfSample = 8;
    needs.push_back({kOfSample, {rows, factor("sk", std::min(p.seqlen_k, kMostPositions)), group}});
  } else {
    needs.push_back({matrices, {rows, keys, group}});
  }
  return needs;
}

}  // namespace

void require_affordable(const attest_description& description, const Problem& problem, Work work) {
  const std::vector<Need> needs = needs_of(description, problem, work);
  double bytes = 0;
  for (const Need& need : needs) bytes += need.bytes();
  const double have =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= have) return;
  const Need& most =
      *std::max_element(needs.begin(), needs.end(),
                        [](const Need& a, const Need& b) { return a.bytes() < b.bytes(); });
  const Factor& longest =
      *std::max_element(most.factors.begin(), most.factors.end(),
                        [](const Factor& a, const Factor& b) { return a.count < b.count; });
  throw InvalidProblem(fmt::format(
      "problem: {} it needs about {:.3g} GiB, this machine has {:.3g} GiB; make {} smaller",
      judges(work) ? "judging" : "running", bytes / 0x1p30, have / 0x1p30, longest.axis));
}

}  // namespace attest::proptest
