#include "schedules/lists/sparse_family.hpp"

#include <algorithm>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using testing::sparse_schedules;

io::Words words_moved(const char* schedule, const char* problem_text, std::int64_t fast_words) {
  const Problem problem = Problem::parse(problem_text);
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(fast_words);
  return sparse_schedules().make(schedule, *form.get(), capacity)->closed_form().total_words();
}

TEST_CASE("problems without a pattern of pairs are refused", "[sparse][schedules]") {
  for (const char* mask : {"none", "lengths_5"}) {
    const Problem problem = Problem::parse(std::string("sq=8,sk=8,d=2,mask=") + mask);
    const AbiProblem form(problem, 1);
    for (const auto& family : sparse_schedules().families()) {
      CHECK_THROWS_AS(family->make({family->name(), {}}, *form.get(), io::FastMemory{}),
                      io::NotForProblem);
    }
    CHECK_THROWS_WITH(
        sparse_schedules().make("block_flash2:bq=2,bk=2", *form.get(), io::FastMemory{}),
        "mask: no pattern of pairs, but block_flash2 reads the lists of one; give a sparsity "
        "pattern, as in mask=block_64_10_7, or choose flash2");
    CHECK_THROWS_WITH(sparse_schedules().make("nm_gather:bq=2", *form.get(), io::FastMemory{}),
                      Catch::StartsWith("mask: no N:M pattern, but N:M schedules"));
  }
}

// A band is the pattern of its pairs, so that lists of either have the same words.
TEST_CASE("lists of bands are those of their pairs", "[sparse][schedules]") {
  const auto traffic = [](const std::string& schedule, const char* mask) {
    const Problem problem = Problem::parse(std::string("sq=40,sk=40,d=8,mask=") + mask);
    const AbiProblem form(problem, 1);
    return sparse_schedules().make(schedule, *form.get(), io::FastMemory{})->closed_form();
  };
  for (const char* schedule :
       {"block_flash2:bq=7,bk=5", "block_rank1_tiled:bq=6,bk=5,ov=3",
        "csr_gather:bq=3,order=natural", "block_held_scores:bq=4,bk=1",
        "block_two_pass:bq=3,bk=4,cq=5,ck=6", "csr_two_pass:bq=3,bk=4,order=natural"}) {
    INFO(schedule);
    CHECK(traffic(schedule, "causal_br") == traffic(schedule, "dilated_inf_0_1"));
    CHECK(traffic(schedule, "window_5_3") == traffic(schedule, "dilated_5_3_1"));
    CHECK_FALSE(traffic(schedule, "window_5_3") == traffic(schedule, "dilated_5_4_1"));
  }
}

TEST_CASE("lists of long bands are refused", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=4097,sk=4096,d=2,mask=causal_br");
  const AbiProblem form(problem, 1);
  CHECK_THROWS_AS(sparse_schedules().make("block_flash2:bq=2,bk=2", *form.get(), io::FastMemory{}),
                  io::NotForProblem);
}

TEST_CASE("with a capacity in bytes, bytes of cut tiles are compared", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=24,d=2,dtype=bf16,mask=block_4x3_20_45");
  const AbiProblem form(problem, 1);
  const auto traffic = [&](const char* schedule) {
    return sparse_schedules()
        .make(schedule, *form.get(), io::FastMemory::of_bytes(894))
        ->closed_form();
  };
  const io::Traffic found = traffic("block_flash2"), of_words = traffic("block_flash2:bq=24,bk=3");
  CHECK(found.total_bytes() < of_words.total_bytes());
  CHECK(found.total_words() > of_words.total_words());
}

// The search for a dense score matrix finds tiles of 24 queries and 5 keys.
TEST_CASE("tiles over lists are traded with the pattern", "[sparse][schedules]") {
  const auto words = [](const char* schedule) {
    return words_moved(schedule, "sq=96,d=8,mask=pairs_5_1", 600);
  };
  CHECK(words("block_flash2") <= words("block_flash2:bq=30,bk=1"));
  CHECK(words("block_flash2") < words("block_flash2:bq=24,bk=5"));
}

// Traded tiles are cut to 16 queries, those of the search without the mask to 32.
TEST_CASE("tiles are cut to blocks before a trade too", "[sparse][schedules]") {
  const auto words = [](const char* schedule) {
    return words_moved(schedule, "sq=4096,d=64,mask=block_64_5_1", 1024);
  };
  CHECK(words("block_rank1_tiled") <= words("block_rank1_tiled:bq=32,bk=16,ov=28"));
}

TEST_CASE("tiles left open fit whatever the pattern", "[sparse][schedules]") {
  Rng rng(8);
  for (const auto& family : sparse_schedules().families()) {
    for (int round = 0; round < 20; ++round) {
      Problem problem = testing::random_problem_for(rng, *family);
      const auto capacity = io::FastMemory::of_words(rng.between(100, 400));
      INFO(family->name() << " in " << capacity.words << " on " << problem.to_string());
      const AbiProblem form(problem, 1);
      const auto schedule = family->make({family->name(), {}}, *form.get(), capacity);
      CHECK(schedule->dry_count(capacity).traffic() == schedule->closed_form());
    }
  }
}

TEST_CASE("grids of patterns, and tiles that divide them", "[sparse][schedules]") {
  const auto grid = [](const char* mask) {
    const Problem problem = Problem::parse(std::string("sq=48,sk=60,d=1,mask=") + mask);
    return grid_of(*AbiProblem(problem, 1).get());
  };
  CHECK(grid("block_8x6_50_1") == PatternGrid{8, 6});
  CHECK(grid("blockband_16x20_0") == PatternGrid{16, 20});
  CHECK(grid("pairs_50_1") == PatternGrid{1, 1});
  CHECK(grid("block_8x6_0_1") == PatternGrid{48, 60});
  CHECK(grid("causal_br") == PatternGrid{1, 1});
  CHECK(aligned_tile(113, 64) == 64);
  CHECK(aligned_tile(200, 64) == 192);
  CHECK(aligned_tile(63, 64) == 32);
  CHECK(aligned_tile(5, 6) == 3);
  CHECK(aligned_tile(1, 64) == 1);
}

TEST_CASE("tiles left open divide the blocks of a pattern", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=256,sk=256,d=16,mask=block_32_20_1");
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(1700);
  const auto words = [&](const std::string& text) {
    const auto schedule = sparse_schedules().make(text, *form.get(), capacity);
    INFO(schedule->spec().to_string());
    CHECK(schedule->closed_form().peak.words <= capacity.words);
    return schedule->closed_form().total_words();
  };
  const auto chosen = sparse_schedules().make("csr_gather:order=natural", *form.get(), capacity);
  CHECK(chosen->spec().to_string() == "csr_gather:bq=32");
  // As many rows as fit meet more keys, and two blocks of them more than one.
  CHECK(words("csr_gather:order=natural") < words("csr_gather:bq=46,order=natural"));
  const auto wide = io::FastMemory::of_words(14000);
  const auto one_block = sparse_schedules().make("block_square_tiled", *form.get(), wide);
  CHECK(one_block->spec().to_string() == "block_square_tiled:b=32");
}

// Several tiles are cut one after another: what one of them gives up serves the others.
TEST_CASE("tiles of blocks are cut one after another", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=512,sk=512,d=64,mask=blockband_64_0");
  const AbiProblem form(problem, 1);
  const auto make = [&](const std::string& text) {
    return sparse_schedules().make(text, *form.get(), io::FastMemory::of_words(1024));
  };
  const auto chosen = make("block_rank1_tiled_bwd");
  const auto both = make("block_rank1_tiled_bwd:bq=16,bk=16");
  INFO(chosen->spec().to_string());
  CHECK(chosen->closed_form().total_words() < both->closed_form().total_words());
}

// Their classes, K1 to K6, hold: no bound that a class admits is above what is moved.
TEST_CASE("words of sparse schedules are no fewer than lower bounds", "[sparse][schedules]") {
  Rng rng(9);
  const int rounds = attest::testing::is_nightly() ? 60 : 20;
  int with_bound = 0;
  for (const auto& family : sparse_schedules().families()) {
    for (int round = 0; round < rounds; ++round) {
      const Problem problem = testing::random_problem_for(rng, *family);
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      const AbiProblem form(problem, 1);
      const auto schedule = sparse_schedules().make(text, *form.get(), io::FastMemory{});
      const std::int64_t peak =
          std::max<std::int64_t>(schedule->closed_form().peak.words.value(), 1);
      const auto count =
          count_schedule(*family, *schedule, problem, io::FastMemory::of_words(peak));
      CHECK(count.faults().empty());
      if (count.lower && count.lower->words > 0) ++with_bound;
    }
  }
  CHECK(with_bound > 100 * rounds / 60);
}

TEST_CASE("families that do not take the problem are no candidates", "[sparse][schedules]") {
  const auto candidates = [](const char* text) {
    const Problem problem = Problem::parse(text);
    const AbiProblem form(problem, 1);
    return best_schedule(sparse_schedules(), Direction::forward, *form.get(),
                         io::FastMemory::of_words(500))
        .candidates.size();
  };
  CHECK(candidates("sq=8,sk=8,d=2,mask=block_2_50_1") > 0);
  CHECK_THROWS_AS(candidates("sq=8,sk=8,d=2"), io::CapacityExceeded);
}

}  // namespace
}  // namespace attest::schedules
