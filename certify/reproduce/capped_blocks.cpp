#include "certify/reproduce/capped_blocks.hpp"

#include <fmt/format.h>

#include <vector>

#include "certify/reproduce/counted.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kWordBytes = 4;

// The kernels of one direction: FlashAttention's order, and square tiles.
struct Rivals {
  io::Direction direction;
  const char* flash;
  const char* square;
};

constexpr Rivals kRivals[] = {{io::Direction::forward, "flash2", "square_tiled"},
                              {io::Direction::backward, "two_pass", "square_tiled_bwd"},
                              {io::Direction::loss_gradient, "loss_large", "loss_small"}};

std::int64_t words_of(const CappedCount& count) {
  return count.read_words() + count.written_words();
}

// Caps at which square tiles move fewer words, those at which only they have a kernel among them,
// and all at which there is one.
struct Tally {
  int square_fewer = 0, square_alone = 0, compared = 0;

  std::string to_string() const {
    const std::string alone =
        square_alone > 0 ? fmt::format(" (at {} the other fits none)", square_alone) : "";
    return fmt::format("{} of {} caps{}", square_fewer, compared, alone);
  }
};

struct Measured {
  Tally below, above;  // of d^2
  int at_bound = 0, counted = 0;
  std::string nearest = "no cap fits both";  // what moves how much where the two cases meet
  bool both = false;                         // ever fit one cap
};

// One cap: a row and a point for each kernel that fits.
class Sweep {
 public:
  Sweep(const Problem& problem, const CountUnderCap& count, Table& table)
      : problem_(problem), count_(count), table_(table) {}

  Plot plot_of(const Rivals& rivals, Measured& found) const {
    const std::int64_t d = problem_.head_dim_qk;
    const std::string direction(io::name(rivals.direction));
    Plot plot{"capped_blocks_" + direction,
              fmt::format("CUDA kernels, {}, N = {}, d = {}: words under a cap", direction,
                          problem_.seqlen_q, d),
              "words of fast memory of a block",
              "words moved",
              {{rivals.flash, Curve::Kind::measured, {}},
               {rivals.square, Curve::Kind::measured, {}},
               {"greatest lower bound", Curve::Kind::bound, {}}}};
    plot.mark_x = static_cast<double>(d * d);
    plot.mark = "M = d^2";
    constexpr int kLow = -3, kHigh = 3, kSteps = 2;
    for (const std::int64_t cap : fast_memory_grid(d, kLow, kHigh, kSteps)) {
      add_cap(rivals, cap, plot, found);
    }
    return plot;
  }

 private:
  void add_cap(const Rivals& rivals, std::int64_t cap, Plot& plot, Measured& found) const {
    const auto x = static_cast<double>(cap);
    const std::int64_t bound = lower_bound(rivals.direction, problem_, cap);
    const auto add = [&](const char* family, Curve& curve) -> std::optional<std::int64_t> {
      const auto count = count_(family, cap * kWordBytes, problem_);
      if (!count) return std::nullopt;
      const std::int64_t words = words_of(*count);
      curve.points.emplace_back(x, static_cast<double>(words));
      table_.rows.push_back({std::string(io::name(rivals.direction)), std::to_string(cap),
                             count->schedule, std::to_string(count->fast_bytes() / kWordBytes),
                             std::to_string(count->blocks()), std::to_string(words),
                             fmt::format("{:.1f}", static_cast<double>(words) /
                                                       static_cast<double>(count->blocks()))});
      ++found.counted;
      found.at_bound += words >= bound ? 1 : 0;
      return words;
    };
    const auto flash = add(rivals.flash, plot.curves[0]);
    const auto square = add(rivals.square, plot.curves[1]);
    if (bound > 0) plot.curves[2].points.emplace_back(x, static_cast<double>(bound));
    if (!flash && !square) return;
    Tally& tally = cap < problem_.head_dim_qk * problem_.head_dim_qk ? found.below : found.above;
    ++tally.compared;
    tally.square_alone += flash ? 0 : 1;
    tally.square_fewer += square && (!flash || *square < *flash) ? 1 : 0;
    if (!flash || !square) return;
    if (&tally == &found.below || !found.both) {
      found.both = true;
      found.nearest =
          fmt::format("at {} words {} moves {:.2f} times the words of {}", cap, rivals.square,
                      static_cast<double>(*square) / static_cast<double>(*flash), rivals.flash);
    }
  }

  const Problem& problem_;
  const CountUnderCap& count_;
  Table& table_;
};

Claim claim_of(const Rivals& rivals, const Measured& found, std::int64_t head_dim) {
  if (found.below.compared == 0 || found.above.compared == 0) {
    throw InvalidProblem(
        fmt::format("--head-dim {}: no kernel, {}, fits a cap {} d^2; give a {} one", head_dim,
                    io::name(rivals.direction), found.below.compared == 0 ? "below" : "from",
                    found.below.compared == 0 ? "larger" : "smaller"));
  }
  const bool wins = found.below.compared > 0 && found.below.square_fewer == found.below.compared,
             loses = found.above.square_fewer == 0;
  return {fmt::format("{}: where a block's fast memory is capped below d^2 square tiles move fewer "
                      "words than FlashAttention's order, above it more",
                      io::name(rivals.direction)),
          "asked of Li et al. 2024 by its reviewers, in our words; its Algorithm 6 and Saha and Ye "
          "2024, Algorithm 1",
          fmt::format("{} moves fewer words than {} at {} below d^2 and at {} from d^2 on; {}. "
                      "Shared memory and registers of a block; square tiles are held to 128 "
                      "registers a lane, the others have what the compiler gives. Words counted in "
                      "the emulation, not run on a device",
                      rivals.square, rivals.flash, found.below.to_string(), found.above.to_string(),
                      found.nearest),
          wins && loses                  ? Outcome::reproduced
          : found.below.square_fewer > 0 ? Outcome::corrected
                                         : Outcome::not_reproduced};
}

}  // namespace

CountUnderCap emulated_counts() {
  return [](const std::string& family, std::int64_t cap_bytes,
            const Problem& problem) -> std::optional<CappedCount> {
    try {
      return count_capped(family, cap_bytes, problem);
    } catch (const InvalidProblem&) {
      return std::nullopt;  // no variant is that small
    }
  };
}

Findings capped_blocks(std::int64_t seqlen, std::int64_t head_dim, const CountUnderCap& count) {
  const Problem problem = square_problem(seqlen, head_dim);
  Findings findings;
  Table table{"capped_blocks_words",
              fmt::format("CUDA kernels under a cap, N = {}, d = {}", seqlen, head_dim),
              {"direction", "cap", "variant", "fast memory", "blocks", "words", "words per block"},
              {}};
  const Sweep sweep(problem, count, table);
  int at_bound = 0, counted = 0;
  for (const Rivals& rivals : kRivals) {
    Measured found;
    findings.plots.push_back(sweep.plot_of(rivals, found));
    findings.claims.push_back(claim_of(rivals, found, head_dim));
    at_bound += found.at_bound;
    counted += found.counted;
  }
  findings.claims.push_back(
      {"no kernel moves fewer words than the bounds at its cap",
       "docs/theory/bounds; M is all that a block has, registers too (K1)",
       fmt::format("{} of {} counts are at or above the bound", at_bound, counted),
       counted > 0 && at_bound == counted ? Outcome::reproduced : Outcome::not_reproduced});
  findings.tables.push_back(std::move(table));
  return findings;
}

}  // namespace attest::certify
