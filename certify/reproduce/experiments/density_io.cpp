// Block-sparse attention: words and time against the density of the blocks.
#include <fmt/format.h>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/fit.hpp"
#include "certify/reproduce/timing.hpp"
#include "core/rng.hpp"
#include "core/sparsity/sparsity_pattern.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kHeadDim = 64, kBlock = 64, kFastWords = 6 * kHeadDim * kHeadDim;

// Tiles are the blocks of the pattern.
std::string tiled(const std::string& schedule) {
  return fmt::format("{}:bq={},bk={}", schedule, kBlock, kBlock);
}

Problem block_sparse(std::int64_t seqlen, int percent) {
  return Problem::parse(
      fmt::format("sq={},d={},mask=block_{}_{}_1", seqlen, kHeadDim, kBlock, percent));
}

std::int64_t words_of(const Laboratory& lab, const std::string& schedule, const Problem& problem) {
  const auto counted = count_words(lab.schedules, tiled(schedule), problem, kFastWords);
  return counted ? counted->words : 0;
}

// What a schedule moves beyond what it moves without a visible pair, against density.
Claim proportional(const Laboratory& lab, const std::string& schedule,
                   const std::vector<Problem>& problems, Curve& curve) {
  const std::int64_t seqlen = problems.front().seqlen_q;
  const auto nothing = static_cast<double>(words_of(lab, schedule, block_sparse(seqlen, 0)));
  std::vector<std::pair<double, double>> beyond;
  for (const Problem& problem : problems) {
    const double density = problem.mask.sparsity()->density();
    const auto words = static_cast<double>(words_of(lab, schedule, problem));
    curve.points.emplace_back(density, words);
    if (words > nothing) beyond.emplace_back(density, words - nothing);
  }
  constexpr std::size_t kLeastPoints = 3;
  if (beyond.size() < kLeastPoints) {
    return {schedule + " moves words in proportion to the density",
            "Dao et al. 2022, Proposition 4", "no words beyond those of the empty pattern",
            Outcome::not_reproduced};
  }
  const Exponent fitted = fit_exponent(beyond);
  return {fmt::format("{}: words beyond Theta(N d) are proportional to the density of blocks",
                      schedule),
          "Dao et al. 2022, Proposition 4",
          fmt::format("exponent {} over {} densities; {:.0f} words without any block",
                      fitted.to_string(), beyond.size(), nothing),
          fitted.is(1) ? Outcome::reproduced : Outcome::not_reproduced};
}

Claim dense_is_density_one(const Laboratory& lab, std::int64_t seqlen) {
  int equal = 0, compared = 0;
  std::string words;
  for (const char* schedule : {"flash1", "flash2"}) {
    const std::int64_t full = words_of(lab, schedule, block_sparse(seqlen, 100)),
                       dense = words_of(lab, schedule, square_problem(seqlen, kHeadDim));
    ++compared;
    equal += full == dense && dense > 0 ? 1 : 0;
    words += fmt::format("{}{} {} and {}", words.empty() ? "" : ", ", schedule, full, dense);
  }
  return {"dense attention is block-sparse attention of density 1", "Dao et al. 2022, section 3.3",
          "words of all blocks and without a mask: " + words,
          equal == compared ? Outcome::reproduced : Outcome::not_reproduced};
}

// FlashAttention's Figure 2, right: time falls with density.
Claim time_falls(const Laboratory& lab, const std::vector<Problem>& problems, Curve& curve) {
  constexpr int kSmokeRuns = 3, kRuns = 5;
  std::vector<Timing> timings;
  for (const Problem& problem : problems) {
    Rng rng(1);
    const ForwardCall::Value normal = [&](auto...) { return rng.normal(); };
    const ForwardCall call(problem, 1, normal, normal, normal);
    const auto schedule =
        lab.schedules.make(tiled("flash2"), call.problem(), io::FastMemory::of_words(kFastWords));
    timings.push_back(time_runs(*schedule, call, lab.effort == Effort::smoke ? kSmokeRuns : kRuns));
    curve.points.emplace_back(problem.mask.sparsity()->density(), timings.back().median);
  }
  int faster = 0;
  for (std::size_t k = 1; k < timings.size(); ++k) {
    faster += clearly_faster(timings[k - 1], timings[k]) ? 1 : 0;
  }
  const auto steps = static_cast<int>(timings.size()) - 1;
  return {"time of block-sparse attention falls with the density",
          "Dao et al. 2022, Figure 2 (right)",
          fmt::format("native flash2 order on one thread: clearly faster at {} of {} steps; {:.2f} "
                      "ms at density {:.3g}, {:.2f} ms at {:.3g}",
                      faster, steps, timings.front().median, curve.points.front().first,
                      timings.back().median, curve.points.back().first),
          faster == steps ? Outcome::reproduced
          : faster > 0    ? Outcome::corrected
                          : Outcome::not_reproduced};
}

Findings run(const Laboratory& lab) {
  const std::int64_t seqlen = lab.seqlen_or(1024, 4096);
  std::vector<Problem> problems;
  for (const int percent : {5, 10, 20, 40, 70, 100}) {
    problems.push_back(block_sparse(seqlen, percent));
  }
  const std::string title = fmt::format("N = {}, d = {}, blocks of {}", seqlen, kHeadDim, kBlock);
  Plot words{
      "density_io", title + fmt::format(", M = {}", kFastWords), "density", "words moved", {}};
  Findings findings;
  for (const char* schedule : {"flash1", "flash2"}) {
    Curve curve{schedule, Curve::Kind::measured, {}};
    findings.claims.push_back(proportional(lab, schedule, problems, curve));
    words.curves.push_back(std::move(curve));
  }
  Curve bound{"greatest lower bound", Curve::Kind::bound, {}};
  for (const Problem& problem : problems) {
    bound.points.emplace_back(
        problem.mask.sparsity()->density(),
        static_cast<double>(lower_bound(io::Direction::forward, problem, kFastWords)));
  }
  words.curves.push_back(std::move(bound));
  findings.claims.push_back(dense_is_density_one(lab, seqlen));
  Plot time{"density_time", title + ", one thread", "density", "milliseconds", {}};
  time.curves.push_back({"flash2", Curve::Kind::measured, {}});
  findings.claims.push_back(time_falls(lab, problems, time.curves.front()));
  findings.plots = {std::move(words), std::move(time)};
  return findings;
}

}  // namespace

Experiment density_io_experiment() {
  return {
      "density_io", "block-sparse attention against density", {{"seqlen", 512, 16384}}, run, 13};
}

}  // namespace attest::certify
