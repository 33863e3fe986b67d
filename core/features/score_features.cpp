#include "core/features/score_features.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/features/pages.hpp"
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
  if (value.rfind(kDrawn, 0) != 0) {
    std::vector<std::string> names;
    for (const Enum choice : choices) names.emplace_back(name(choice));
    names.emplace_back("drawn_SEED");  // for the message
    return choices[place_of(key, value, names)];
  }
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

// Refuses more pairs than are looked at one by one.
void require_few_pairs(const std::string& word, const Problem& p) {
  constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;
  std::int64_t pairs = 1;
  for (const std::int64_t extent : {p.batch, p.num_heads_q, p.seqlen_q, p.seqlen_k}) {
    if (extent != 0 && pairs > kMostPairs / extent) {
      throw InvalidProblem(word +
                           ": more than 2^24 pairs of a query and a key, of all heads; make the "
                           "problem smaller");
    }
    pairs *= extent;
  }
}

// Refuses values whose extents are not the axes' own.
void require_extents(const std::string& word, const std::array<std::int64_t, 4>& extents,
                     std::size_t values, const std::vector<Axis>& axes) {
  std::int64_t elements = 1;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    elements *= axes[axis].extent;
    if (extents[axis] == axes[axis].extent) continue;
    throw InvalidProblem(word + ": " + std::string(axes[axis].name) + " is " +
                         std::to_string(extents[axis]) + "; it must be " +
                         std::to_string(axes[axis].extent));
  }
  if (values != static_cast<std::size_t>(elements)) {
    throw InvalidProblem(word + ": " + std::to_string(values) +
                         " values are given; there must be " + std::to_string(elements));
  }
}

// The bounds of dBias hold a few numbers for each pair.
void validate_bias(const Problem& p) {
  if (p.bias.kind == Bias::Kind::none) return;
  require_few_pairs("bias", p);
  if (p.bias.kind != Bias::Kind::given) return;
  const GivenBias& given = *p.bias.given;
  require_extents("bias", given.extents, given.values.size(), p.bias_axes());
  for (const double value : given.values) {
    if (value < std::numeric_limits<double>::infinity()) continue;
    throw InvalidProblem("bias: a value is " + shortest(value) +
                         "; it must be a number, or -inf (not visible)");
  }
}

void validate_head_mask(const Problem& p) {
  if (p.head_mask.kind == HeadMask::Kind::none) return;
  require_few_pairs("head_mask", p);
  if (p.head_mask.kind != HeadMask::Kind::given) return;
  const GivenHeadMask& given = *p.head_mask.given;
  require_extents("head_mask", given.extents, given.visible.size(), p.head_mask_axes());
}

void validate_query_lengths(const Problem& p) {
  if (p.query_lengths.kind != QueryLengths::Kind::given) return;
  const std::vector<std::int32_t>& given = p.query_lengths.given;
  if (given.size() != static_cast<std::size_t>(p.batch)) {
    throw InvalidProblem("query_lengths: " + std::to_string(given.size()) +
                         " are given; there must be one for each of " + std::to_string(p.batch) +
                         " batch entries");
  }
  if (p.mask.packed() && p.mask.cu_seqlens_q.size() != given.size() + 1) return;  // refused later
  for (std::size_t b = 0; b < given.size(); ++b) {
    const std::int64_t rows =
        p.mask.packed() ? p.mask.cu_seqlens_q[b + 1] - p.mask.cu_seqlens_q[b] : p.seqlen_q;
    if (given[b] >= 0 && given[b] <= rows) continue;
    throw InvalidProblem("query_lengths: that of batch entry " + std::to_string(b) + " is " +
                         std::to_string(given[b]) + "; it must be from 0 to " +
                         std::to_string(rows) + ", the entry's queries");
  }
}

constexpr std::int64_t kMostPages = std::numeric_limits<std::int32_t>::max();

std::string spelled_pages(const Problem& p) {
  const PagedKv& paged = p.paged_kv;
  std::string text = std::to_string(paged.page_size);
  if (paged.order != 0 || paged.pages != 0) text += "_" + std::to_string(paged.order);
  return paged.pages == 0 ? text : text + "_" + std::to_string(paged.pages);
}

void parse_pages(Problem& p, const std::string& value) {
  std::array<std::uint64_t, 3> numbers{};
  std::size_t count = 0;
  const char *at = value.data(), *const last = at + value.size();
  bool read = true;
  while (read && count < numbers.size()) {
    const auto [end, error] = std::from_chars(at, last, numbers[count++]);
    read = error == std::errc() && (end == last || *end == '_');
    at = read && end != last ? end + 1 : end;
    if (!read || end == last) break;
    read = count < numbers.size();
  }
  const auto most = static_cast<std::uint64_t>(kMostPages);
  if (!read || numbers[0] < 1 || numbers[0] > most || numbers[2] > most) {
    throw InvalidProblem(
        "problem: paged_kv=" + value +
        " needs a page size from 1 on, then _ and a seed of the pages' order, then "
        "_ and how many pages there are at least; write for example paged_kv=16_7");
  }
  p.paged_kv = {static_cast<std::int64_t>(numbers[0]), numbers[1],
                static_cast<std::int64_t>(numbers[2])};
}

void validate_pages(const Problem& p) {
  if (!is_paged(p)) return;
  const std::int64_t size = p.paged_kv.page_size, pages = p.paged_kv.pages;
  if (size < 1 || size > kMostPages || pages < 0 || pages > kMostPages) {
    throw InvalidProblem("paged_kv: " + std::to_string(pages) + " pages of " +
                         std::to_string(size) + " keys; both must be below 2^31");
  }
}

// Page sizes of one key, of an odd number, of a usual one, and of more keys than those pairs have.
constexpr std::array kPageSizes{"1_1", "3_2", "16_7", "64_4"};

void parse_shared_kv(Problem& p, const std::string& value) {
  p.shared_kv = choice_of("shared_kv", value,
                          std::array{SharedKv::none, SharedKv::first, SharedKv::last,
                                     SharedKv::first_apart, SharedKv::last_apart});
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
    ScoreFeature{.claim = ATTEST_BIAS,
                 .word = "bias",
                 .name = "bias",
                 .the_feature = "the bias",
                 .example = "hqk_drawn_7",
                 .additive = true,
                 .in_scores = false,
                 .present = present<&Problem::bias>,
                 .asked = nullptr,
                 .remove = remove<&Problem::bias>,
                 .follow = follow<&Problem::bias>,
                 .value = [](const Problem& p) { return p.bias.to_string(); },
                 .parse = [](Problem& p, const std::string& value) { p.bias = Bias::parse(value); },
                 .validate = validate_bias},
    ScoreFeature{
        .claim = ATTEST_HEAD_MASK,
        .word = "head_mask",
        .name = "masks of heads",
        .the_feature = "the masks of heads",
        .example = "bhqk_60_7",
        .additive = true,
        .in_scores = false,
        .in_mask = true,
        .present = present<&Problem::head_mask>,
        .asked = [](const attest_problem& p) { return p.mask.per_head != nullptr; },
        .remove = remove<&Problem::head_mask>,
        .follow = follow<&Problem::head_mask>,
        .value = [](const Problem& p) { return p.head_mask.to_string(); },
        .parse = [](Problem& p, const std::string& value) { p.head_mask = HeadMask::parse(value); },
        .validate = validate_head_mask},
    ScoreFeature{
        .claim = ATTEST_QUERY_LENGTHS,
        .word = "query_lengths",
        .name = "query lengths",
        .the_feature = "the query lengths",
        .example = "drawn_7",
        .additive = true,
        .in_scores = false,
        .in_mask = true,
        .present = present<&Problem::query_lengths>,
        .asked = [](const attest_problem& p) { return p.mask.query_lengths != nullptr; },
        .remove = remove<&Problem::query_lengths>,
        .follow = follow<&Problem::query_lengths>,
        .value = [](const Problem& p) { return p.query_lengths.to_string(); },
        .parse = [](Problem& p,
                    const std::string& value) { p.query_lengths = QueryLengths::parse(value); },
        .validate = validate_query_lengths},
    ScoreFeature{.claim = ATTEST_PAGED_KV,
                 .word = "paged_kv",
                 .name = "paged K and V",
                 .the_feature = "the pages of K and V",
                 .example = "16_7",
                 .additive = true,
                 .in_scores = false,
                 .in_storage = true,
                 .kinds = kPageSizes,
                 .present = is_paged,
                 .asked = asked<&attest_problem::paged_kv>,
                 .remove = remove<&Problem::paged_kv>,
                 .follow = follow<&Problem::paged_kv>,
                 .value = spelled_pages,
                 .parse = parse_pages,
                 .validate = validate_pages},
    ScoreFeature{.claim = ATTEST_SHARED_KV,
                 .word = "shared_kv",
                 .name = "K and V in one buffer",
                 .the_feature = "K and V in one buffer",
                 .example = "first",
                 .additive = true,
                 .in_scores = false,
                 .in_storage = true,
                 .present = present<&Problem::shared_kv>,
                 .asked = nullptr,
                 .remove = remove<&Problem::shared_kv>,
                 .follow = follow<&Problem::shared_kv>,
                 .value = [](const Problem& p) { return std::string(name(p.shared_kv)); },
                 .parse = parse_shared_kv,
                 .validate = [](const Problem& /*problem*/) {}},
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
  for (const ScoreFeature& feature : kFeatures) {
    asks = asks || (feature.asked != nullptr && feature.asked(problem));
  }
  return asks;
}

}  // namespace attest
