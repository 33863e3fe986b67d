#include "certify/campaign/campaign_mask.hpp"

#include "certify/digest.hpp"
#include "core/error.hpp"
#include "core/mask/mask_part.hpp"
#include "core/mask/sparsity/abi_sparsity.hpp"

namespace attest::certify {
namespace {

// Returns the digest of the part that names a file.
std::string content_of(const std::string& spelling) {
  for (const std::string& part : split(spelling, '+')) {
    for (const std::string begin : {"file_", "pattern_"}) {
      if (part.rfind(begin, 0) == 0) return sha256_of_file(part.substr(begin.size()));
    }
  }
  return "";
}

}  // namespace

CampaignMask parse_campaign_mask(const std::string& text) {
  constexpr PatternShape kAny{64, 64};
  CampaignMask mask{text, shape_of_mask(text), {}, ""};
  const PatternShape shape = mask.shape.value_or(kAny);
  mask.pattern = Pattern::parse(text, shape.rows, shape.columns);
  if (mask.pattern.packed() || !mask.pattern.key_lengths.empty()) {
    throw InvalidProblem("--mask " + text +
                         ": key lengths and packed sequences belong to one batch, and a campaign "
                         "has many; give a band or pairs, as in --mask block_16x16_30_1");
  }
  mask.spelling = mask.pattern.to_string();
  mask.content = content_of(mask.spelling);
  return mask;
}

void require_form(const attest_kernel& kernel, const CampaignMask& mask) {
  if (mask.pattern.boolean == nullptr) return;
  const SparsityPattern* sparsity = mask.pattern.sparsity();
  const std::uint32_t features = kernel.description.features;
  if (mask_form(sparsity, features) != 0) return;
  std::string taken = "none";
  if ((features & ATTEST_BLOCK_MASK) != 0) {
    taken = "ATTEST_BLOCK_MASK (block_…, blockband_…, butterfly_…)";
  }
  if ((features & ATTEST_NM_MASK) != 0) taken = "ATTEST_NM_MASK (nm_…)";
  if (sparsity == nullptr && (features & ATTEST_CSR_MASK) != 0) taken = "lists, not boolean masks";
  throw InvalidProblem(
      "--mask " + mask.spelling + ": " + kernel.description.name +
      " claims no form of masks of pairs that this one has (docs/how-to/masks.md); it claims " +
      taken + ". Name another kernel, or a mask of that form");
}

void require_unchanged(const CampaignMask& mask) {
  if (content_of(mask.spelling) == mask.content) return;
  throw InvalidProblem("--mask " + mask.spelling +
                       ": the file was written again while kernels were certified on it; certify "
                       "them once it is done");
}

Problem with_mask(Problem problem, const CampaignMask& mask) {
  constexpr std::int64_t kMostPairs = std::int64_t{1} << 22;
  if (problem.layout == Layout::thd) problem.layout = Layout::bshd;
  if (mask.shape) {
    problem.seqlen_q = mask.shape->rows;
    problem.seqlen_k = mask.shape->columns;
  }
  const auto too_many = [&] {
    const std::int64_t rows = problem.batch * problem.num_heads_q * problem.seqlen_q;
    return problem.seqlen_k > 0 && rows > kMostPairs / problem.seqlen_k;
  };
  if (too_many()) problem.batch = 1;
  if (too_many()) {
    problem.num_heads_q = problem.group_size();
    problem.num_heads_kv = 1;
  }
  if (too_many()) problem.num_heads_q = 1;
  problem.mask =
      mask.shape ? mask.pattern : Pattern::parse(mask.spelling, problem.seqlen_q, problem.seqlen_k);
  problem.validate();
  return problem;
}

}  // namespace attest::certify
