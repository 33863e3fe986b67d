#include "certify/regime/regime.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "certify/regime/regime_table.hpp"
#include "certify/regime/statements.hpp"
#include "certify/testing/schema.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

TEST_CASE("both sides of d_k d_v", "[regime]") {
  const WordType f32 = find_word_type("f32"), fp8 = find_word_type("fp8");
  const CacheSize below = cache_size(4 * 64 * 64 - 1, f32, 64, 64);
  CHECK(below.fast_words == 64 * 64 - 1);
  CHECK(below.regime == CacheRegime::small);
  const CacheSize at = cache_size(4 * 64 * 64, f32, 64, 64);
  CHECK(at.ratio == 1);
  CHECK(at.regime == CacheRegime::large);
  CHECK(cache_size(576 * 512, fp8, 576, 512).ratio == 1);
  CHECK_THROWS_WITH(cache_size(3, f32, 8, 8),
                    Catch::Equals("fast_bytes: 3, but one word of f32 takes 4"));
  CHECK_THROWS_WITH(cache_size(64, f32, 8, 0), Catch::Contains("at least 1"));
}

TEST_CASE("unknown names have a suggestion", "[regime]") {
  CHECK_THROWS_WITH(find_word_type("bf17"), Catch::Contains("did you mean 'bf16'?"));
  CHECK_THROWS_WITH(places_of({"h1000"}), Catch::Contains("did you mean 'h100'?"));
  CHECK_THROWS_WITH(shapes_of({"gpt-2"}), Catch::Contains("did you mean 'gpt2'?"));
  CHECK(places_of({"H200", "a100"}).front().device == "h200");
  CHECK(shapes_of({}).size() > 10);
}

TEST_CASE("a prediction is the best schedule's count", "[regime]") {
  const io::ScheduleRegistry& schedules = dense_schedules();
  const Problem problem = Problem::parse("hq=2,sq=256,d=16,mask=causal_br");
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    for (const std::int64_t fast_words : {128, 256, 2048}) {
      const Prediction prediction = predict(schedules, direction, problem, fast_words);
      INFO(name(direction) << " " << fast_words);
      REQUIRE(prediction.refusal.empty());
      const AbiProblem form(problem, 1);
      const auto capacity = io::FastMemory::of_words(fast_words);
      const auto schedule = schedules.make(prediction.schedule, *form.get(), capacity);
      CHECK(schedule->dry_count(capacity).traffic().total_words().value() == prediction.words);
      REQUIRE(prediction.lower);
      CHECK(prediction.lower->words <= prediction.words);
      REQUIRE(prediction.ratio);
      CHECK(*prediction.ratio >= 1);
    }
  }
  CHECK_THAT(predict(schedules, Direction::forward, problem, 3).refusal,
             Catch::Contains("no forward schedule fits"));
}

// Schedules over lists are candidates, and the bounds those of the pattern.
TEST_CASE("a prediction on a pattern is of its pairs", "[regime]") {
  io::ScheduleRegistry schedules;
  register_dense_schedules(schedules);
  register_list_schedules(schedules);
  const Prediction strided = predict(schedules, Direction::forward,
                                     Problem::parse("sq=128,d=16,mask=dilated_inf_inf_8"), 256),
                   full =
                       predict(schedules, Direction::forward, Problem::parse("sq=128,d=16"), 256);
  CHECK(strided.schedule == "rolling_queries:bq=6,bk=1,order=grouped");
  CHECK(strided.words < full.words);
  REQUIRE(strided.lower);
  CHECK(strided.lower->words < full.lower->words);
  CHECK(strided.lower->words <= strided.words);
  CHECK(predict(schedules, Direction::backward, Problem::parse("sq=128,d=16,mask=blockband_16_0"),
                256)
            .schedule == "block_held_pairs:bq=16,bk=16,iq=16,ik=16,held=220");
}

TEST_CASE("a group that sees every key is rows of one head", "[regime]") {
  const Problem decode = Problem::parse("b=3,hq=8,hkv=2,sq=1,sk=100,d=16,mask=causal_br");
  CHECK(with_groups_as_rows(decode).to_string() ==
        Problem::parse("b=3,hq=2,hkv=2,sq=4,sk=100,d=16").to_string());
  for (const char* text :
       {"hq=8,hkv=2,sq=2,sk=100,d=16,mask=causal_br", "hq=8,hkv=2,sq=1,sk=100,d=16,mask=causal_tl",
        "hq=8,hkv=2,sq=1,sk=100,d=16,alibi=standard"}) {
    INFO(text);
    CHECK(with_groups_as_rows(Problem::parse(text)).to_string() ==
          Problem::parse(text).to_string());
  }
  const io::ScheduleRegistry& schedules = dense_schedules();
  const Prediction apart =
      predict(schedules, Direction::forward, Problem::parse("hq=8,sq=1,sk=100,d=16"), 4096);
  const Prediction together =
      predict(schedules, Direction::forward, Problem::parse("hq=8,hkv=1,sq=1,sk=100,d=16"), 4096);
  CHECK(together.words < apart.words / 4);
  CHECK(*together.ratio >= 1);
}

TEST_CASE("where V is a part of K the bound counts distinct words", "[regime]") {
  const io::ScheduleRegistry& schedules = dense_schedules();
  const RegimeShape latent = shapes_of({"deepseek-v3-latent"}).front();
  CHECK(latent.storage == io::Storage::key_is_value);
  const Prediction shared = predict(schedules, Direction::forward, latent.problem, 247808,
                                    latent.storage),
                   apart = predict(schedules, Direction::forward, latent.problem, 247808);
  CHECK(shared.words == apart.words);
  REQUIRE(shared.lower);
  CHECK(shared.lower->words < apart.lower->words);
  CHECK(*shared.ratio > 1.5);
}

// The papers' claim, seen in the choice of schedule: square tiles below d^2, whole rows above.
TEST_CASE("the best schedule changes with the regime", "[regime]") {
  const io::ScheduleRegistry& schedules = dense_schedules();
  const Problem problem = Problem::parse("sq=1024,d=64");
  const auto best = [&](std::int64_t fast_words) {
    const std::string text = predict(schedules, Direction::forward, problem, fast_words).schedule;
    return text.substr(0, text.find(':'));
  };
  CHECK(best(64 * 64 / 16) == "rank1_tiled");
  CHECK(best(64 * 64 / 2) == "hybrid");
  const std::string large = best(8 * 64 * 64);
  INFO(large);
  CHECK((large == "flash2" || large == "flash2_row" || large == "rolling_queries"));
}

TEST_CASE("statements are held against every size, head dimension and width", "[regime]") {
  int right = 0, wrong = 0;
  for (const Statement& statement : statements()) {
    const std::vector<Figure> list = figures(statement);
    CHECK(list.size() ==
          statement.places.size() * statement.head_dims.size() * word_types().size());
    for (const Figure& figure : list) {
      const double ratio = figure.size.ratio;
      CHECK((figure.holds == Figure::Holds::yes) ==
            (ratio >= statement.at_least && ratio < statement.below));
      (figure.holds == Figure::Holds::yes ? right : wrong) += 1;
    }
  }
  CHECK(right > 0);
  CHECK(wrong > 0);
}

TEST_CASE("the table as JSON has every required field of the schema", "[regime]") {
  RegimeTable table;
  table.places = {places_of({"gtx1060"}).front(), {"", "", {"fast", "slow", "block", 8}}};
  table.shapes = {{"", "", io::Storage::disjoint, Problem::parse("sq=64,d=16")}};
  table.words = word_types();
  table.directions = {Direction::forward, Direction::backward};
  std::uint64_t last = 0;
  const std::vector<RegimeRow> rows = regime_rows(
      dense_schedules(), table, [&](std::uint64_t done, std::uint64_t) { last = done; });
  REQUIRE(rows.size() == 2 * 3);
  CHECK(last == rows.size());
  nlohmann::json object = regime_json(rows);
  object["version"] = "test";
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_REGIME_SCHEMA));
  check_against(object, schema);
  const nlohmann::json& two_words = object["rows"][word_types().size()];
  CHECK(two_words["fast_words"] == 2);
  CHECK(two_words["predictions"][0].contains("refusal"));
}

}  // namespace
}  // namespace attest::certify
