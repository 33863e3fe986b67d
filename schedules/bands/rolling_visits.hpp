#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "schedules/engine/head.hpp"
#include "schedules/walks/demanded_rows.hpp"

namespace attest::schedules {

/// Which rows stay in a rolling buffer: the queries, or the keys. The others visit.
enum class Residents : std::uint8_t { queries, keys };

/// Who visits a rolling buffer when. The buffer holds `length` rows in a row and rolls by one:
/// residents r to r + length - 1 when r is about to leave. A visitor comes when a row leaves that
/// it must still meet, and meets all that are there: as few visits as a buffer of so many rows
/// allows. A band of w rows is met in ceil(w/length) visits, wherever it begins; blocks of so many
/// rows, which do not roll, take one more where it begins within one.
///
/// Fast memory has room for some visitors: the one that visits, and places where others wait for
/// their next visit. As many waits as these places allow are chosen, those first that end first
/// (Carlisle and Lloyd 1995, "On the k-coloring of intervals"). With room for all every visitor has
/// a place of its own. With a mask and more than kMostListedPairs nobody waits.
///
/// The residents of a boolean mask may be in another order: everything below speaks of their places
/// in it, row() says who is there.
///
/// With a gap a visitor of a boolean mask meets up to `length` residents that it sees among the
/// next length + gap: some that it does not see are left out of the buffer for it, and the buffer
/// holds what is demanded (moves_on_demand) instead of rolling. Where blocks of residents just do
/// not fit side by side, a gap of the few that are too many lets visitors that do not see all of
/// the blocks meet them in one visit.
/// [schedules/bands/rolling_visits_test]
class RollingVisits {
 public:
  struct Extents {
    std::int64_t q, k;
  };

  /// `order` gives the row at each place; empty, or without a boolean mask: as they come. Rows
  /// beyond the extents are left out.
  ///
  /// A gap is used with boolean masks that are listed.
  ///
  /// Requires: length and room >= 1, gap >= 0; an order of all residents. The rule outlives it.
  RollingVisits(const ScoreRule& rule, Extents extents, Residents residents, std::int64_t length,
                std::int64_t room, const std::vector<std::int64_t>& order = {},
                std::int64_t gap = 0);

  /// The resident at a place, as a range of one.
  io::Range row(std::int64_t place) const {
    const std::int64_t row = order_.empty() ? place : order_[static_cast<std::size_t>(place)];
    return {row, row + 1};
  }

  enum class Visit : std::uint8_t { first, later };
  static constexpr std::int64_t kNowhere = -1;

  /// Visitors one after another, whether they waited for this visit and will wait for the next, and
  /// the place of the first of them; nowhere if they neither did nor will. The others are at the
  /// places behind. `moves` come before them, with a gap.
  struct Run {
    io::Range visitors;
    Visit visit;
    bool waited = false, waits = false;
    std::int64_t place = kNowhere;
    std::vector<RowMove> moves{};

    std::int64_t place_of(std::int64_t visitor) const {
      return place == kNowhere ? kNowhere : place + visitor - visitors.begin;
    }
  };

  /// Runs of visitors that come when a resident is about to leave.
  struct Step {
    std::int64_t resident;
    std::vector<Run> runs;
  };

  /// The steps at which anyone comes, residents ascending; visitors ascend within a step, with a
  /// gap within those for whom the same resident is the first that is left out.
  /// Cost: time linear in the runs, and in the mask or the rows; no visit is stored where nobody
  /// waits and there is no boolean mask.
  void for_each_step(const std::function<void(const Step&)>& function) const;

  /// Returns the residents in the buffer that a visitor sees, ascending, when `resident` is about
  /// to leave.
  std::vector<io::Range> met(std::int64_t visitor, std::int64_t resident) const;

  /// The visitors of a run as ranges within which all meet as many.
  std::vector<io::Range> alike(const Run& run) const;

  /// Pairs of a resident and a visitor that sees it.
  /// Cost: time linear in the mask, or in the visitors without one.
  io::Words pairs() const;

  /// Tells whether any visitor sees a resident.
  bool seen(std::int64_t place) const;

  /// Visitors that see nobody.
  std::vector<io::Range> idle() const;

  /// Visits, visitors that come at all, residents that are seen, waits, and visits without a place:
  /// of visitors that did not wait and will not; and residents that enter again, with a gap.
  struct Sums {
    io::Words visits, visitors, residents, waits, placeless, entries_again{};

    /// Visits of visitors that had been here and gone.
    io::Words returns() const { return visits - visitors - waits; }
  };
  Sums sums() const;

  std::int64_t resident_count() const {
    return residents_ == Residents::queries ? extents_.q : extents_.k;
  }
  std::int64_t visitor_count() const {
    return residents_ == Residents::queries ? extents_.k : extents_.q;
  }

  /// Rows that the buffer holds, and places for visitors beside the one that visits.
  std::int64_t buffered() const { return std::min(length_, resident_count()); }
  std::int64_t places() const { return places_; }

  /// Tells whether the buffer moves as the runs say, not by rolling.
  bool on_demand() const { return gap_ > 0; }

 private:
  struct Coming {
    std::int64_t resident, visitor;
    Visit visit;
    std::int64_t left_out = kNowhere;  // the first resident that is
    bool waited = false, waits = false;
  };

  // function(visitor, resident, visit) for every visit; those of a visitor in order.
  template <class Function>
  void for_each_visit(const Function& function) const;
  template <class Function>
  void for_each_visit_of_mask(const Function& function) const;

  bool banded() const { return rule_.problem->mask.boolean == nullptr; }

  // The mask's entries for query i, by the places of keys: those of its band, which lie within
  // `places`. In another order of keys they are gathered in the buffer.
  struct MaskRow {
    const std::uint8_t* entries;
    io::Range places;
  };
  MaskRow mask_row(std::int64_t i, std::vector<std::uint8_t>& buffer) const;

  // All visits in order, and who waits.
  std::vector<Coming> visits() const;
  static void choose_waiting(std::vector<Coming>& visits, std::int64_t visitors,
                             std::int64_t places);
  std::vector<std::vector<RowMove>> moves(const std::vector<Coming>& visits) const;

  // Returns the first resident that a visitor, as `resident` is about to leave, does not see and
  // must leave out; nowhere if all have room.
  std::int64_t left_out(std::int64_t visitor, std::int64_t resident) const;

  // The band of a visitor: residents that neither window nor key lengths hide.
  io::Range band(std::int64_t visitor) const;

  void for_each_step_of_all(const std::function<void(const Step&)>& function) const;
  void for_each_step_of_bands(const std::function<void(const Step&)>& function) const;
  void for_each_step_of_visits(const std::function<void(const Step&)>& function) const;

  const ScoreRule& rule_;
  Extents extents_;
  Residents residents_;
  std::int64_t length_, gap_ = 0;
  bool dense_;  // every pair is visible
  std::int64_t places_;
  std::vector<std::int64_t> order_;
};

}  // namespace attest::schedules
