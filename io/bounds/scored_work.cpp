#include "io/bounds/scored_work.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "io/bounds/segments.hpp"

namespace attest::io {
namespace {

// Shares of the words that are written; up to the next one are allowed, and the rest usable.
constexpr std::array kWritten{0.0, 1 / 8.0, 1 / 4.0, 1 / 2.0, 1.0};

// Linear program for `fewest` pairs or more, y of them in rows and keys that have s pairs to one,
// formed scores with `formed` to one. Words are q of Q and K, C that pairs have of their own, and
// w/s for the work w into O: the greatest w + alpha formed q, under
//   q + C + w/s <= B,  s q/d_k + C >= max(w/d_v, fewest),
// found as the greatest of the corners.
class Corners {
 public:
  Corners(const ScoredWork& work, double fewest, double density, double formed, double words)
      : fewest_(fewest), density_(density), words_(words), credit_(work.score_weight * formed) {
    const double each = work.row_words / density;  // of Q and K, of a pair that is formed
    // All pairs formed inside, or all with a word of their own.
    all_of_kind(work.columns, each, each);
    all_of_kind(work.columns, 1, 0);
    if (each * fewest <= words) take(0, words);
    // The fewest pairs, some of each kind, with all columns of V or none.
    for (const double columns : {work.columns, 0.0}) {
      const double left = words - fewest - columns * fewest / density;
      // Where s is about d_k this is no more than rounding: then the corners above have as much.
      const double of_rows = left / (1 - density / work.row_words);
      if (of_rows >= 0 && of_rows <= each * fewest) take(columns * fewest, of_rows);
    }
  }

  double greatest() const { return greatest_; }

 private:
  // Pairs that take so many words each, `of_rows` of them of Q and K.
  void all_of_kind(double columns, double each, double of_rows) {
    const double pairs = words_ / (each + columns / density_);
    if (pairs >= fewest_) {
      take(columns * pairs, of_rows * pairs);
    } else if (each * fewest_ <= words_) {
      take(density_ * (words_ - each * fewest_), of_rows * fewest_);
    }
  }

  void take(double into_outputs, double of_rows) {
    greatest_ = std::max(greatest_, into_outputs + credit_ * of_rows);
  }

  double fewest_, density_, words_, credit_, greatest_ = 0;
};

using Entries = std::vector<PairDensity::Entry>;

// The segments with so many usable words, and at most `leaving` pairs whose score is begun in one
// and used later.
class UsableWords {
 public:
  UsableWords(const Entries& entries, const ScoredWork& work, double usable, double leaving)
      : entries_(entries), work_(work), usable_(usable), leaving_(leaving) {
    // y/s grows with y. First come the numbers of pairs that leave words over, of whichever kind
    // the pairs are: of those the last one allows the most.
    first_ =
        std::partition_point(entries.begin(), entries.end(), [&](const PairDensity::Entry& entry) {
          return static_cast<double>(entry.fewest) *
                     (work.columns + std::max(work.row_words, entry.density)) <=
                 entry.density * usable;
        });
    if (first_ != entries.begin()) --first_;
    // Entries for which there are too few words, whatever the kind, are left out.
    end_ = std::partition_point(first_, entries.end(), [&](const PairDensity::Entry& entry) {
      return static_cast<double>(entry.fewest) * std::min(entry.density, work.row_words) <=
             entry.density * usable;
    });
  }

  // Not less than most().
  double at_most() const {
    if (first_ == end_) return without_pairs();
    const auto last = std::prev(end_);
    return Corners(work_, 0, last->density, formed(last)->density, usable_).greatest();
  }

  double most() const {
    double most = without_pairs();
    auto far = formed(first_);
    for (auto entry = first_; entry != end_; ++entry) {
      while (std::next(far) != entries_.end() && begins_below(*std::next(far), entry)) ++far;
      most = std::max(most, Corners(work_, static_cast<double>(entry->fewest), entry->density,
                                    far->density, usable_)
                                .greatest());
    }
    return most;
  }

 private:
  using Place = Entries::const_iterator;

  // All words are of Q and K, for scores that leave.
  double without_pairs() const {
    const auto beyond = std::partition_point(entries_.begin(), entries_.end(),
                                             [&](const PairDensity::Entry& entry) {
                                               return static_cast<double>(entry.fewest) <= leaving_;
                                             });
    return work_.score_weight * std::prev(beyond)->density * usable_;
  }

  // Tells whether pairs of `entry` and those that leave can be as many as those of the other one.
  bool begins_below(const PairDensity::Entry& other, Place entry) const {
    const auto next = std::next(entry);
    const std::int64_t pairs = next == entries_.end() ? entry->fewest : next->fewest;
    return static_cast<double>(other.fewest) <= static_cast<double>(pairs) + leaving_;
  }

  Place formed(Place entry) const {
    return std::prev(std::partition_point(
        entry, entries_.end(),
        [&](const PairDensity::Entry& other) { return begins_below(other, entry); }));
  }

  const Entries& entries_;
  const ScoredWork& work_;
  double usable_, leaving_;
  Place first_, end_;
};

}  // namespace

double most_scored_work(const PairDensity& density, const ScoredWork& work, double words) {
  double most = 0;
  for (std::size_t split = 0; split + 1 < kWritten.size(); ++split) {
    const UsableWords segments(density.entries(), work, words * (1 - kWritten[split]),
                               work.fast_words + words * kWritten[split + 1]);
    if (segments.at_most() > most) most = std::max(most, segments.most());
  }
  return rounded_up(most);
}

}  // namespace attest::io
