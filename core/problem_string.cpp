// The one-line spelling of a problem.
#include <algorithm>
#include <array>
#include <map>

#include "core/error.hpp"
#include "core/features/problem_values.hpp"
#include "core/features/score_features.hpp"
#include "core/mask/mask_part.hpp"
#include "core/problem.hpp"
#include "core/text/shortest.hpp"
#include "core/text/suggest.hpp"

namespace attest {
namespace {

constexpr std::string_view kDefaultScale = "1/sqrt(d)";

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all{"b",  "hq",   "hkv",   "sq",     "sk",   "d",
                                 "dv", "mask", "dtype", "layout", "scale"};
    for (const ScoreFeature& feature : score_features()) all.emplace_back(feature.word);
    all.insert(all.end(), {"splits", "strides"});
    return all;
  }();
  return keys;
}

std::string list_of_keys() {
  std::string list;
  for (const std::string& key : known_keys()) list += (list.empty() ? "" : " ") + key;
  return list;
}

// Tells whether a word names floats of 8 bits, as fp8, f8, e4m3fn and float8_e5m2 do.
bool names_fp8(std::string_view word) {
  constexpr std::array<std::string_view, 5> kBeginnings{"fp8", "f8", "float8", "e4m3", "e5m2"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return word.starts_with(beginning); });
}

// Refuses by name the features that users of other suites ask for and this version lacks.
void refuse_later_features(const std::string& key, const std::string& value) {
  struct Feature {
    std::string_view word, what;
  };
  static constexpr std::array<Feature, 15> kFeatures{{
      {"dropout", "dropout; a mask of the kept pairs takes its place (mask=file_PATH)"},
      {"dropout_p", "dropout; a mask of the kept pairs takes its place (mask=file_PATH)"},
      {"p_dropout", "dropout; a mask of the kept pairs takes its place (mask=file_PATH)"},
      {"page_size", "this key; pages of 16 keys, in the order of seed 7, are paged_kv=16_7"},
      {"block_table", "this key; pages of 16 keys, in the order of seed 7, are paged_kv=16_7"},
      {"cluster", "thread-block clusters"},
      {"descale", "descales, which come with fp8"},
      {"q_descale", "descales, which come with fp8"},
      {"k_descale", "descales, which come with fp8"},
      {"v_descale", "descales, which come with fp8"},
      {"kv_dtype", "K and V of another type than Q"},
      {"k_dtype", "K and V of another type than Q"},
      {"v_dtype", "K and V of another type than Q"},
      {"o_dtype", "O of another type than Q"},
      {"out_dtype", "O of another type than Q"},
  }};
  const std::string& word = key == "dtype" ? value : key;
  const auto refuse = [](std::string_view what) {
    throw InvalidProblem("problem: this version does not have " + std::string(what));
  };
  if (names_fp8(word)) refuse("fp8");
  for (const Feature& feature : kFeatures) {
    if (feature.word == word) refuse(feature.what);
  }
}

using Fields = std::map<std::string, std::string, std::less<>>;

// The text after "v1;" or all of it; another format is refused by name.
std::string_view without_version(std::string_view text) {
  const std::size_t semicolon = text.find(';');
  if (semicolon == std::string_view::npos || text[0] != 'v' ||
      text.substr(0, semicolon).find('=') != std::string_view::npos) {
    return text;
  }
  const std::string_view version = text.substr(0, semicolon);
  if (version != "v1") {
    throw InvalidProblem("problem: format '" + std::string(version) +
                         "' is unknown; this program reads format v1 only");
  }
  return text.substr(semicolon + 1);
}

// Tells whether the last part of the mask is a path, which ends where the next key begins.
bool mask_names_file(const Fields& fields) {
  const auto mask = fields.find("mask");
  if (mask == fields.end()) return false;
  return names_path(split(mask->second, '+').back());
}

Fields split_fields(std::string_view text) {
  Fields fields;
  text = without_version(text);
  bool more = !text.empty();
  while (more) {
    const std::size_t comma = text.find(',');
    const std::string_view field = text.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
    if (field.empty()) {
      throw InvalidProblem(
          "problem: nothing stands before, between or after commas; write for example sq=128,d=64");
    }
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw InvalidProblem("problem: '" + std::string(field) + "' is not key=value; " +
                           (mask_names_file(fields)
                                ? "a path in a mask cannot hold a comma: rename or link the file"
                                : "write for example sq=128,d=64"));
    }
    const std::string key(field.substr(0, equals));
    refuse_later_features(key, std::string(field.substr(equals + 1)));
    bool known = false;
    for (const auto& candidate : known_keys()) known = known || candidate == key;
    if (!known) {
      throw InvalidProblem("problem: unknown key '" + key + "'" + did_you_mean(key, known_keys()) +
                           " (keys: " + list_of_keys() + ")");
    }
    if (!fields.emplace(key, field.substr(equals + 1)).second) {
      throw InvalidProblem("problem: key '" + key + "' is given twice");
    }
  }
  return fields;
}

std::int64_t integer(const Fields& fields, const std::string& key, std::int64_t otherwise) {
  const auto found = fields.find(key);
  return found == fields.end() ? otherwise : integer_of(key, found->second);
}

template <typename Enum, std::size_t N>
Enum choice(const Fields& fields, const std::string& key, Enum otherwise,
            const std::array<Enum, N>& values) {
  const auto found = fields.find(key);
  return found == fields.end() ? otherwise : choice_of(key, found->second, values);
}

void parse_sizes(const Fields& fields, const std::string& mask, Problem& problem) {
  const Pattern packed = Pattern::parse_packed(mask);
  if (packed.packed()) {
    problem.batch = static_cast<std::int64_t>(packed.cu_seqlens_q.size()) - 1;
    problem.seqlen_q = problem.seqlen_k = 0;
    for (std::size_t b = 0; b + 1 < packed.cu_seqlens_q.size(); ++b) {
      problem.seqlen_q = std::max<std::int64_t>(
          problem.seqlen_q, packed.cu_seqlens_q[b + 1] - packed.cu_seqlens_q[b]);
      problem.seqlen_k = std::max<std::int64_t>(
          problem.seqlen_k, packed.cu_seqlens_k[b + 1] - packed.cu_seqlens_k[b]);
    }
    problem.layout = Layout::thd;
  } else if (!fields.contains("sq")) {
    throw InvalidProblem(std::string("problem: sq ") + (fields.contains("d") ? "is" : "and d are") +
                         " needed; write for example sq=128,d=64");
  }
  if (!fields.contains("d")) throw InvalidProblem("problem: d is needed; write for example d=64");
  problem.batch = integer(fields, "b", problem.batch);
  problem.num_heads_q = integer(fields, "hq", 1);
  problem.num_heads_kv = integer(fields, "hkv", problem.num_heads_q);
  problem.seqlen_q = integer(fields, "sq", problem.seqlen_q);
  problem.seqlen_k = integer(fields, "sk", packed.packed() ? problem.seqlen_k : problem.seqlen_q);
  problem.head_dim_qk = integer(fields, "d", 1);
  problem.head_dim_v = integer(fields, "dv", problem.head_dim_qk);
}

}  // namespace

std::string Problem::to_string() const {
  const auto field = [](const char* key, std::int64_t value) {
    return std::string(key) + "=" + std::to_string(value) + ",";
  };
  std::string text = field("b", batch) + field("hq", num_heads_q) + field("hkv", num_heads_kv) +
                     field("sq", seqlen_q) + field("sk", seqlen_k) + field("d", head_dim_qk) +
                     field("dv", head_dim_v);
  text += "mask=" + mask.to_string() + ",dtype=" + std::string(attest::name(dtype)) +
          ",layout=" + std::string(attest::name(layout)) +
          ",scale=" + (softmax_scale ? shortest(*softmax_scale) : std::string(kDefaultScale));
  for (const ScoreFeature& feature : score_features()) {
    if (feature.present(*this))
      text += "," + std::string(feature.word) + "=" + feature.value(*this);
  }
  if (num_splits != 0) text += ",splits=" + std::to_string(num_splits);
  if (strides != Strides::packed) text += ",strides=" + std::string(attest::name(strides));
  return text;
}

Problem Problem::parse(std::string_view text) {
  const Fields fields = split_fields(text);
  const auto mask = fields.contains("mask") ? fields.find("mask")->second : std::string("none");
  Problem problem;
  parse_sizes(fields, mask, problem);
  problem.dtype = choice(fields, "dtype", problem.dtype, all_dtypes());
  problem.layout =
      choice(fields, "layout", problem.layout, std::array{Layout::bshd, Layout::bhsd, Layout::thd});
  problem.strides =
      choice(fields, "strides", problem.strides,
             std::array{Strides::packed, Strides::padded, Strides::transposed, Strides::interleaved,
                        Strides::broadcast, Strides::huge, Strides::mixed});
  if (const auto scale = fields.find("scale");
      scale != fields.end() && scale->second != kDefaultScale) {
    problem.softmax_scale = real_of("scale", scale->second);
  }
  for (const ScoreFeature& feature : score_features()) {
    const auto found = fields.find(feature.word);
    if (found != fields.end()) feature.parse(problem, found->second);
  }
  problem.num_splits = integer(fields, "splits", 0);
  Problem sizes = problem;  // sizes first: a mask of impossible size is not built
  sizes.mask = Pattern::parse_packed(mask);
  sizes.validate();
  problem.mask = Pattern::parse(mask, problem.seqlen_q, problem.seqlen_k);
  problem.validate();
  return problem;
}

}  // namespace attest
