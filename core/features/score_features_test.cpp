#include "core/features/score_features.hpp"

#include <bit>
#include <set>

#include "core/features/claim_words.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

// Says what of a row does not go with the rest of it; "" for a sound one.
std::string fault(const ScoreFeature& feature) {
  const Problem plain = Problem::parse("hq=2,sq=3,d=4");
  const std::string with = plain.to_string() + "," + feature.word + "=" + feature.example;
  if (std::popcount(feature.claim) != 1) return "claim";
  Problem p = Problem::parse(with);
  if (feature.present(plain) || !feature.present(p)) return "present";
  const AbiProblem call(p, 1, feature.claim), without(plain, 1, feature.claim);
  if (feature.asked(*without.get()) || !feature.asked(*call.get())) return "asked";
  if (feature.value(p) != feature.example || p.to_string() != with) return "value";
  Problem earlier = p;
  feature.follow(earlier, p, plain);
  if (feature.present(earlier)) return "follow";
  feature.follow(earlier, p, p);
  if (feature.present(earlier)) return "follow";
  feature.remove(p);
  return p.to_string() == plain.to_string() ? "" : "remove";
}

TEST_CASE("what a feature's row says goes together", "[score_features]") {
  std::uint32_t claims = 0;
  for (const ScoreFeature& feature : score_features()) {
    INFO(feature.word);
    CHECK(fault(feature) == "");
    CHECK((claims & feature.claim) == 0);
    claims |= feature.claim;
  }
  CHECK(claims == score_feature_claims());
}

TEST_CASE("a row with a part of another is refused", "[score_features]") {
  const ScoreFeature& other = score_features()[1];
  const auto refused = [&](const auto& spoil, const std::string& part) {
    ScoreFeature spoiled = score_features()[0];
    spoil(spoiled);
    CHECK(fault(spoiled) == part);
  };
  refused([](ScoreFeature& f) { f.claim = ATTEST_SOFTCAP | ATTEST_ALIBI; }, "claim");
  refused([&](ScoreFeature& f) { f.present = other.present; }, "present");
  refused([&](ScoreFeature& f) { f.asked = other.asked; }, "asked");
  refused([&](ScoreFeature& f) { f.value = other.value; }, "value");
  refused([&](ScoreFeature& f) { f.follow = other.follow; }, "follow");
  refused([&](ScoreFeature& f) { f.remove = other.remove; }, "remove");
}

TEST_CASE("features are removed, all or those that are not additive", "[score_features]") {
  Problem p = Problem::parse("hq=2,sq=3,d=4,softcap=3,alibi=standard");
  remove_features_not_additive(p);
  CHECK(p.softcap == 0);
  CHECK(p.alibi == Alibi::standard);
  p.softcap = 3;
  remove_score_features(p);
  CHECK(p.to_string() == Problem::parse("hq=2,sq=3,d=4").to_string());
}

TEST_CASE("each bit of the claims has one word, each word one bit", "[score_features]") {
  std::set<std::string> words;
  std::uint32_t bits = 0;
  for (const auto& [bit, word] : feature_words()) {
    INFO(word);
    CHECK(std::popcount(bit) == 1);
    CHECK((bits & bit) == 0);
    CHECK(words.insert(word).second);
    bits |= bit;
  }
  CHECK(bits == known_features());
  // Bits follow one another: one of the header that has no word leaves a hole.
  CHECK(std::has_single_bit(known_features() + 1));
}

}  // namespace
}  // namespace attest
