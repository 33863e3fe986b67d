// I/O against N and against d, in fast memories on both sides of d^2.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/fit.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

enum class CacheSide : std::uint8_t { large, small };

// The papers' schedule and the best known, on each side of d^2.
struct Subject {
  Direction direction;
  std::vector<std::string> large, small;
  const char* large_source;
  const char* small_source;

  const std::vector<std::string>& schedules(CacheSide side) const {
    return side == CacheSide::large ? large : small;
  }
  // Returns the source of the first schedule; the others are ours.
  std::string source(CacheSide side, std::size_t index) const {
    if (index > 0) return "docs/theory/schedules.md";
    return side == CacheSide::large ? large_source : small_source;
  }
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all{{Direction::forward,
                                         {"flash1", "flash2_row"},
                                         {"square_tiled", "rank1_tiled"},
                                         "Dao et al. 2022, Theorem 2",
                                         "Saha and Ye 2024, Theorem 3.5"},
                                        {Direction::backward,
                                         {"flash1_bwd", "two_pass_row"},
                                         {"square_tiled_bwd", "rank1_tiled_bwd"},
                                         "Dao et al. 2022, Theorem 5",
                                         "our tiles, after those of Saha and Ye 2024"},
                                        {Direction::loss_gradient,
                                         {"loss_large"},
                                         {"loss_small"},
                                         "Li et al. 2024, Theorem 1.1",
                                         "Li et al. 2024, Theorem 1.1 and Algorithm 6"}};
  return all;
}

// Problems of growing size in one fast memory.
struct Sweep {
  const Subject& subject;
  CacheSide side;
  std::int64_t fast_words;
  std::string variable, fixed;
  int claimed;  // exponent
  std::vector<std::pair<std::int64_t, Problem>> problems;
};

// One plot, and a claim for each schedule.
void measure(const Laboratory& lab, const Sweep& sweep, Findings& findings) {
  const std::string direction(name(sweep.subject.direction));
  const std::string title = fmt::format("{}, {}, M = {}", direction, sweep.fixed, sweep.fast_words);
  Plot plot{fmt::format("io_against_{}_{}_{}", sweep.variable == "N" ? "n" : "d", direction,
                        sweep.fast_words),
            title,
            sweep.variable,
            "words moved",
            {}};
  const std::vector<std::string>& schedules = sweep.subject.schedules(sweep.side);
  for (std::size_t k = 0; k < schedules.size(); ++k) {
    Curve curve{schedules[k], Curve::Kind::measured, {}};
    for (const auto& [x, problem] : sweep.problems) {
      const auto counted = count_words(lab.schedules, schedules[k], problem, sweep.fast_words);
      if (!counted) continue;
      curve.points.emplace_back(static_cast<double>(x), static_cast<double>(counted->words));
    }
    const Exponent fitted = fit_exponent(curve.points);
    findings.claims.push_back(
        {fmt::format("{}, {}, M {} d^2: words grow as {} to the {}", direction, schedules[k],
                     sweep.side == CacheSide::large ? ">=" : "<", sweep.variable, sweep.claimed),
         sweep.subject.source(sweep.side, k),
         fmt::format("{}: exponent {}", title, fitted.to_string()),
         fitted.is(sweep.claimed) ? Outcome::reproduced : Outcome::not_reproduced});
    plot.curves.push_back(std::move(curve));
  }
  Curve bound{"greatest lower bound", Curve::Kind::bound, {}};
  for (const auto& [x, problem] : sweep.problems) {
    const std::int64_t words = lower_bound(sweep.subject.direction, problem, sweep.fast_words);
    if (words > 0) bound.points.emplace_back(static_cast<double>(x), static_cast<double>(words));
  }
  plot.curves.push_back(std::move(bound));
  findings.plots.push_back(std::move(plot));
}

CacheSide side_of(std::int64_t fast_words, std::int64_t d) {
  return fast_words < d * d ? CacheSide::small : CacheSide::large;
}

// The papers' range ends where a whole operand fits, M = N d; sizes near that are left out.
void add_size(Sweep& sweep, std::int64_t x, std::int64_t seqlen, std::int64_t d) {
  constexpr std::int64_t kOfOperand = 4;
  if (seqlen * d < kOfOperand * sweep.fast_words) return;
  sweep.problems.emplace_back(x, square_problem(seqlen, d));
}

void require_enough(const Sweep& sweep, std::int64_t seqlen) {
  constexpr std::size_t kLeastPoints = 3;
  if (sweep.problems.size() >= kLeastPoints) return;
  throw InvalidProblem(fmt::format(
      "M = {} with sequences up to {}: the papers speak of M <= N d, of which too little is left "
      "to fit an exponent in {}; give a longer --seqlen or fewer --fast-words",
      sweep.fast_words, seqlen, sweep.variable));
}

void against_n(const Laboratory& lab, const Subject& subject, std::int64_t fast_words,
               std::int64_t d, Findings& findings) {
  Sweep sweep{subject, side_of(fast_words, d), fast_words, "N", fmt::format("d = {}", d), 2, {}};
  constexpr std::int64_t kLeastRows = 1024;
  const std::int64_t most = lab.seqlen_or(16384, 65536);
  for (std::int64_t n = kLeastRows; n <= most; n *= 2) add_size(sweep, n, n, d);
  require_enough(sweep, most);
  measure(lab, sweep, findings);
}

// Head dimensions on one side of the square root of M: 2 where all of them are in the large cache.
void against_d(const Laboratory& lab, const Subject& subject, std::int64_t fast_words,
               CacheSide side, Findings& findings) {
  const bool large = side == CacheSide::large;
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(fast_words)));
  const std::int64_t seqlen = lab.seqlen_or(16384, 65536);
  Sweep sweep{subject, side, fast_words, "d", fmt::format("N = {}", seqlen), large ? 2 : 1, {}};
  constexpr std::int64_t kOctaves = 8, kSteps = 2;
  const std::int64_t least = large ? root / kOctaves : root, most = large ? root : kOctaves * root;
  for (int k = 0;; ++k) {
    const std::int64_t d = std::llround(static_cast<double>(std::max<std::int64_t>(least, 1)) *
                                        std::exp2(static_cast<double>(k) / kSteps));
    if (d > most) break;
    add_size(sweep, d, seqlen, d);
  }
  require_enough(sweep, seqlen);
  measure(lab, sweep, findings);
}

Findings run(const Laboratory& lab) {
  constexpr std::int64_t kLarge = 65536, kSmall = 256;
  const std::int64_t d = lab.head_dim_or(64);
  Findings findings;
  for (const Subject& subject : subjects()) {
    if (lab.fast_words) {
      against_n(lab, subject, *lab.fast_words, d, findings);
      against_d(lab, subject, *lab.fast_words, side_of(*lab.fast_words, d), findings);
      continue;
    }
    against_n(lab, subject, 4 * d * d, d, findings);
    against_n(lab, subject, std::max<std::int64_t>(d * d / 16, 1), d, findings);
    against_d(lab, subject, kLarge, CacheSide::large, findings);
    against_d(lab, subject, kSmall, CacheSide::small, findings);
  }
  return findings;
}

}  // namespace

Experiment size_io_experiment() {
  return {"size_io",
          "I/O against sequence length and head dimension",
          {{"seqlen", 4096, 1 << 24}, {"head-dim", 16, 4096}, {"fast-words", 16, 1 << 24}},
          run,
          4};
}

}  // namespace attest::certify
