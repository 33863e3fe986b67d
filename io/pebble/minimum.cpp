#include "io/pebble/minimum.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "core/error.hpp"

namespace attest::io {
namespace {

WordSet bit(std::int32_t word) { return WordSet{1} << word; }

template <class Visit>
void for_each(WordSet words, const Visit& visit) {
  for (; words != 0; words &= words - 1) visit(words & (~words + 1));
}

// Words that fast and slow memory hold.
struct Position {
  WordSet fast = 0, slow = 0;

  friend bool operator==(const Position&, const Position&) = default;
};

// The least traffic known of every position seen: open addressing, no removal.
class Costs {
 public:
  Costs() : entries_(1 << 12) {}

  // The cost's place; kUnknown for a new position.
  std::int32_t& of(const Position& position) {
    if (2 * (size_ + 1) > entries_.size()) grow();
    Entry& entry = find(position);
    if (entry.cost == kFree) {
      entry = {position, kUnknown};
      ++size_;
    }
    return entry.cost;
  }

  std::size_t size() const { return size_; }

  static constexpr std::int32_t kUnknown = 1 << 30;

 private:
  static constexpr std::int32_t kFree = -1;
  struct Entry {
    Position position;
    std::int32_t cost = kFree;
  };

  Entry& find(const Position& position) {
    std::uint64_t hash = position.fast * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 32) ^ position.slow) * 0xd6e8feb86659fd93u;
    std::size_t place = (hash ^ (hash >> 32)) & (entries_.size() - 1);
    while (entries_[place].cost != kFree && entries_[place].position != position) {
      place = (place + 1) & (entries_.size() - 1);
    }
    return entries_[place];
  }

  void grow() {
    std::vector<Entry> before(2 * entries_.size());
    before.swap(entries_);
    for (const Entry& entry : before) {
      if (entry.cost != kFree) find(entry.position) = entry;
    }
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

// A* over positions. Four moves are made without choice, because nothing is lost by them: an output
// is stored when it is formed; what no missing output can use is dropped; a word is dropped only to
// make room; and it is stored only when it is dropped.
class Search {
 public:
  Search(const StepSystem& system, std::int32_t fast_words)
      : system_(system), fast_words_(fast_words), users_(user_outputs()) {}

  Minimum run(std::int64_t most_positions) {
    push({}, 0);
    for (std::size_t total = 0; total < buckets_.size(); ++total) {
      while (!buckets_[total].empty()) {
        const Open open = buckets_[total].back();
        buckets_[total].pop_back();
        if (costs_.of(open.position) != open.cost) continue;
        if (open.position.slow == system_.outputs) {
          return {Minimum::Certainty::exact, open.cost, visited()};
        }
        if (visited() > most_positions) {
          return {Minimum::Certainty::at_least, static_cast<std::int32_t>(total), visited()};
        }
        current_ = total;
        expand(open.position, open.cost);
      }
    }
    return {Minimum::Certainty::impossible, 0, visited()};
  }

 private:
  struct Open {
    Position position;
    std::int32_t cost;
  };

  std::int64_t visited() const { return static_cast<std::int64_t>(costs_.size()); }

  // For every word the outputs it can help to form.
  std::vector<WordSet> user_outputs() const {
    std::vector<WordSet> users(static_cast<std::size_t>(system_.words));
    for_each(system_.outputs, [&](WordSet output) {
      users[static_cast<std::size_t>(std::countr_zero(output))] = output;
    });
    for (bool changed = true; changed;) {
      changed = false;
      for (const Step& step : system_.steps) {
        const WordSet served = users[static_cast<std::size_t>(step.result)];
        for_each(step.operands, [&](WordSet operand) {
          WordSet& of_operand = users[static_cast<std::size_t>(std::countr_zero(operand))];
          changed = changed || (served & ~of_operand) != 0;
          of_operand |= served;
        });
      }
    }
    return users;
  }

  bool useful(WordSet word, const Position& position) const {
    return (users_[static_cast<std::size_t>(std::countr_zero(word))] & ~position.slow) != 0;
  }

  void push(Position position, std::int32_t cost) {
    const WordSet formed = position.fast & system_.outputs & ~position.slow;
    position.slow |= formed;
    cost += std::popcount(formed);
    for_each(position.fast, [&](WordSet word) {
      if (!useful(word, position)) position.fast &= ~word;
    });
    for_each(position.slow & ~system_.outputs, [&](WordSet word) {
      if (!useful(word, position)) position.slow &= ~word;
    });
    std::int32_t& known = costs_.of(position);
    if (known <= cost) return;
    known = cost;
    const std::int32_t total = cost + system_.remaining(position.fast, position.slow);
    const std::size_t bucket = std::max(static_cast<std::size_t>(total), current_);
    if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
    buckets_[bucket].push_back({position, cost});
  }

  void expand(const Position& position, std::int32_t cost) {
    const WordSet in_slow = system_.inputs | position.slow;
    for_each(in_slow & ~position.fast, [&](WordSet word) {
      if (useful(word, position)) place(position, word, cost + 1, 0);
    });
    for (const Step& step : system_.steps) {
      const WordSet result = bit(step.result);
      const bool can = (step.operands & ~position.fast) == 0;
      if (!can || (position.fast & result) != 0 || !useful(result, position)) continue;
      place(position, result, cost, system_.placement == Placement::beside ? step.operands : 0);
    }
  }

  void place(const Position& position, WordSet word, std::int32_t cost, WordSet kept) {
    if (std::popcount(position.fast) < fast_words_) {
      push({position.fast | word, position.slow}, cost);
      return;
    }
    for_each(position.fast & ~kept, [&](WordSet dropped) {
      const WordSet fast = (position.fast & ~dropped) | word;
      push({fast, position.slow}, cost);
      if ((dropped & (system_.inputs | position.slow)) == 0) {
        push({fast, position.slow | dropped}, cost + 1);
      }
    });
  }

  const StepSystem& system_;
  const std::int32_t fast_words_;
  const std::vector<WordSet> users_;
  Costs costs_;
  std::vector<std::vector<Open>> buckets_;
  std::size_t current_ = 0;
};

}  // namespace

Minimum least_traffic(const StepSystem& system, std::int32_t fast_words,
                      std::int64_t most_positions) {
  if (system.words > 64) {
    throw InvalidProblem("the computation has " + std::to_string(system.words) +
                         " words; the search takes at most 64");
  }
  if (fast_words < 1) {
    throw InvalidProblem("fast_words is " + std::to_string(fast_words) + "; it must be at least 1");
  }
  return Search(system, fast_words).run(most_positions);
}

StepSystem steps_of(const Dag& dag) {
  if (dag.size() > 64) {
    throw InvalidProblem("the computation has " + std::to_string(dag.size()) +
                         " words; the search takes at most 64");
  }
  StepSystem system;
  system.words = dag.size();
  std::vector<WordSet> operands(static_cast<std::size_t>(dag.size()));
  for (Vertex vertex = 0; vertex < dag.size(); ++vertex) {
    for (const Vertex operand : dag.operands(vertex)) {
      operands[static_cast<std::size_t>(vertex)] |= bit(operand);
    }
    if (dag.is_input(vertex)) {
      system.inputs |= bit(vertex);
    } else {
      system.steps.push_back({operands[static_cast<std::size_t>(vertex)], vertex});
    }
  }
  for (const Vertex output : dag.outputs()) system.outputs |= bit(output);
  // Missing outputs are written; of what they need, inputs that are not in fast memory are read. A
  // word that is in fast or slow memory need not be formed again.
  system.remaining = [operands, inputs = system.inputs, outputs = system.outputs](WordSet fast,
                                                                                  WordSet slow) {
    WordSet needed = outputs & ~slow;
    const auto writes = std::popcount(needed);
    WordSet open = needed & ~fast;
    while (open != 0) {
      WordSet next = 0;
      for_each(open, [&](WordSet word) {
        next |= operands[static_cast<std::size_t>(std::countr_zero(word))];
      });
      next &= ~(needed | fast | slow);
      needed |= next;
      open = next;
    }
    return writes + std::popcount(needed & inputs & ~fast);
  };
  return system;
}

}  // namespace attest::io
