#include "schedules/dense/flash1.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest::schedules {

template <Walk W>
void Flash1Over<W>::choose(Flash1Over& schedule, const std::string& rule,
                           const attest_problem& problem,
                           io::FastMemory capacity) requires(!W::kLists) {
  if (schedule.block_q != 0 || schedule.block_k != 0) {
    throw InvalidProblem("schedule: flash1: rule=" + rule +
                         " chooses bq and bk; give one or the "
                         "other");
  }
  if (rule != "paper" && rule != "fit") {
    throw InvalidProblem("schedule: flash1: rule=" + rule + " is unknown" +
                         did_you_mean(rule, {kRules.begin(), kRules.end()}) +
                         " (rules: paper fit)");
  }
  const std::int64_t words = capacity.words != io::FastMemory::kUnlimited
                                 ? capacity.words
                                 : capacity.bytes / static_cast<std::int64_t>(sizeof(float));
  if (capacity.words == io::FastMemory::kUnlimited &&
      capacity.bytes == io::FastMemory::kUnlimited) {
    throw InvalidProblem("schedule: flash1: rule=" + rule + " needs the size of fast memory");
  }
  const std::int64_t d = std::max(problem.head_dim_qk, problem.head_dim_v);
  schedule.block_k = rule == "paper" ? io::tiles(words, 4 * d)
                                     : std::max<std::int64_t>((words - 1) / (5 * d + 2), 1);
  schedule.block_q = std::min(schedule.block_k, d);
}

template <Walk W>
io::Traffic Flash1Over<W>::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const WalkSums sums =
      W::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, Stay::keys);
  const io::Words nz_q = sums.tile_queries, written = s.q + nz_q;
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return s.in(j * (s.dk + s.dv) + i * s.dk) +
           HeadShape::real(sums.open_words() + record + i * (s.dv + 2) + i * j + 1);
  };
  const io::Words filled = std::min(s.q, io::Words(block_q)) * s.dv;
  return {s.in(sums.keys * (s.dk + s.dv) + nz_q * (s.dk + s.dv)) +
              HeadShape::real(2 * nz_q + sums.words()),
          s.in(written * s.dv) + HeadShape::real(2 * written),
          sums.largest(HeadShape::real(std::max(sums.open_words(), filled)), peak)};
}

template struct Flash1Over<TileMap>;
template struct Flash1Over<TileList>;

}  // namespace attest::schedules
