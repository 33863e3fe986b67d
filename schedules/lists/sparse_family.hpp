#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "schedules/engine/family.hpp"
#include "schedules/walks/lists/tile_list.hpp"

namespace attest::schedules {

/// Throws io::NotForProblem, with a mask to give or a schedule to choose, for a problem without a
/// pattern of pairs: the lists of a dense score matrix would name every tile. Lists of bands
/// (causal and windows) name the tiles that the band meets, up to 2^24 queries times keys.
/// [schedules/lists/sparse_family_test "without a pattern"]
void require_pairs(const char* schedule, const char* dense, const attest_problem& problem);

/// The largest blocks of queries and keys, from 0 on, that the boolean mask is made of; 1 without.
/// Cost: time linear in the pairs.  [schedules/lists/sparse_family_test "grids"]
struct PatternGrid {
  std::int64_t queries = 1, keys = 1;
  friend bool operator==(const PatternGrid&, const PatternGrid&) = default;
};
PatternGrid grid_of(const attest_problem& problem);

/// The largest divisor or multiple of a block that is no larger than the tile.
/// [schedules/lists/sparse_family_test "grids"]
std::int64_t aligned_tile(std::int64_t tile, std::int64_t block);

/// A family of schedules that read lists of a pattern. The schedule struct has, besides what
/// Family asks of it, kDense: what to choose without a pattern. Tiles left open are those of
/// Family, which knows no blocks, or the same, traded with the mask or not, cut to whole
/// blocks of the pattern, or to one, each cut before the next is chosen: whichever move the fewest
/// words, or bytes where the capacity is in bytes. A struct with kFitsPattern chooses them
/// itself, one with require_pattern(problem) says itself which problems it is not for.
/// [schedules/lists/sparse_family_test "tiles left open"]
template <class S>
class SparseFamily : public Family<S> {
 public:
  std::string without_lists() const override { return S::kDense; }

  std::unique_ptr<io::Schedule> make(const io::ScheduleSpec& spec, const attest_problem& problem,
                                     io::FastMemory capacity) const override {
    if constexpr (requires { S::require_pattern(problem); }) {
      S::require_pattern(problem);
    } else {
      require_pairs(S::kName, S::kDense, problem);
    }
    if (Family<S>::kFitsPattern) return Family<S>::make(spec, problem, capacity);
    auto best = Family<S>::make(spec, problem, capacity);
    if (problem.mask.boolean == nullptr) return best;  // a band has no blocks
    const io::ScheduleSpec dense = best->spec();
    io::Words fewest = moved(best->closed_form(), capacity);
    const PatternGrid grid = grid_of(problem);
    const auto consider = [&](std::unique_ptr<io::Schedule> candidate) {
      if (candidate->spec() == dense) return;
      const io::Words words = moved(candidate->closed_form(), capacity);
      if (words >= fewest) return;
      fewest = words;
      best = std::move(candidate);
    };
    for (const Cut cut : {Cut::whole_blocks, Cut::one_block}) {
      if (cut == Cut::whole_blocks && grid == PatternGrid{}) continue;  // every tile is whole
      // A trade may leave the size that a block is best cut to.
      for (const Trade trade : {Trade::with_mask, Trade::none}) {
        consider(aligned(spec, problem, capacity, grid, cut, trade));
      }
    }
    return best;
  }

 private:
  using Trade = typename Family<S>::Trade;
  enum class Cut : std::uint8_t { whole_blocks, one_block };

  std::unique_ptr<io::Schedule> aligned(io::ScheduleSpec spec, const attest_problem& problem,
                                        io::FastMemory capacity, const PatternGrid& grid, Cut cut,
                                        Trade trade) const {
    for (const Parameter<S>& parameter : S::parameters()) {
      if (!parameter.choices.empty() || value_of(spec, parameter.name)) continue;
      const bool any = parameter.extent == Extent::any;
      const bool queries = any || parameter.extent == Extent::queries;
      const bool keys = any || parameter.extent == Extent::keys;
      if (!queries && !keys) continue;
      const io::ScheduleSpec chosen = this->made(spec, problem, capacity, trade)->spec();
      std::int64_t tile = value_of(chosen, parameter.name).value_or(1);
      const auto cut_to = [&](std::int64_t block) {
        tile = aligned_tile(cut == Cut::one_block ? std::min(tile, block) : tile, block);
      };
      if (queries) cut_to(grid.queries);
      if (keys) cut_to(grid.keys);
      spec.parameters.emplace_back(parameter.name, std::to_string(tile));
    }
    return Family<S>::make(spec, problem, capacity);
  }

  static std::optional<std::int64_t> value_of(const io::ScheduleSpec& spec,
                                              const std::string& parameter) {
    for (const auto& [key, value] : spec.parameters) {
      if (key == parameter) return whole_number(value);
    }
    return std::nullopt;
  }
};

}  // namespace attest::schedules
