#include "core/features/score_features.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/features/problem_values.hpp"
#include "core/text/shortest.hpp"

namespace attest {
namespace {

// A feature is absent where its field is that of a plain problem, in a call where it is zero.
template <auto Field>
bool present(const Problem& p) {
  return p.*Field != Problem{}.*Field;
}

template <auto Field>
bool asked(const attest_problem& p) {
  return p.*Field != attest_problem{}.*Field;
}

template <auto Field>
void remove(Problem& p) {
  p.*Field = Problem{}.*Field;
}

template <auto Field>
void follow(Problem& p, const Problem& was, const Problem& is) {
  if (p.*Field == was.*Field) p.*Field = is.*Field;
}

void validate_softcap(const Problem& p) {
  if (!std::isfinite(p.softcap) || p.softcap < 0) {
    throw InvalidProblem("softcap is " + shortest(p.softcap) +
                         "; it must be finite and >= 0 (0 = none)");
  }
  if (p.dtype != DType::f64) require_normal_float32("softcap", p.softcap, "0 (none)");
}

// A choice, or drawn_ and a seed.
template <typename Enum>
std::string spelled(Enum choice, std::uint64_t seed) {
  const std::string word(name(choice));
  return choice == Enum::drawn ? word + "_" + std::to_string(seed) : word;
}

template <typename Enum, std::size_t N>
Enum parsed(const std::string& key, const std::string& value, const std::array<Enum, N>& choices,
            std::uint64_t& seed) {
  constexpr std::string_view kDrawn = "drawn_";
  if (value.rfind(kDrawn, 0) != 0) return choice_of(key, value, choices);
  const char *const begin = value.data() + kDrawn.size(), *const last = value.data() + value.size();
  const auto [end, error] = std::from_chars(begin, last, seed);
  if (error != std::errc() || end != last) {
    throw InvalidProblem("problem: " + key + "=" + value +
                         " needs a seed below 2^64 after drawn_; write for example " + key +
                         "=drawn_7");
  }
  return Enum::drawn;
}

void parse_slopes(Problem& p, const std::string& value) {
  p.alibi = parsed("alibi", value, std::array{Alibi::none, Alibi::standard}, p.alibi_seed);
}

void validate_sinks(const Problem& p) {
  if (p.sinks != Sinks::given) return;
  if (p.given_sinks.size() != static_cast<std::size_t>(p.num_heads_q)) {
    throw InvalidProblem("sinks: " + std::to_string(p.given_sinks.size()) +
                         " are given; there must be one for each of " +
                         std::to_string(p.num_heads_q) + " query heads");
  }
  for (std::size_t h = 0; h < p.given_sinks.size(); ++h) {
    const float sink = p.given_sinks[h];
    if (sink < std::numeric_limits<float>::infinity()) continue;
    throw InvalidProblem("sinks: that of head " + std::to_string(h) + " is " + shortest(sink) +
                         "; it must be a number, or -inf (none)");
  }
}

void parse_sinks(Problem& p, const std::string& value) {
  p.sinks = parsed("sinks", value, std::array{Sinks::none, Sinks::off}, p.sinks_seed);
}

constexpr std::array kFeatures{
    ScoreFeature{.claim = ATTEST_SOFTCAP,
                 .word = "softcap",
                 .name = "softcap",
                 .the_feature = "the softcap",
                 .example = "2",
                 .additive = false,
                 .in_scores = true,
                 .present = present<&Problem::softcap>,
                 .asked = asked<&attest_problem::softcap>,
                 .remove = remove<&Problem::softcap>,
                 .follow = follow<&Problem::softcap>,
                 .value = [](const Problem& p) { return shortest(p.softcap); },
                 .parse = [](Problem& p,
                             const std::string& value) { p.softcap = real_of("softcap", value); },
                 .validate = validate_softcap},
    ScoreFeature{.claim = ATTEST_ALIBI,
                 .word = "alibi",
                 .name = "ALiBi",
                 .the_feature = "ALiBi",
                 .example = "standard",
                 .additive = true,
                 .in_scores = true,
                 .present = present<&Problem::alibi>,
                 .asked = asked<&attest_problem::alibi_slopes>,
                 .remove = remove<&Problem::alibi>,
                 .follow = follow<&Problem::alibi>,
                 .value = [](const Problem& p) { return spelled(p.alibi, p.alibi_seed); },
                 .parse = parse_slopes,
                 .validate = [](const Problem& /*problem*/) {}},
    ScoreFeature{.claim = ATTEST_SINKS,
                 .word = "sinks",
                 .name = "sinks",
                 .the_feature = "the sinks",
                 .example = "drawn_7",
                 .additive = false,
                 .in_scores = false,
                 .present = present<&Problem::sinks>,
                 .asked = asked<&attest_problem::sinks>,
                 .remove = remove<&Problem::sinks>,
                 .follow = follow<&Problem::sinks>,
                 .value = [](const Problem& p) { return spelled(p.sinks, p.sinks_seed); },
                 .parse = parse_sinks,
                 .validate = validate_sinks},
};

}  // namespace

std::span<const ScoreFeature> score_features() { return kFeatures; }

std::uint32_t score_feature_claims() {
  std::uint32_t claims = 0;
  for (const ScoreFeature& feature : kFeatures) claims |= feature.in_scores ? feature.claim : 0;
  return claims;
}

void remove_score_features(Problem& problem) {
  for (const ScoreFeature& feature : kFeatures) feature.remove(problem);
}

void remove_features_not_additive(Problem& problem) {
  for (const ScoreFeature& feature : kFeatures) {
    if (!feature.additive) feature.remove(problem);
  }
}

bool asks_score_feature(const attest_problem& problem) {
  bool asks = false;
  for (const ScoreFeature& feature : kFeatures) asks = asks || feature.asked(problem);
  return asks;
}

}  // namespace attest
