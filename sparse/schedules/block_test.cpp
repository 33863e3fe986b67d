// Every schedule of this room on random patterns: its words against its closed form, its outputs
// against the definition; and schedules over lists of tiles against the dense ones that skip tiles
// for free: the same words, and the words of the lists.
#include <cstdio>
#include <string>

#include "core/testing/catch.hpp"
#include "cpu/schedules/family.hpp"
#include "cpu/schedules/flash1.hpp"
#include "cpu/schedules/flash2.hpp"
#include "cpu/schedules/testing/random_cases.hpp"
#include "sparse/schedules/block_forward.hpp"
#include "sparse/schedules/testing/pattern_cases.hpp"

namespace attest::sparse {
namespace {

using cpu::testing::Call;
using cpu::testing::Memory;
using testing::sparse_schedules;

constexpr int kCases = 150;  // for each schedule

TEST_CASE("closed forms of sparse forward schedules", "[sparse][schedules]") {
  Rng rng(20261122);
  for (const auto& family : sparse_schedules().families()) {
    if (family->direction() != io::Direction::forward) continue;
    double worst = 0;
    for (int round = 0; round < kCases; ++round) {
      const Problem problem = testing::random_problem_for(rng, *family);
      const std::string text = cpu::testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      Call call(problem, rng.bits64(), {Memory::scattered, 1, 1, cpu::testing::Dlse::absent});
      const auto schedule = sparse_schedules().make(text, *call.form.get(), io::FastMemory{});
      CHECK(schedule->spec().to_string() == text);
      const auto untouched = call.LSE.bytes();
      cpu::testing::check_counts(*schedule, call.forward_arguments());
      const auto expected = naive_forward(problem, call.inputs());
      worst = std::max(worst, cpu::testing::worst_ratio(call.O.view(), expected.O));
      if (family->kernel_class().lse == io::LseOutput::written) {
        worst = std::max(worst, cpu::testing::worst_ratio(call.LSE.view(), expected.LSE));
      } else {
        CHECK(call.LSE.bytes() == untouched);
      }
      REQUIRE(worst <= 1);
    }
    std::printf("%-22s worst error / bound %.3f\n", family->name().c_str(), worst);
  }
}

// Words of one list of every head, from looking at every pair.
io::Words lists_of_all_heads(const Problem& problem, std::int64_t block_q, std::int64_t block_k,
                             ListsOf of) {
  io::Words sum;
  for (const Sequence& sequence : problem.sequences()) {
    const auto words = testing::list_words(problem, sequence, block_q, block_k);
    const std::int64_t lists = of == ListsOf::queries ? words.query_blocks : words.key_blocks;
    sum += io::Words(problem.num_heads_q) * (2 * lists + words.tiles + words.bits);
  }
  return sum;
}

template <class Sparse, class Dense>
void check_same_but_lists(const Problem& problem, std::int64_t block_q, std::int64_t block_k,
                          ListsOf of) {
  INFO(problem.to_string() << " in tiles " << block_q << " x " << block_k);
  const AbiProblem form(problem, 1);
  const io::Traffic sparse = cpu::heads_cost(Sparse{block_q, block_k}, *form.get());
  const io::Traffic dense = cpu::heads_cost(Dense{block_q, block_k}, *form.get());
  const io::Words lists = lists_of_all_heads(problem, block_q, block_k, of);
  CHECK(sparse.reads == dense.reads + HeadShape::real(lists));
  CHECK(sparse.writes == dense.writes);
}

TEST_CASE("words over lists are those of free skipping and the lists", "[sparse][schedules]") {
  Rng rng(12);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = testing::random_pattern_problem(rng, io::Direction::forward);
    const std::int64_t block_q = rng.between(1, 9), block_k = rng.between(1, 9);
    check_same_but_lists<BlockFlash2, cpu::Flash2>(problem, block_q, block_k, ListsOf::queries);
    check_same_but_lists<BlockFlash1, cpu::Flash1>(problem, block_q, block_k, ListsOf::keys);
  }
}

}  // namespace
}  // namespace attest::sparse
