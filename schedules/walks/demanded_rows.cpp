#include "schedules/walks/demanded_rows.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace attest::schedules {
namespace {

using Needs = std::vector<io::Range>;

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

template <class Body>
void for_each_row(const Needs& needs, const Body& body) {
  for (const io::Range& range : needs) {
    for (std::int64_t row = range.begin; row < range.end; ++row) body(row);
  }
}

class Buffer {
 public:
  Buffer(const std::vector<Needs>& needed, std::int64_t slots, std::int64_t rows)
      : occupants_(at(slots), RowMove::kNobody),
        slot_of_(at(rows), RowMove::kNobody),
        been_(at(rows)),
        needs_of_(at(rows)),
        next_(at(rows)) {
    for (std::size_t visit = 0; visit < needed.size(); ++visit) {
      if (visit > 0 && needed[visit] == needed[visit - 1]) continue;
      for_each_row(needed[visit], [&](std::int64_t row) { needs_of_[at(row)].push_back(visit); });
    }
  }

  std::vector<RowMove> moves(std::size_t visit, const Needs& needs) {
    std::vector<RowMove> list;
    for_each_row(needs, [&](std::int64_t row) {
      if (slot_of_[at(row)] != RowMove::kNobody) return;
      const std::int64_t slot = slot_to_take(visit), leaves = occupants_[at(slot)];
      if (leaves != RowMove::kNobody) slot_of_[at(leaves)] = RowMove::kNobody;
      list.push_back({slot, leaves, row, been_[at(row)] != 0});
      occupants_[at(slot)] = row;
      slot_of_[at(row)] = slot;
      been_[at(row)] = 1;
    });
    return list;
  }

 private:
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  std::int64_t slot_to_take(std::size_t visit) {
    std::int64_t best = RowMove::kNobody;
    std::size_t farthest = visit;  // those that are needed now stay
    for (std::size_t slot = 0; slot < occupants_.size(); ++slot) {
      const std::int64_t row = occupants_[slot];
      if (row == RowMove::kNobody) return static_cast<std::int64_t>(slot);
      const std::size_t need = next_need(row, visit);
      if (need <= farthest) continue;
      farthest = need;
      best = static_cast<std::int64_t>(slot);
    }
    if (best == RowMove::kNobody) throw InternalError("a visit that needs more rows than fit");
    return best;
  }

  // The first visit from this one on that needs the row.
  std::size_t next_need(std::int64_t row, std::size_t visit) {
    const std::vector<std::size_t>& needs = needs_of_[at(row)];
    std::size_t& next = next_[at(row)];
    while (next < needs.size() && needs[next] < visit) ++next;
    return next < needs.size() ? needs[next] : kNever;
  }

  std::vector<std::int64_t> occupants_, slot_of_;
  std::vector<char> been_;
  std::vector<std::vector<std::size_t>> needs_of_;  // visits
  std::vector<std::size_t> next_;
};

}  // namespace

std::vector<std::vector<RowMove>> moves_on_demand(const std::vector<Needs>& needed,
                                                  std::int64_t slots, std::int64_t rows) {
  Buffer buffer(needed, slots, rows);
  std::vector<std::vector<RowMove>> moves(needed.size());
  for (std::size_t visit = 0; visit < needed.size(); ++visit) {
    if (visit > 0 && needed[visit] == needed[visit - 1]) continue;
    moves[visit] = buffer.moves(visit, needed[visit]);
  }
  return moves;
}

}  // namespace attest::schedules
