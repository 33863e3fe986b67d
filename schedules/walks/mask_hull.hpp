#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedules/engine/head.hpp"

namespace attest::schedules {

/// A band around the pairs that a boolean mask leaves a batch entry: to every query between the
/// first and the last that see a key a range of keys whose ends do not fall from query to query,
/// none of them empty or without the next one's first key at its end. No wider than that needs, but
/// where queries or keys between others see nothing. Schedules for bands then take bands of
/// blocks, or documents, as they take windows.
/// Cost: time linear in the pairs.  [schedules/walks/mask_hull_test]
class MaskHull {
 public:
  /// Nothing without a boolean mask, with more pairs than are listed, or where the band leaves out
  /// less than a quarter of the pairs.
  static std::shared_ptr<const MaskHull> of(const ScoreRule& rule);

  io::Range band(std::int64_t query) const { return bands_[static_cast<std::size_t>(query)]; }
  std::int64_t most_keys() const { return most_keys_; }

  /// From the first query that sees a key to the last.
  io::Range seeing() const { return seeing_; }

  /// Sum of the first keys of the bands of some queries, or of their ends.
  io::Words begins(io::Range queries) const { return sum(begins_, queries); }
  io::Words ends(io::Range queries) const { return sum(ends_, queries); }

 private:
  explicit MaskHull(std::vector<io::Range> bands);

  static io::Words sum(const std::vector<std::int64_t>& sums, io::Range queries) {
    return sums[static_cast<std::size_t>(queries.end)] -
           sums[static_cast<std::size_t>(queries.begin)];
  }

  std::vector<io::Range> bands_;
  std::vector<std::int64_t> begins_, ends_;  // of the queries before
  std::int64_t most_keys_ = 0;
  io::Range seeing_{};
};

/// The hull of a problem's first batch entry, found once for schedules that ask again and again.
class PreparedHull {
 public:
  PreparedHull() = default;
  explicit PreparedHull(const attest_problem& problem);

  /// The hull of a batch entry, found anew if it is not like the first.
  std::shared_ptr<const MaskHull> of(const ScoreRule& rule) const;

 private:
  const std::uint8_t* mask_ = nullptr;
  Batch batch_{};
  std::shared_ptr<const MaskHull> hull_;
};

/// A head whose rule knows the hull of its mask, where it has one.
template <class Head>
class Banded {
 public:
  Banded(const Head& head, const PreparedHull& hull) : head_(head), hull_(hull.of(head.rule)) {
    head_.rule.hull = hull_.get();
  }
  Banded(const Banded&) = delete;
  Banded& operator=(const Banded&) = delete;

  const Head& head() const { return head_; }

 private:
  Head head_;
  std::shared_ptr<const MaskHull> hull_;
};

}  // namespace attest::schedules
