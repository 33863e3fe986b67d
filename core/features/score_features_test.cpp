#include "core/features/score_features.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <set>

#include "core/features/claim_words.hpp"
#include "core/testing/abi_enum.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

using testing::abi_header;
using testing::differing;
using testing::edited;
using testing::Enumerator;
using testing::enumerators;

// Says what of a row does not go with the rest of it; "" for a sound one.
std::string fault(const ScoreFeature& feature) {
  const Problem plain = Problem::parse("hq=2,sq=3,d=4");
  const std::string with = plain.to_string() + "," + feature.word + "=" + feature.example;
  if (std::popcount(feature.claim) != 1) return "claim";
  Problem p = Problem::parse(with);
  if (feature.present(plain) || !feature.present(p)) return "present";
  const AbiProblem call(p, 1, feature.claim), without(plain, 1, feature.claim);
  if (feature.asked != nullptr && (feature.asked(*without.get()) || !feature.asked(*call.get()))) {
    return "asked";
  }
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
  std::uint32_t claims = 0, in_scores = 0;
  for (const ScoreFeature& feature : score_features()) {
    INFO(feature.word);
    CHECK(fault(feature) == "");
    CHECK((claims & feature.claim) == 0);
    claims |= feature.claim;
    if (feature.in_scores) in_scores |= feature.claim;
    CHECK_FALSE((feature.in_scores && (feature.in_storage || feature.in_mask)));
    for (const char* kind : feature.kinds) {
      Problem p = Problem::parse("sq=3,d=4");
      feature.parse(p, kind);
      CHECK(feature.value(p) == kind);
    }
  }
  CHECK(in_scores == score_feature_claims());
  CHECK(claims == (in_scores | ATTEST_SINKS | ATTEST_PAGED_KV | ATTEST_BIAS | ATTEST_HEAD_MASK |
                   ATTEST_QUERY_LENGTHS | ATTEST_SHARED_KV));
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

using Words = std::vector<std::pair<std::uint32_t, const char*>>;

// Returns the words that are not those of the header's claims, or share a bit with one before.
std::set<std::string> objections(const Words& table, const std::string& header) {
  std::multiset<Enumerator> words, claims;
  for (const auto& [bit, word] : table) words.emplace(bit, word);
  for (const auto& [bit, name] : enumerators(header, "enum { /* attest_description.features")) {
    std::string word = name.substr(std::string("ATTEST_").size());
    for (char& letter : word) letter = static_cast<char>(std::tolower(letter));
    claims.emplace(bit, word);
  }
  std::set<std::string> wrong = differing(words, claims);
  std::uint32_t bits = 0;
  for (const auto& [bit, word] : table) {
    if (!std::has_single_bit(bit) || (bits & bit) != 0) wrong.insert(word);
    bits |= bit;
  }
  return wrong;
}

TEST_CASE("each bit of the claims has one word, each word one bit", "[score_features]") {
  CHECK(objections(feature_words(), abi_header()).empty());
  CHECK(std::popcount(known_features()) == static_cast<int>(feature_words().size()));
}

TEST_CASE("words that are not those of the claims are refused", "[score_features]") {
  const std::string header = abi_header();
  const std::uint32_t known = known_features(), free_bit = ~known & (known + 1);
  const auto refused = [&](const auto& spoil, const std::string& of, const std::string& word) {
    Words words = feature_words();
    spoil(words);
    CHECK(objections(words, of) == std::set{word});
  };
  const auto add = [](std::uint32_t bit, const char* word) {
    return [=](Words& words) { words.emplace_back(bit, word); };
  };
  const auto unspoiled = [](Words& /*words*/) {};
  refused(add(free_bit, "sinks"), header, "sinks");
  refused(add(ATTEST_SOFTCAP, "cap"), header, "cap");
  refused(add(free_bit, "softcap"), header, "softcap");
  refused([](Words& words) { words.pop_back(); }, header, feature_words().back().second);
  const std::string last = "ATTEST_LAYOUT_BITS = 1 << 20", csr = "ATTEST_CSR_MASK = 1 << 18";
  refused(unspoiled, edited(header, last, last + ", ATTEST_SINKS = 1 << 21"), "sinks");
  const auto exchange = [](Words& words) {
    std::replace_if(
        words.begin(), words.end(), [](const auto& word) { return word.first == ATTEST_CSR_MASK; },
        Words::value_type{ATTEST_BLOCK_MASK, "csr_mask"});
  };
  refused(exchange, edited(header, csr, "ATTEST_CSR_MASK = 1 << 17"), "csr_mask");
  CHECK_THROWS_WITH(
      objections(feature_words(), edited(header, last, "ATTEST_LAYOUT_BITS = 0x100000")),
      Catch::Contains("not all of an enum is read"));
}

}  // namespace
}  // namespace attest
