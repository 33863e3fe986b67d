// Schedules through caches: recorded word by word, replayed as addresses.
#include <cstdio>
#include <string>

#include "core/error.hpp"
#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/replay/cache.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

struct Run {
  io::AccessTrace trace;
  io::Traffic traffic;
};

Run record(const std::string& schedule, const Problem& problem) {
  const AbiProblem form(problem, 1);
  const auto made = dense_schedules().make(schedule, *form.get(), io::FastMemory{});
  constexpr std::size_t kMost = 10000000;
  io::AccessBuilder builder(kMost);
  Run run;
  run.traffic = made->record(io::FastMemory{}, builder).traffic();
  CHECK(run.traffic == made->closed_form());
  run.trace = std::move(builder).finish();
  return run;
}

io::CacheTraffic replay(const Run& run, io::CacheSpec::Kind kind, std::int64_t words,
                        std::int64_t line_words = 1) {
  const std::int64_t whole = io::tiles(words, line_words) * line_words;
  return io::replay(run.trace, {kind, whole, 1, line_words});
}

Problem random_head(Rng& rng, Direction direction) {
  const auto size = [&rng] { return std::to_string(rng.between(1, 12)); };
  if (direction == Direction::loss_gradient) {
    const std::string n = size();
    return Problem::parse("sq=" + n + ",d=" + size());
  }
  static const char* const kMasks[] = {"none", "causal_tl", "causal_br", "window_2_1"};
  std::string problem = std::string("mask=") + kMasks[rng.between(0, 3)];
  for (const char* name : {"sq", "sk", "d", "dv"}) problem += "," + (name + ("=" + size()));
  return Problem::parse(problem);
}

TEST_CASE("recordings of every schedule have the counted words", "[cpu][schedules][replay]") {
  constexpr int kRounds = 25;
  Rng rng(4);
  for (const auto& family : dense_schedules().families()) {
    for (int round = 0; round < kRounds; ++round) {
      const Problem problem = random_head(rng, family->direction());
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      const Run run = record(text, problem);
      const std::int64_t peak = run.traffic.peak.words.value();
      const io::CacheTraffic belady = replay(run, io::CacheSpec::Kind::belady, peak);
      // A cache that knows the future reads no more than the schedule, in as many words.
      CHECK(belady.read_words() <= run.traffic.reads.words);
      const io::CacheTraffic lru = replay(run, io::CacheSpec::Kind::lru, peak);
      CHECK(lru.read_words() >= belady.read_words());
      // With room for everything each word comes once.
      const io::CacheTraffic all = replay(run, io::CacheSpec::Kind::lru, run.trace.words);
      CHECK(all.read_words() <= belady.read_words());
      CHECK(all.read_words() <=
            replay(run, io::CacheSpec::Kind::lru, run.trace.words, 8).read_words());
    }
  }
}

TEST_CASE("least recently used thrashes at flash2's peak", "[cpu][schedules][replay]") {
  const Run run = record("flash2:bq=16,bk=1", Problem::parse("sq=64,d=8"));
  const std::int64_t peak = run.traffic.peak.words.value();
  const io::Words reads = run.traffic.reads.words;
  CHECK(reads == 64 * 8 + (64 / 16) * 2 * 64 * 8);
  const auto lru = [&](std::int64_t words, std::int64_t line = 1) {
    return replay(run, io::CacheSpec::Kind::lru, words, line).read_words();
  };
  std::printf("flash2 reads %lld words in %lld; lru:", static_cast<long long>(reads.value()),
              static_cast<long long>(peak));
  for (const std::int64_t words : {peak * 3 / 4, peak, peak * 11 / 10, peak * 5 / 4, 2 * peak}) {
    std::printf(" %lld in %lld", static_cast<long long>(lru(words).value()),
                static_cast<long long>(words));
  }
  std::printf("\n");
  CHECK(lru(peak) > 10 * reads);
  for (const std::int64_t words : {peak * 11 / 10, peak * 5 / 4, 2 * peak}) {
    CHECK(lru(words) == reads);
    for (const std::int64_t line : {2, 4, 8}) CHECK(lru(words, line) == reads);
  }
}

TEST_CASE("only one head is recorded", "[cpu][schedules][replay]") {
  CHECK_THROWS_WITH(record("flash2:bq=1,bk=1", Problem::parse("hq=2,sq=4,d=2")),
                    Catch::Contains("a trace has one head; pass b=1,hq=1"));
  CHECK_THROWS_AS(record("flash2:bq=1,bk=1", Problem::parse("b=2,sq=4,d=2")), InvalidProblem);
}

}  // namespace
}  // namespace attest::schedules
