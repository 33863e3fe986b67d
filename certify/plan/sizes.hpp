#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/problem.hpp"

/// The sizes up to which a campaign has judged a kernel.
namespace attest::certify {

/// The largest of each size, each perhaps of another problem. Lengths are those of one sequence;
/// `tokens` is the sum over packed ones.
struct LargestSizes {
  std::int64_t seqlen_q = 0, seqlen_k = 0, head_dim = 0, batch = 0, heads = 0, tokens = 0;

  void include(const Problem& problem);
  void include(const LargestSizes& other);
};

/// Sizes of the problems of one kind: those of which the reference judged every element,
/// and those of which it judged a sample of rows and keys.
struct CoveredSizes {
  LargestSizes whole, sampled;

  void include(const Problem& problem);
};

/// By kind of mask, see mask_kind, and by size of the heads: "d <= 32", "d <= 64" (more than 32),
/// "d <= 128", "d <= 256", "d > 256".
using SizesByKind = std::map<std::string, CoveredSizes>;

/// Includes the problem's sizes under the kind of its mask and the size of its heads.
/// [certify/plan/sizes_test]
void include(const Problem& problem, SizesByKind& sizes);

/// Joins the sizes of all kinds. [certify/plan/sizes_test]
CoveredSizes of_all_kinds(const SizesByKind& sizes);

/// "none", "causal", "window", "lengths", "packed" or "pairs"; joined with '+' where a mask has
/// several parts. [certify/plan/sizes_test]
std::string mask_kind(const Pattern& mask);

/// One line for a kind, such as "seqlen_q <= 2211 (by sample; whole <= 384), seqlen_k …".
/// [certify/plan/sizes_test]
std::string sizes_text(const nlohmann::json& sizes);

/// As the certificate has them; a part without problems is null.
nlohmann::json sizes_json(const CoveredSizes& sizes);

}  // namespace attest::certify
