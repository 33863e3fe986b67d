#include "certify/plan/sizes.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "proptest/judge/truth/sample.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

json one_json(const LargestSizes& of) {
  if (of.batch == 0) return nullptr;
  return {{"seqlen_q", of.seqlen_q}, {"seqlen_k", of.seqlen_k}, {"head_dim", of.head_dim},
          {"batch", of.batch},       {"heads", of.heads},       {"tokens", of.tokens}};
}

std::string head_dim_kind(const Problem& p) {
  const std::int64_t d = std::max(p.head_dim_qk, p.head_dim_v);
  for (const std::int64_t most : {32, 64, 128, 256}) {
    if (d <= most) return "d <= " + std::to_string(most);
  }
  return "d > 256";
}

}  // namespace

void LargestSizes::include(const Problem& p) {
  const std::int64_t tokens_of =
      p.mask.packed() ? std::max(p.tensor_seqlen_q(), p.tensor_seqlen_k()) : 0;
  include(LargestSizes{p.seqlen_q, p.seqlen_k, std::max(p.head_dim_qk, p.head_dim_v), p.batch,
                       p.num_heads_q, tokens_of});
}

void LargestSizes::include(const LargestSizes& other) {
  for (const auto size : {&LargestSizes::seqlen_q, &LargestSizes::seqlen_k, &LargestSizes::head_dim,
                          &LargestSizes::batch, &LargestSizes::heads, &LargestSizes::tokens}) {
    this->*size = std::max(this->*size, other.*size);
  }
}

void CoveredSizes::include(const Problem& problem) {
  (proptest::judged_by_sample(problem) ? sampled : whole).include(problem);
}

void include(const Problem& problem, SizesByKind& sizes) {
  for (const std::string& kind : {mask_kind(problem.mask), head_dim_kind(problem)}) {
    sizes[kind].include(problem);
  }
}

CoveredSizes of_all_kinds(const SizesByKind& sizes) {
  CoveredSizes all;
  for (const auto& [kind, covered] : sizes) {
    all.whole.include(covered.whole);
    all.sampled.include(covered.sampled);
  }
  return all;
}

std::string mask_kind(const Pattern& mask) {
  std::string kind;
  const auto add = [&](bool has, const char* word) {
    if (has) kind += (kind.empty() ? "" : "+") + std::string(word);
  };
  const bool causal = !mask.left_bounded() && mask.window_right == 0;
  add(mask.packed(), "packed");
  add(causal, "causal");
  add(mask.banded() && !causal, "window");
  add(!mask.key_lengths.empty(), "lengths");
  add(mask.boolean != nullptr, "pairs");
  return kind.empty() ? "none" : kind;
}

json sizes_json(const CoveredSizes& sizes) {
  return {{"whole", one_json(sizes.whole)}, {"sampled", one_json(sizes.sampled)}};
}

std::string sizes_text(const json& sizes) {
  const json &whole = sizes.at("whole"), &sampled = sizes.at("sampled");
  const auto of = [](const json& part, const char* size) {
    return part.is_object() ? part.at(size).get<std::int64_t>() : 0;
  };
  std::string text;
  for (const char* size : {"seqlen_q", "seqlen_k", "head_dim", "batch", "heads", "tokens"}) {
    const std::int64_t all = of(whole, size), some = of(sampled, size);
    if (std::max(all, some) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(size) +
            " <= " + std::to_string(std::max(all, some));
    if (some > all) text += " (by sample; whole <= " + std::to_string(all) + ")";
  }
  return text;
}

}  // namespace attest::certify
