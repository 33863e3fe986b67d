#include "certify/reproduce/claims/capped_blocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "certify/reproduce/counted.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kWordBytes = 4;
constexpr const char* kEmulated = ". Counted in the emulation, nothing ran on a device";

// The kernels of one direction: FlashAttention's order, and square tiles.
struct Rivals {
  Direction direction;
  std::vector<const char*> flash;  // whichever moves fewer words
  const char* square;

  std::string flash_name() const { return fmt::format("{}", fmt::join(flash, " or ")); }
};

// loss_large holds a square matrix of the head dimension, as the case for a large cache does;
// loss_rows is the same order without it.
const std::vector<Rivals>& all_rivals() {
  static const std::vector<Rivals> all{
      {Direction::forward, {"flash2"}, "square_tiled"},
      {Direction::backward, {"two_pass"}, "square_tiled_bwd"},
      {Direction::loss_gradient, {"loss_large", "loss_rows"}, "loss_small"}};
  return all;
}

std::int64_t words_of(const CappedCount& count) {
  return count.read_words() + count.written_words();
}

struct AtCap {
  std::int64_t cap_words = 0;
  std::optional<CappedCount> flash, square;

  bool compared() const { return flash && square; }
  double ratio() const {
    return static_cast<double>(words_of(*square)) / static_cast<double>(words_of(*flash));
  }
};

// Counts under falling caps: the variant of one cap is that of each smaller one that it fits.
class FallingCaps {
 public:
  FallingCaps(const CountUnderCap& count, const char* family, const Problem& problem)
      : count_(count), family_(family), problem_(problem) {}

  const std::optional<CappedCount>& at(std::int64_t cap_words) {
    const std::int64_t cap_bytes = cap_words * kWordBytes;
    if (!last_ || last_->fast_bytes() > cap_bytes) last_ = count_(family_, cap_bytes, problem_);
    return last_;
  }

 private:
  const CountUnderCap& count_;
  const char* family_;
  const Problem& problem_;
  std::optional<CappedCount> last_;
};

// Returns the caps; the last is what a block can have.
std::vector<std::int64_t> caps_for(std::int64_t head_dim) {
  constexpr int kLow = -3, kHigh = 8, kSteps = 4;
  const std::int64_t most = most_block_bytes() / kWordBytes;
  std::vector<std::int64_t> caps;
  for (const std::int64_t cap : fast_memory_grid(head_dim, kLow, kHigh, kSteps)) {
    if (cap < most) caps.push_back(cap);
  }
  caps.push_back(most);
  return caps;
}

std::vector<AtCap> sweep(const Rivals& rivals, const Problem& problem, const CountUnderCap& count) {
  std::vector<FallingCaps> orders;
  for (const char* family : rivals.flash) orders.emplace_back(count, family, problem);
  const auto fewest = [&](std::int64_t cap) {
    std::optional<CappedCount> best;
    for (FallingCaps& order : orders) {
      const std::optional<CappedCount>& found = order.at(cap);
      if (found && (!best || words_of(*found) < words_of(*best))) best = found;
    }
    return best;
  };
  FallingCaps square(count, rivals.square, problem);
  std::vector<std::int64_t> caps = caps_for(problem.head_dim_qk);
  std::reverse(caps.begin(), caps.end());
  std::vector<AtCap> all;
  all.reserve(caps.size());
  for (const std::int64_t cap : caps) all.push_back({cap, fewest(cap), square.at(cap)});
  std::reverse(all.begin(), all.end());
  return all;
}

Plot plot_of(const Rivals& rivals, const Problem& problem, const std::vector<AtCap>& all) {
  const std::int64_t d = problem.head_dim_qk;
  const std::string direction(name(rivals.direction));
  Plot plot{"capped_blocks_" + direction,
            fmt::format("CUDA kernels, {}, N = {}, d = {}: words under a cap, emulated", direction,
                        problem.seqlen_q, d),
            "cap on a block's shared memory and registers, words",
            "words moved",
            {{rivals.flash_name(), Curve::Kind::measured, {}},
             {rivals.square, Curve::Kind::measured, {}},
             {"greatest lower bound", Curve::Kind::bound, {}}}};
  plot.mark_x = static_cast<double>(d * d);
  plot.mark = "M = d^2";
  for (const AtCap& at : all) {
    const auto add = [&](std::size_t curve, std::int64_t words) {
      plot.curves[curve].points.emplace_back(static_cast<double>(at.cap_words),
                                             static_cast<double>(words));
    };
    if (at.flash) add(0, words_of(*at.flash));
    if (at.square) add(1, words_of(*at.square));
    const std::int64_t bound = lower_bound(rivals.direction, problem, at.cap_words);
    if (bound > 0) add(2, bound);
  }
  return plot;
}

void add_rows(const Rivals& rivals, std::int64_t head_dim, const AtCap& at, Table& table) {
  for (const auto& count : {at.flash, at.square}) {
    if (!count) continue;
    const CappedLaunch largest = count->largest();
    const std::int64_t words = words_of(*count);
    table.rows.push_back(
        {std::string(name(rivals.direction)), std::to_string(head_dim),
         std::to_string(at.cap_words), count->schedule,
         std::to_string(largest.fast_bytes() / kWordBytes),
         std::to_string(largest.shared_bytes / kWordBytes),
         std::to_string(largest.register_bytes / kWordBytes), std::to_string(count->local_bytes()),
         std::to_string(count->blocks()), std::to_string(words),
         fmt::format("{:.1f}", static_cast<double>(words) / static_cast<double>(count->blocks()))});
  }
}

// One side of d^2, and what is claimed of square tiles there.
enum class Side : std::uint8_t { below, from };

std::string spelled(const std::vector<std::int64_t>& caps) {
  std::string list;
  for (const std::int64_t cap : caps) list += (list.empty() ? "" : ", ") + std::to_string(cap);
  return list;
}

// Caps at which both fit decide; where only one does there is nothing to compare.
Claim claim_of(const Rivals& rivals, const Problem& problem, Side side,
               const std::vector<AtCap>& all) {
  const std::int64_t d = problem.head_dim_qk;
  const bool below = side == Side::below;
  const char* const word = below ? "fewer" : "more";
  Claim claim{fmt::format("{}: under caps {} square tiles move {} words than FlashAttention's "
                          "order",
                          name(rivals.direction), below ? "below d^2" : "from d^2 on", word),
              "asked of Li et al. 2024 by its reviewers, in our words; its Algorithm 6 and Saha "
              "and Ye 2024, Algorithm 1",
              fmt::format("N = {}, d = {}: ", problem.seqlen_q, d), Outcome::not_compared};
  std::vector<std::int64_t> as_claimed;
  std::size_t caps = 0, compared = 0;
  std::int64_t local_bytes = 0;
  std::optional<std::int64_t> flash_from, square_from;  // the least caps they fit
  double least = 0, most = 0;
  for (const AtCap& at : all) {
    if (at.flash && !flash_from) flash_from = at.cap_words;
    if (at.square && !square_from) square_from = at.cap_words;
    if ((at.cap_words < d * d) != below) continue;
    ++caps;
    if (!at.compared()) continue;
    local_bytes = std::max({local_bytes, at.flash->local_bytes(), at.square->local_bytes()});
    least = compared == 0 ? at.ratio() : std::min(least, at.ratio());
    most = std::max(most, at.ratio());
    ++compared;
    if (below ? at.ratio() < 1 : at.ratio() > 1) as_claimed.push_back(at.cap_words);
  }
  if (compared == 0) {
    const auto fits = [](const std::string& family, const std::optional<std::int64_t>& cap) {
      return cap ? fmt::format("{} fits from {} words on", family, *cap)
                 : fmt::format("{} fits no cap", family);
    };
    claim.measured +=
        fmt::format("none of {} caps fits both; {}, {}", caps, fits(rivals.square, square_from),
                    fits(rivals.flash_name(), flash_from)) +
        kEmulated;
    return claim;
  }
  claim.outcome = as_claimed.size() == compared ? Outcome::reproduced
                  : as_claimed.empty()          ? Outcome::not_reproduced
                                                : Outcome::corrected;
  claim.measured += fmt::format(
      "{} moves {} words than {} at {} of {} caps{}, {:.4f} to {:.4f} times its words",
      rivals.square, word, rivals.flash_name(), as_claimed.size(), compared,
      claim.outcome == Outcome::corrected ? " (" + spelled(as_claimed) + ")" : "", least, most);
  if (compared < caps) {
    claim.measured +=
        fmt::format("; not compared at {} of {} caps, which {} does not fit", caps - compared, caps,
                    *flash_from > *square_from ? rivals.flash_name() : rivals.square);
  }
  if (local_bytes > 0) {
    claim.measured += fmt::format(
        "; up to {} bytes of a lane found no register and are not counted", local_bytes);
  }
  claim.measured += kEmulated;
  return claim;
}

struct BoundTally {
  int at_or_above = 0, counted = 0;

  void add(std::int64_t bound, const std::optional<CappedCount>& count) {
    if (!count) return;
    ++counted;
    at_or_above += words_of(*count) >= bound ? 1 : 0;
  }
};

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

Findings capped_blocks(const CappedSizes& sizes, const CountUnderCap& count) {
  Findings findings;
  Table table{"capped_blocks_words",
              fmt::format("CUDA kernels under a cap, N = {}; memory of a block in words, local "
                          "memory of a lane in bytes",
                          sizes.seqlen),
              {"direction", "d", "cap", "variant", "fast memory", "shared", "registers", "local",
               "blocks", "words", "words per block"},
              {}};
  BoundTally bounds;
  for (const Rivals& rivals : all_rivals()) {
    const bool loss = rivals.direction == Direction::loss_gradient;
    const Problem problem =
        square_problem(sizes.seqlen, loss ? sizes.loss_head_dim : sizes.head_dim);
    const std::vector<AtCap> all = sweep(rivals, problem, count);
    findings.plots.push_back(plot_of(rivals, problem, all));
    findings.claims.push_back(claim_of(rivals, problem, Side::below, all));
    findings.claims.push_back(claim_of(rivals, problem, Side::from, all));
    for (const AtCap& at : all) {
      add_rows(rivals, problem.head_dim_qk, at, table);
      const std::int64_t bound = lower_bound(rivals.direction, problem, at.cap_words);
      bounds.add(bound, at.flash);
      bounds.add(bound, at.square);
    }
  }
  findings.claims.push_back(
      {"no kernel moves fewer words than the bounds at its cap",
       "docs/theory/bounds; M is all that a block has, registers too (K1)",
       fmt::format("{} of {} counts are at or above the bound", bounds.at_or_above, bounds.counted),
       bounds.counted == 0                    ? Outcome::not_compared
       : bounds.at_or_above == bounds.counted ? Outcome::reproduced
                                              : Outcome::not_reproduced});
  findings.tables.push_back(std::move(table));
  return findings;
}

}  // namespace attest::certify
