// FlashAttention's Figure 2, right: wall clock of block-sparse attention against density.
#include <fmt/format.h>

#include <algorithm>

#include "certify/bench/timing/statistics.hpp"
#include "certify/bench/timing/timing.hpp"
#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/fit.hpp"
#include "certify/reproduce/timing.hpp"
#include "core/error.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "core/registry.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kHeadDim = 64, kBlock = 64;
constexpr const char *kSparse = "sparse/block_flash2", *kDense = "cpu/flash2";

// Dense attention first, then the patterns by ascending density.
std::vector<Candidate> candidates_of(const Registry& kernels, std::int64_t seqlen) {
  std::vector<Candidate> all{{&kernels.find(kDense), square_problem(seqlen, kHeadDim)}};
  for (const int percent : {5, 10, 20, 40, 70, 100}) {
    const Problem problem = Problem::parse(
        fmt::format("sq={},d={},mask=block_{}_{}_1", seqlen, kHeadDim, kBlock, percent));
    // Short sequences may have drawn no block.
    if (problem.mask.sparsity()->density() > 0) all.push_back({&kernels.find(kSparse), problem});
  }
  return all;
}

// Milliseconds of both passes, a round at a time: one candidate's.
std::vector<std::vector<double>> both_passes(const std::vector<Candidate>& candidates, int rounds) {
  constexpr double kMilli = 1e3;
  std::vector<std::vector<double>> sums(candidates.size(),
                                        std::vector<double>(static_cast<std::size_t>(rounds)));
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const Measurement measured = measure(candidates, direction, 1, rounds, 1);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      for (std::size_t round = 0; round < sums[k].size(); ++round) {
        sums[k][round] += kMilli * measured.timings[k].seconds[round];
      }
    }
  }
  return sums;
}

Timing timing_of(const std::vector<double>& milliseconds) {
  const auto [least, most] = std::minmax_element(milliseconds.begin(), milliseconds.end());
  return {quartiles(milliseconds).median, *least, *most};
}

Claim falls(const std::vector<Timing>& sparse, const Curve& curve, double dense) {
  const auto steps = static_cast<int>(sparse.size()) - 1;
  int faster = 0;
  for (std::size_t k = 1; k < sparse.size(); ++k) {
    faster += clearly_faster(sparse[k - 1], sparse[k]) ? 1 : 0;
  }
  return {
      "time of block-sparse attention, forward and backward, falls with the density",
      "Dao et al. 2022, Figure 2 (right)",
      fmt::format("{} on one thread: clearly faster at {} of {} steps; {:.2f} ms at density "
                  "{:.3g}, {:.2f} ms at {:.3g}, {:.2f} ms for {} without a mask",
                  kSparse, faster, steps, curve.points.front().second, curve.points.front().first,
                  curve.points.back().second, curve.points.back().first, dense, kDense),
      faster == steps ? Outcome::reproduced
      : faster > 0    ? Outcome::corrected
                      : Outcome::not_reproduced};
}

Claim in_proportion(const Curve& curve, const std::vector<Quartiles>& speedups) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t k = 0; k < speedups.size(); ++k) {
    points.emplace_back(1 / curve.points[k].first, speedups[k].median);
  }
  const Exponent grows = fit_exponent(points);
  const Quartiles& most = speedups.front();
  return {"block sparsity makes attention faster in proportion to 1 / density",
          "Dao et al. 2022, section 3.3",
          fmt::format("{:.2f} [{:.2f}, {:.2f}] times as fast as {} at 1 / density {:.2f}; grows as "
                      "1 / density to the {}",
                      most.median, most.low, most.high, kDense, points.front().first,
                      grows.to_string()),
          !grows.is(1)        ? Outcome::not_reproduced
          : grows.contains(1) ? Outcome::reproduced
                              : Outcome::corrected};
}

Findings timed(const Laboratory& lab, std::int64_t seqlen) {
  const std::vector<Candidate> candidates = candidates_of(lab.kernels, seqlen);
  for (const Candidate& candidate : candidates) verify({candidate.kernel}, candidate.problem, 1);
  constexpr int kSmokeRounds = 3, kRounds = 7;
  const auto milliseconds =
      both_passes(candidates, lab.effort == Effort::smoke ? kSmokeRounds : kRounds);
  const double dense = timing_of(milliseconds.front()).median;
  Curve curve{kSparse, Curve::Kind::measured, {}},
      level{std::string(kDense) + ", dense", Curve::Kind::measured, {}};
  std::vector<Timing> sparse;
  std::vector<Quartiles> speedups;
  for (std::size_t k = 1; k < candidates.size(); ++k) {
    const double density = candidates[k].problem.mask.sparsity()->density();
    sparse.push_back(timing_of(milliseconds[k]));
    speedups.push_back(paired_ratios(milliseconds.front(), milliseconds[k]));
    curve.points.emplace_back(density, sparse.back().median);
    level.points.emplace_back(density, dense);
  }
  Findings findings;
  findings.claims = {falls(sparse, curve, dense), in_proportion(curve, speedups)};
  findings.plots = {{"density_time",
                     fmt::format("N = {}, d = {}, blocks of {}, forward and backward, one thread",
                                 seqlen, kHeadDim, kBlock),
                     "density",
                     "milliseconds",
                     {std::move(curve), std::move(level)}}};
  return findings;
}

Findings run(const Laboratory& lab) {
  try {
    return timed(lab, lab.seqlen_or(512, 2048));
  } catch (const InvalidProblem& wrong) {  // a kernel that is absent, or not right
    return {{{"time of block-sparse attention against density", "Dao et al. 2022, Figure 2 (right)",
              wrong.what(), Outcome::not_compared}},
            {},
            {}};
  }
}

}  // namespace

Experiment density_time_experiment() {
  return {"density_time",
          "wall clock of block-sparse attention against density",
          {{"seqlen", 512, 8192}},
          run,
          14};
}

}  // namespace attest::certify
