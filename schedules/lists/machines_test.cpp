// Every schedule of this room on the other machines: native runs give the counted bits on any
// number of threads, recordings have the counted words and move rows as declared.
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "io/recording/word_move.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"
#include "schedules/testing/random_cases.hpp"
#include "schedules/testing/whole_rows.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Memory;
using testing::sparse_schedules;

enum class How { counted, native };

std::vector<std::uint64_t> bits(const Problem& problem, const io::ScheduleFamily& family,
                                const std::string& text, std::uint64_t seed, How how,
                                std::int32_t threads, Memory memory) {
  Call call(problem, seed, {memory, threads, 1, testing::dlse_of(text)});
  const auto schedule = family.make(io::ScheduleSpec::parse(text), *call.form.get(), {});
  const auto run = [&](const auto& args) {
    if (how == How::counted) {
      schedule->count({}, args);
    } else {
      schedule->run(args);
    }
  };
  if (family.direction() == Direction::forward) {
    run(call.forward_arguments());
  } else {
    BoundSchedule<Flash2>({4, 4}, *call.form.get()).run(call.forward_arguments());
    run(call.backward_arguments());
  }
  return call.output_bits();
}

TEST_CASE("native and counted runs of sparse schedules give equal bits", "[sparse][schedules]") {
  Rng rng(11);
  for (const auto& family : sparse_schedules().families()) {
    for (int round = 0; round < 40; ++round) {
      Problem problem = testing::random_problem_for(rng, *family);
      if (round % 4 == 3) problem.dtype = round % 8 == 3 ? DType::bf16 : DType::f16;
      const std::string text = testing::random_schedule(rng, *family);
      const std::uint64_t seed = rng.bits64();
      INFO(text << " on " << problem.to_string());
      const auto counted = bits(problem, *family, text, seed, How::counted, 1, Memory::spelled);
      const auto memory = round % 2 == 0 ? Memory::spelled : Memory::scattered;
      CHECK(bits(problem, *family, text, seed, How::native, 1, memory) == counted);
      CHECK(bits(problem, *family, text, seed, How::native, 3, memory) == counted);
    }
  }
}

// Returns a problem with one head, as recording requires.
Problem random_head(Rng& rng, const io::ScheduleFamily& family) {
  Problem problem = testing::random_problem_for(rng, family);
  problem.batch = problem.num_heads_q = problem.num_heads_kv = 1;
  return problem;
}

// Words of slow memory loaded and stored.
struct WordCount : io::WordMoveSink {
  io::Words loads, stores;
  void take(const io::WordMove& move) override {
    if (move.kind == io::WordMove::Kind::load) loads += 1;
    if (move.kind == io::WordMove::Kind::store) stores += 1;
  }
};

TEST_CASE("recordings of sparse schedules have the counted words", "[sparse][schedules]") {
  Rng rng(4);
  for (const auto& family : sparse_schedules().families()) {
    for (int round = 0; round < 40; ++round) {
      const Problem problem = random_head(rng, *family);
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      const AbiProblem form(problem, 1);
      const auto schedule = family->make(io::ScheduleSpec::parse(text), *form.get(), {});
      WordCount words;
      const io::Traffic traffic = schedule->record(io::FastMemory{}, words).traffic();
      CHECK(traffic == schedule->closed_form());
      CHECK(words.loads == traffic.reads.words);
      CHECK(words.stores == traffic.writes.words);
    }
  }
}

TEST_CASE("sparse schedules that declare it move the rows of an index together",
          "[sparse][schedules]") {
  Rng rng(5);
  int declared = 0;
  for (const auto& family : sparse_schedules().families()) {
    if (family->kernel_class().movement != io::RowMovement::whole_index) continue;
    ++declared;
    for (int round = 0; round < 40; ++round) {
      const Problem problem = random_head(rng, *family);
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      const AbiProblem form(problem, 1);
      std::vector<io::WordMove> moves;
      io::WordMoveList list(moves);
      family->make(io::ScheduleSpec::parse(text), *form.get(), {})->record({}, list);
      CHECK(testing::why_not_whole(moves) == "");
    }
  }
  CHECK(declared == 4);
}

}  // namespace
}  // namespace attest::schedules
