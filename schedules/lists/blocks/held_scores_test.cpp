#include "schedules/lists/blocks/held_scores.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "core/testing/catch.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

io::Words words_in(std::int64_t fast_words, const std::string& text, const char* mask) {
  const Problem problem = Problem::parse(std::string("sq=512,d=64,mask=") + mask);
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(fast_words);
  const auto schedule = testing::sparse_schedules().make(text, *form.get(), capacity);
  CHECK(schedule->closed_form().peak.words <= fast_words);
  return schedule->closed_form().total_words();
}

// Rows of five blocks of 16 keys: not all scores of 16 queries fit, and fewer queries meet as many
// keys.
TEST_CASE("pieces of listed tiles move fewer words than all of them", "[sparse][schedules]") {
  const auto words = [](const char* text) { return words_in(1024, text, "blockband_16_2"); };
  CHECK(words("block_held_scores") < words("block_held_scores:bq=8,bk=16,held=5"));
  CHECK(words("block_held_scores") <= words("block_held_scores:bq=16,bk=16,held=3"));
  CHECK(words("block_held_scores") < words("block_flash2"));
}

// A score that is no number must not be lost as the maximum of its row: NaN beside masked pairs.
TEST_CASE("a row of NaN stays NaN from piece to piece", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=4,sk=8,d=2,mask=block_2_100_1");
  Call call(problem, 5, {Memory::spelled, 1, 1, Dlse::absent});
  call.Q.view().set(std::numeric_limits<double>::quiet_NaN(), 0);
  const BoundSchedule<BlockHeldScores> schedule({2, 2, 1}, *call.form.get());
  schedule.run(call.forward_arguments());
  CHECK(std::isnan(call.LSE.view()(0, 0, 0)));
  CHECK(std::isnan(call.O.view()(0, 0, 0, 0)));
  CHECK_FALSE(std::isnan(call.O.view()(0, 1, 0, 0)));
  CHECK_FALSE(std::isnan(call.O.view()(0, 0, 1, 0)));
}

}  // namespace
}  // namespace attest::schedules
