#include "schedules/bands/rolling_visits.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "schedules/walks/band.hpp"

namespace attest::schedules {
namespace {

using io::Range;

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

// Adds a number to ranges of such, ascending.
void append(std::vector<Range>& ranges, std::int64_t number) {
  if (!ranges.empty() && ranges.back().end == number) {
    ++ranges.back().end;
  } else {
    ranges.push_back({number, number + 1});
  }
}

}  // namespace

RollingVisits::RollingVisits(const ScoreRule& rule, Extents extents, Residents residents,
                             std::int64_t length, std::int64_t room,
                             const std::vector<std::int64_t>& order, std::int64_t gap)
    : rule_(rule),
      extents_(extents),
      residents_(residents),
      length_(std::min(length, std::max<std::int64_t>(resident_count(), 1))),
      dense_(rule.problem->mask.boolean == nullptr && !has_band(rule) && extents.q > 0 &&
             extents.k > 0),
      places_(0) {
  if (!dense_ && io::Words(extents.q) * extents.k > kMostListedPairs) return;
  places_ = room < visitor_count() ? room - 1 : visitor_count();
  if (banded()) return;
  gap_ = std::clamp<std::int64_t>(resident_count() - length_, 0, gap);
  std::copy_if(order.begin(), order.end(), std::back_inserter(order_),
               [this](std::int64_t row) { return row < resident_count(); });
}

Range RollingVisits::band(std::int64_t visitor) const {
  if (residents_ == Residents::keys) return keys_within(rule_, visitor, {0, extents_.k});
  return queries_of(rule_, {0, extents_.q}, {visitor, visitor + 1});
}

template <class Function>
void RollingVisits::for_each_visit(const Function& function) const {
  if (!banded()) return for_each_visit_of_mask(function);
  for (std::int64_t visitor = 0; visitor < visitor_count(); ++visitor) {
    const Range range = band(visitor);
    for (std::int64_t resident = range.begin; resident < range.end;) {
      function(visitor, resident, resident == range.begin ? Visit::first : Visit::later);
      if (range.end - resident <= length_) break;
      resident += length_;
    }
  }
}

RollingVisits::MaskRow RollingVisits::mask_row(std::int64_t i,
                                               std::vector<std::uint8_t>& buffer) const {
  const Range keys = keys_within(rule_, i, {0, extents_.k});
  const std::uint8_t* entries = rule_.problem->mask.boolean + i * rule_.problem->seqlen_k;
  if (order_.empty() || residents_ == Residents::queries) return {entries, keys};
  buffer.assign(at(extents_.k), 0);
  for (std::size_t place = 0; place < order_.size(); ++place) {
    const std::int64_t key = order_[place];
    if (key >= keys.begin && key < keys.end) buffer[place] = entries[key];
  }
  return {buffer.data(), {0, extents_.k}};
}

// Row by row of the mask, whichever the residents are: the last of each visitor's visits so far.
template <class Function>
void RollingVisits::for_each_visit_of_mask(const Function& function) const {
  const bool by_keys = residents_ == Residents::keys;
  std::vector<std::int64_t> last(at(visitor_count()), kNowhere), met(at(visitor_count()));
  std::vector<std::uint8_t> buffer;
  for (std::int64_t place = 0; place < extents_.q; ++place) {
    const std::int64_t i = by_keys ? place : row(place).begin;
    const MaskRow seen = mask_row(i, buffer);
    for (std::int64_t j = seen.places.begin; j < seen.places.end; ++j) {
      const void* next = std::memchr(seen.entries + j, 1, at(seen.places.end - j));
      if (next == nullptr) break;
      j = static_cast<const std::uint8_t*>(next) - seen.entries;
      const std::int64_t visitor = by_keys ? i : j, resident = by_keys ? j : place;
      std::int64_t& before = last[at(visitor)];
      if (before != kNowhere && resident - before < length_ + gap_ && met[at(visitor)] < length_) {
        ++met[at(visitor)];
        continue;
      }
      function(visitor, resident, before == kNowhere ? Visit::first : Visit::later);
      before = resident;
      met[at(visitor)] = 1;
    }
  }
}

std::vector<RollingVisits::Coming> RollingVisits::visits() const {
  std::vector<Coming> all;
  for_each_visit([&](std::int64_t visitor, std::int64_t resident, Visit visit) {
    all.push_back({resident, visitor, visit, left_out(visitor, resident)});
  });
  std::sort(all.begin(), all.end(), [](const Coming& a, const Coming& b) {
    return std::tie(a.resident, a.left_out, a.visitor) <
           std::tie(b.resident, b.left_out, b.visitor);
  });
  return all;
}

std::int64_t RollingVisits::left_out(std::int64_t visitor, std::int64_t resident) const {
  if (gap_ == 0) return kNowhere;
  const std::vector<Range> list = met(visitor, resident);
  return list.back().end - resident > length_ ? list.front().end : kNowhere;
}

std::vector<std::vector<RowMove>> RollingVisits::moves(const std::vector<Coming>& visits) const {
  if (gap_ == 0) return std::vector<std::vector<RowMove>>(visits.size());
  std::vector<std::vector<Range>> needed;
  needed.reserve(visits.size());
  for (const Coming& one : visits) needed.push_back(met(one.visitor, one.resident));
  return moves_on_demand(needed, buffered(), resident_count());
}

// The waits in order of their ends, each at the place that has been free for the shortest time.
void RollingVisits::choose_waiting(std::vector<Coming>& visits, std::int64_t visitors,
                                   std::int64_t places) {
  std::multiset<std::int64_t> free_since;  // of each place, the number of a visit
  for (std::int64_t place = 0; place < places; ++place) free_since.insert(0);
  std::vector<std::int64_t> last(at(visitors), kNowhere);
  for (std::int64_t number = 0; number < static_cast<std::int64_t>(visits.size()); ++number) {
    Coming& visit = visits[at(number)];
    const std::int64_t before = std::exchange(last[at(visit.visitor)], number);
    if (before == kNowhere) continue;
    const auto later = free_since.upper_bound(before);
    if (later == free_since.begin()) continue;
    free_since.erase(std::prev(later));
    free_since.insert(number);
    visit.waited = visits[at(before)].waits = true;
  }
}

void RollingVisits::for_each_step(const std::function<void(const Step&)>& function) const {
  if (dense_) return for_each_step_of_all(function);
  if (banded() && places_ == 0) return for_each_step_of_bands(function);
  for_each_step_of_visits(function);
}

// The first visitors wait from step to step, the others never.
void RollingVisits::for_each_step_of_all(const std::function<void(const Step&)>& function) const {
  const std::int64_t count = visitor_count(), steps = io::tiles(resident_count(), length_);
  // Visitors with a place use the place only if they wait, or if all have one.
  const std::int64_t waiting = steps > 1 || places_ == count ? places_ : 0;
  for (std::int64_t number = 0; number < steps; ++number) {
    const bool first = number == 0, last = number + 1 == steps;
    const Visit visit = first ? Visit::first : Visit::later;
    Step step{number * length_, {}};
    if (waiting > 0) step.runs.push_back({{0, waiting}, visit, !first, !last, 0});
    if (waiting < count) step.runs.push_back({{waiting, count}, visit});
    function(step);
  }
}

// Bands whose ends ascend: at a step come the visitors whose bands begin there, or a whole number
// of lengths before, and have not ended. Visitors whose bands begin alike follow each other.
void RollingVisits::for_each_step_of_bands(const std::function<void(const Step&)>& function) const {
  std::vector<std::int64_t> visitors, ends;
  std::vector<std::int64_t> begun(at(resident_count()) + 1);  // bands that begin before a resident
  std::int64_t last_begin = 0;
  for (std::int64_t visitor = 0; visitor < visitor_count(); ++visitor) {
    const Range range = band(visitor);
    if (range.count() == 0) continue;
    visitors.push_back(visitor);
    ends.push_back(range.end);
    ++begun[at(range.begin) + 1];
    last_begin = range.begin;
  }
  for (std::int64_t r = 0; r < resident_count(); ++r) begun[at(r) + 1] += begun[at(r)];
  std::int64_t earliest = 0;  // begin of a band that has not ended
  for (std::int64_t resident = 0; resident < resident_count(); ++resident) {
    while (earliest < resident && (begun[at(earliest) + 1] == begun[at(earliest)] ||
                                   ends[at(begun[at(earliest) + 1]) - 1] <= resident)) {
      ++earliest;
    }
    Step step{resident, {}};
    const std::int64_t rest = (resident - earliest) % length_;
    for (std::int64_t begin = earliest + rest; begin <= std::min(resident, last_begin);
         begin += length_) {
      const Visit visit = begin == resident ? Visit::first : Visit::later;
      const auto group_end = ends.begin() + begun[at(begin) + 1];
      const auto open = std::upper_bound(ends.begin() + begun[at(begin)], group_end, resident);
      if (open == group_end) continue;
      const Range run{visitors[at(open - ends.begin())],
                      visitors[at(group_end - ends.begin()) - 1] + 1};
      if (!step.runs.empty() && step.runs.back().visitors.end == run.begin &&
          step.runs.back().visit == visit) {
        step.runs.back().visitors.end = run.end;
      } else {
        step.runs.push_back({run, visit});
      }
    }
    if (!step.runs.empty()) function(step);
  }
}

void RollingVisits::for_each_step_of_visits(
    const std::function<void(const Step&)>& function) const {
  std::vector<Coming> all = visits();
  choose_waiting(all, visitor_count(), places_);
  std::vector<std::vector<RowMove>> moves_before = moves(all);
  std::vector<std::int64_t> free;
  for (std::int64_t place = places_ - 1; place >= 0; --place) free.push_back(place);
  std::vector<std::int64_t> place_of(at(visitor_count()), kNowhere);
  Step step{kNowhere, {}};
  for (std::size_t number = 0; number < all.size(); ++number) {
    const Coming& one = all[number];
    std::int64_t& place = place_of[at(one.visitor)];
    if (places_ == visitor_count()) {
      place = one.visitor;
    } else if (one.waits && !one.waited) {
      place = free.back();
      free.pop_back();
    }
    const Run run{{one.visitor, one.visitor + 1}, one.visit, one.waited, one.waits, place,
                  std::move(moves_before[number])};
    if (!one.waits && place != kNowhere) free.push_back(std::exchange(place, kNowhere));
    if (step.resident != one.resident) {
      if (!step.runs.empty()) function(step);
      step = {one.resident, {}};
    }
    const bool alike =
        !step.runs.empty() && run.moves.empty() && step.runs.back().visitors.end == one.visitor &&
        step.runs.back().visit == run.visit && step.runs.back().waited == run.waited &&
        step.runs.back().waits == run.waits && step.runs.back().place_of(one.visitor) == run.place;
    if (alike) {
      ++step.runs.back().visitors.end;
    } else {
      step.runs.push_back(run);
    }
  }
  if (!step.runs.empty()) function(step);
}

std::vector<Range> RollingVisits::met(std::int64_t visitor, std::int64_t resident) const {
  const Range within = band(visitor);
  const std::int64_t end = resident + std::min(length_ + gap_, resident_count() - resident);
  if (banded()) {
    const Range range{std::max(within.begin, resident), std::min(within.end, end)};
    return range.begin < range.end ? std::vector<Range>{range} : std::vector<Range>{};
  }
  std::vector<Range> list;
  std::int64_t count = 0;
  for (std::int64_t place = resident; place < end && count < length_; ++place) {
    const std::int64_t r = row(place).begin;
    if (r < within.begin || r >= within.end) continue;
    const std::int64_t i = residents_ == Residents::keys ? visitor : r;
    const std::int64_t j = residents_ == Residents::keys ? r : visitor;
    if (rule_.problem->mask.boolean[i * rule_.problem->seqlen_k + j] == 0) continue;
    append(list, place);
    ++count;
  }
  return list;
}

std::vector<Range> RollingVisits::alike(const Run& run) const {
  if (dense_) return {run.visitors};
  std::vector<Range> list;
  for (std::int64_t visitor = run.visitors.begin; visitor < run.visitors.end; ++visitor) {
    list.push_back({visitor, visitor + 1});
  }
  return list;
}

io::Words RollingVisits::pairs() const {
  if (banded()) return band_pairs(rule_, {0, extents_.q});
  const std::uint8_t* mask = rule_.problem->mask.boolean;
  io::Words pairs = 0;
  for (std::int64_t i = 0; i < extents_.q; ++i) {
    const Range keys = keys_within(rule_, i, {0, extents_.k});
    const std::uint8_t* row = mask + i * rule_.problem->seqlen_k;
    pairs += std::count(row + keys.begin, row + keys.end, std::uint8_t{1});
  }
  return pairs;
}

bool RollingVisits::seen(std::int64_t place) const {
  if (dense_) return true;
  const bool query = residents_ == Residents::queries;
  const std::int64_t resident = row(place).begin;
  const Range range = query ? keys_within(rule_, resident, {0, extents_.k})
                            : queries_of(rule_, {0, extents_.q}, {resident, resident + 1});
  const std::uint8_t* mask = rule_.problem->mask.boolean;
  if (mask == nullptr) return range.count() > 0;
  const std::int64_t keys = rule_.problem->seqlen_k;
  if (query) {
    return std::memchr(mask + resident * keys + range.begin, 1, at(range.count())) != nullptr;
  }
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    if (mask[i * keys + resident] != 0) return true;
  }
  return false;
}

std::vector<Range> RollingVisits::idle() const {
  if (dense_) return {};
  std::vector<std::uint8_t> comes(at(visitor_count()));
  if (banded()) {
    for (std::int64_t v = 0; v < visitor_count(); ++v) comes[at(v)] = band(v).count() > 0 ? 1 : 0;
  } else {
    for_each_visit_of_mask(
        [&](std::int64_t visitor, std::int64_t, Visit) { comes[at(visitor)] = 1; });
  }
  std::vector<Range> list;
  for (std::int64_t visitor = 0; visitor < visitor_count(); ++visitor) {
    if (comes[at(visitor)] == 0) append(list, visitor);
  }
  return list;
}

RollingVisits::Sums RollingVisits::sums() const {
  const bool all_placed = places_ == visitor_count();
  if (dense_) {
    const io::Words steps = io::tiles(resident_count(), length_), waits = (steps - 1) * places_;
    const io::Words visits = steps * visitor_count();
    const io::Words placed = waits > 0 ? steps * places_ : io::Words(0);
    return {visits, visitor_count(), resident_count(), waits,
            all_placed ? io::Words(0) : visits - placed};
  }
  Sums sums;
  for (std::int64_t r = 0; r < resident_count(); ++r) sums.residents += seen(r) ? 1 : 0;
  if (places_ == 0 && banded()) {
    for (std::int64_t visitor = 0; visitor < visitor_count(); ++visitor) {
      const std::int64_t residents = band(visitor).count();
      sums.visits += io::tiles(residents, length_);
      sums.visitors += residents > 0 ? 1 : 0;
    }
    sums.placeless = sums.visits;
    return sums;
  }
  if (places_ == 0 && gap_ == 0) {
    for_each_visit_of_mask([&](std::int64_t, std::int64_t, Visit visit) {
      sums.visits += 1;
      if (visit == Visit::first) sums.visitors += 1;
    });
    sums.placeless = sums.visits;
    return sums;
  }
  std::vector<Coming> all = visits();
  choose_waiting(all, visitor_count(), places_);
  for (const Coming& one : all) {
    sums.visits += 1;
    if (one.visit == Visit::first) sums.visitors += 1;
    if (one.waits) sums.waits += 1;
    if (!all_placed && !one.waited && !one.waits) sums.placeless += 1;
  }
  for (const std::vector<RowMove>& list : moves(all)) {
    sums.entries_again +=
        std::count_if(list.begin(), list.end(), [](const RowMove& move) { return move.again; });
  }
  return sums;
}

}  // namespace attest::schedules
