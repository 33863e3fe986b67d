#include "certify/score/cheat_score.hpp"

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "certify/worker/testing/plugins.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "cpu/register.hpp"

namespace attest::certify {
namespace {

// Scored once for all cases.
const CheatScore& scored(const fixtures::Cheat& cheat, std::uint64_t seed) {
  static std::map<std::pair<std::string_view, std::uint64_t>, CheatScore> known;
  const auto found = known.find({cheat.name, seed});
  if (found != known.end()) return found->second;
  Registry registry;
  register_cpu(registry);
  const PlainKernels plain{registry.find("cpu/standard"), registry.find("cpu/loss_gradient")};
  CampaignOptions options;
  options.seed = seed;
  return known
      .emplace(std::pair{cheat.name, seed},
               score_cheat(cheat, plain, options, worker::testing::limits(), [] { return false; }))
      .first->second;
}

TEST_CASE("every cheat is caught and named, whatever the seed", "[cheats]") {
  const std::uint64_t seeds = attest::testing::is_nightly() ? 5 : 1;
  // A fifth of the cheats outside nightly, for time.
  std::size_t trial = 0;
  for (const fixtures::Cheat& cheat : fixtures::cheats()) {
    if (!attest::testing::is_turn(trial++, 5)) continue;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const CheatScore& score = scored(cheat, seed);
      INFO(cheat.name << " seed " << seed);
      REQUIRE(score.score.caught);
      const Finding& caught = *score.score.caught;
      INFO(caught.law << ": " << caught.message);
      std::printf("%-30s seed %d: case %2d, %s; %s\n", cheat.name.data(), static_cast<int>(seed),
                  static_cast<int>(score.score.cases), caught.law.c_str(),
                  score.suspicions.empty() ? "-" : score.suspicions[0].statement.c_str());
      CHECK(score.named());
    }
  }
}

TEST_CASE("a cheat that is not named is no success", "[cheats]") {
  const CheatScore& score = scored(fixtures::cheats().front(), 1);
  const nlohmann::json object = cheats_json({score});
  CHECK(object.at("named") == 1);
  CHECK(object.at("cheats").at(0).at("suspicions").at(0).at("name") == score.expected);
  CheatScore unnamed = score;
  unnamed.expected = "another";
  CHECK_FALSE(unnamed.named());
  CHECK(cheats_json({unnamed}).at("named") == 0);
  CHECK(cheats_json({unnamed}).at("caught") == 1);
  unnamed.score.caught.reset();
  CHECK(cheats_json({unnamed}).at("caught") == 0);
}

TEST_CASE("cheats have names of their own", "[cheats]") {
  std::set<std::string_view> names;
  for (const fixtures::Cheat& cheat : fixtures::cheats()) {
    CHECK(names.insert(cheat.name).second);
    CHECK(fixtures::cheating_kernel(cheat).description.name == cheat.name);
  }
  CHECK(names.size() >= 14);
}

}  // namespace
}  // namespace attest::certify
