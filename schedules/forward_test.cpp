// Every forward schedule on random problems: its words against its closed form, its outputs against
// the definition written out in cpu/testing/naive.
#include <cstdio>
#include <set>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/kernel_call.hpp"
#include "cpu/testing/judged_call.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

constexpr int kCases = 60;  // for each schedule

// Schedules whose papers write no LSE leave it alone.
bool writes_lse(const io::ScheduleSpec& spec) {
  if (spec.name == "standard" || spec.name == "flash1") return false;
  for (const auto& [key, value] : spec.parameters) {
    if (value == "paper") return false;
  }
  return true;
}

TEST_CASE("closed forms of forward schedules", "[cpu][schedules]") {
  Rng rng(20261121);
  for (const auto& family : dense_schedules().families()) {
    if (family->direction() != Direction::forward) continue;
    double worst = 0;
    for (int round = 0; round < kCases; ++round) {
      const Problem problem = testing::random_problem(rng, Direction::forward);
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      Call call(problem, rng.bits64(), {Memory::scattered, 1, 1, Dlse::absent});
      const auto schedule = dense_schedules().make(text, *call.form.get(), io::FastMemory{});
      CHECK(schedule->spec().to_string() == text);
      testing::check_counts(*schedule, call.forward_arguments());
      const cpu::testing::NaiveForward expected = cpu::testing::naive_forward(call);
      worst = std::max(worst, cpu::testing::worst_ratio(call.O.view(), expected.O));
      if (writes_lse(schedule->spec())) {
        worst = std::max(worst, cpu::testing::worst_ratio(call.LSE.view(), expected.LSE));
      } else {
        CHECK(call.LSE.untouched());
      }
      REQUIRE(worst <= 1);
    }
    std::printf("%-16s worst error / bound %.3f\n", family->name().c_str(), worst);
  }
}

TEST_CASE("sixteen-bit inputs count two bytes", "[cpu][schedules]") {
  Rng rng(5);
  for (const auto& family : dense_schedules().families()) {
    if (family->direction() != Direction::forward) continue;
    for (int round = 0; round < 10; ++round) {
      Problem problem = testing::random_problem(rng, Direction::forward);
      problem.dtype = round % 2 == 0 ? DType::bf16 : DType::f16;
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      Call call(problem, rng.bits64(), {Memory::spelled, 1, 1, Dlse::absent});
      const auto schedule = dense_schedules().make(text, *call.form.get(), io::FastMemory{});
      testing::check_counts(*schedule, call.forward_arguments());
    }
  }
}

TEST_CASE("tiles left open are chosen to fit", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=300,sk=200,d=16");
  const AbiProblem form(problem, 1);
  for (const auto& family : dense_schedules().families()) {
    if (family->direction() != Direction::forward) continue;
    INFO(family->name());
    io::Words before = 0;
    for (const std::int64_t words : {8000, 4000, 2000, 1000}) {
      const auto capacity = io::FastMemory::of_words(words);
      const auto schedule = family->make({family->name(), {}}, *form.get(), capacity);
      const io::Traffic traffic = schedule->closed_form();
      CHECK(traffic.peak.words <= words);
      CHECK(schedule->dry_count(capacity).traffic() == traffic);
      CHECK(traffic.total_words() >= before);  // less memory, not fewer words
      before = traffic.total_words();
    }
    CHECK_THROWS_WITH(family->make({family->name(), {}}, *form.get(), io::FastMemory::of_words(2)),
                      Catch::Contains("fast_words: 2, but " + family->name() + ":") &&
                          Catch::Contains(", the least that works; give more"));
  }
}

TEST_CASE("the least that works works", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=30,sk=20,d=5,dv=7");
  const AbiProblem form(problem, 1);
  for (const auto& family : dense_schedules().families()) {
    if (family->direction() != Direction::forward) continue;
    std::int64_t least = 0;
    try {
      family->make({family->name(), {}}, *form.get(), io::FastMemory::of_words(1));
    } catch (const io::CapacityExceeded& error) {
      const std::string text = error.what();
      least = std::stoll(text.substr(text.find(" needs ") + 7));
    }
    INFO(family->name() << " " << least);
    REQUIRE(least > 1);
    CHECK_NOTHROW(family->make({family->name(), {}}, *form.get(), io::FastMemory::of_words(least)));
    CHECK_THROWS_AS(
        family->make({family->name(), {}}, *form.get(), io::FastMemory::of_words(least - 1)),
        io::CapacityExceeded);
  }
}

TEST_CASE("bad schedules are refused", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=30,sk=20,d=5");
  const AbiProblem form(problem, 1);
  const auto make = [&](const std::string& text, std::int64_t words) {
    return dense_schedules().make(text, *form.get(), io::FastMemory::of_words(words));
  };
  CHECK_THROWS_WITH(make("flash2:bq=0", 1000),
                    "schedule: flash2: bq=0, but a tile needs a whole number from 1 to "
                    "9223372036854775807");
  CHECK_THROWS_WITH(make("flash2:bq=9223372036854775808", 1000),
                    Catch::Contains("bq=9223372036854775808, but a tile needs a whole number"));
  CHECK_THROWS_WITH(
      make("flash2:bq=4,bkk=8", 1000),
      "schedule: flash2 has no parameter 'bkk'; did you mean 'bk'? (parameters: bq bk)");
  CHECK_THROWS_WITH(make("flash2:bq=30,bk=20", 1000),
                    "fast_words: 1000, but flash2:bq=30,bk=20 needs 1060; give more or smaller "
                    "tiles");
  CHECK_THROWS_WITH(make("flash2:bq=1,bk=1", 10),
                    Catch::Contains("needs 18; no tiles fit, give more"));
  CHECK_THROWS_WITH(make("square_tiled:variant=foo", 1000),
                    Catch::Contains("variant=foo is unknown (choices: stable paper)"));
  CHECK_THROWS_AS(make("flash2:bq=1x", 1000), InvalidProblem);
  CHECK_THROWS_AS(make("flash3", 1000), InvalidProblem);
}

// FlashAttention's own rule takes more than there is below about 8 d^2 words.
TEST_CASE("tile rules of flash1", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1024,sk=1024,d=64");
  const AbiProblem form(problem, 1);
  const std::int64_t square = 64 * 64;
  const auto make = [&](const std::string& text, std::int64_t words) {
    return dense_schedules().make(text, *form.get(), io::FastMemory::of_words(words));
  };
  CHECK(make("flash1:rule=paper", 16 * square)->spec().to_string() == "flash1:bq=64,bk=256");
  CHECK_THROWS_WITH(make("flash1:rule=paper", 4 * square),
                    "fast_words: 16384, but flash1:bq=64,bk=64 needs 20609; give more or smaller "
                    "tiles");
  for (const std::int64_t words : {square / 4, square, 4 * square, 16 * square}) {
    CHECK(make("flash1:rule=fit", words)->closed_form().peak.words <= words);
  }
  CHECK_THROWS_WITH(make("flash1:rule=pape", 16 * square),
                    "schedule: flash1: rule=pape is unknown; did you mean 'paper'? (rules: paper "
                    "fit)");
  CHECK_THROWS_WITH(make("flash1:rule=fit,bq=4", 16 * square),
                    "schedule: flash1: rule=fit chooses bq and bk; give one or the other");
  CHECK_THROWS_WITH(dense_schedules().make("flash1:rule=fit", *form.get(), io::FastMemory{}),
                    "schedule: flash1: rule=fit needs the size of fast memory");
}

}  // namespace
}  // namespace attest::schedules
