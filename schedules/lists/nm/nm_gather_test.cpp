#include "schedules/lists/nm/nm_gather.hpp"

#include <string>

#include "core/testing/catch.hpp"
#include "schedules/dense/column_groups.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"

namespace attest::schedules {
namespace {

// Keys that blocks of queries see, pair by pair.
std::int64_t keys_of_blocks(const Problem& problem, std::int64_t block) {
  const Sequence sequence = problem.sequences().front();
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin < sequence.q_length; begin += block) {
    for (std::int64_t j = 0; j < sequence.k_length; ++j) {
      bool seen = false;
      for (std::int64_t i = begin; i < std::min(begin + block, sequence.q_length); ++i) {
        seen = seen || problem.mask.visible(sequence, i, j);
      }
      if (seen) ++count;
    }
  }
  return count;
}

struct Words {
  io::Traffic closed_form, counted;
};

// Runs `schedule` and evaluates the cost of nm_gather.
template <class S>
Words words_of(const S& schedule, const Problem& problem, std::int64_t block) {
  const AbiProblem form(problem, 1);
  NmGather gather{block};
  gather.prepare(*form.get());
  const auto counted = BoundSchedule<S>(schedule, *form.get()).dry_count({}).traffic();
  return {heads_cost(gather, *form.get()), counted};
}

// Metadata by hand: 2 of 4 are 4 bits a query and group, 5 of 16 are 20.
TEST_CASE("words of N:M metadata", "[sparse][schedules]") {
  struct Case {
    const char* mask;
    std::int64_t block, metadata;
  };
  // N of N are offsets too, but for 1 of 1, which say nothing; a group may be longer than the keys.
  for (const Case& one : {Case{"nm_4_4_7", 8, 5 * 12 * 2}, Case{"nm_1_1_7", 8, 0},
                          Case{"nm_2_256_7", 8, 5 * 4}, Case{"nm_2_4_7", 8, 5 * 12 * 1},
                          Case{"nm_2_4_7", 9, 4 * 12 * 2 + 12 * 1}, Case{"nm_5_16_7", 8, 5 * 3 * 5},
                          Case{"nm_1_2_7", 32, 24 + 24}, Case{"nm_2_4_7", 1, 40 * 12}}) {
    INFO(one.mask << " in blocks of " << one.block);
    const Problem problem = Problem::parse("sq=40,sk=48,d=3,dv=2,mask=" + std::string(one.mask));
    const AbiProblem form(problem, 1);
    NmGather gather{one.block};
    gather.prepare(*form.get());
    const Words words = words_of(gather, problem, one.block);
    CHECK(words.counted == words.closed_form);
    CHECK(words.counted.reads.words ==
          40 * 3 + keys_of_blocks(problem, one.block) * (3 + 2) + one.metadata);
  }
}

// flash2_row visits the same keys and reads no metadata.
TEST_CASE("metadata that is not read is noticed", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=40,sk=48,d=3,dv=2,mask=nm_2_4_7");
  const Words words = words_of(Flash2Row{8}, problem, 8);
  CHECK(words.counted.reads.words + 5 * 12 == words.closed_form.reads.words);
  CHECK(words.counted.writes == words.closed_form.writes);
}

}  // namespace
}  // namespace attest::schedules
