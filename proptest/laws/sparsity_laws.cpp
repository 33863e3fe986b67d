// A sparsity pattern means the same in every form in which a kernel takes it.
#include <set>

#include "core/rng.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

Problem with_pattern(Problem problem, SparsityPattern::Form form, const char* spelling) {
  problem.mask.boolean = mask_of({problem.seqlen_q, problem.seqlen_k, std::move(form), spelling});
  return problem;
}

Problem without_form(Problem problem) {
  BooleanMask mask = *problem.mask.boolean;
  mask.sparsity = nullptr;
  problem.mask.boolean = std::make_shared<const BooleanMask>(std::move(mask));
  return problem;
}

// The case's own pattern, of any family; else one of blocks or N:M with half of the pairs or more,
// under a causal mask or none.
Problem patterned(const attest_kernel& kernel, const Case& c) {
  if (c.problem.mask.sparsity() != nullptr) return c.problem;
  constexpr std::uint64_t kStream = 0x73706172u;
  Rng rng(c.seed, kStream);
  Problem problem = c.problem;
  if (problem.mask.packed()) problem.layout = Layout::bshd;
  const bool causal = rng.between(0, 1) == 0, blocks = rng.between(0, 3) > 0;
  const std::int64_t block_q = rng.between(1, 8), block_k = rng.between(1, 8);
  const std::int64_t percent = rng.between(50, 90), seed = rng.between(0, 1000);
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const std::string spelling =
      blocks ? "block_" + number(2 * block_q) + "x" + number(2 * block_k) + "_" + number(percent) +
                   "_" + number(seed)
             : "nm_" + number(block_k) + "_" + number(2 * block_k) + "_" + number(seed);
  problem.mask =
      Pattern::parse((causal ? "causal_br+" : "") + spelling, problem.seqlen_q, problem.seqlen_k);
  problem.mask.align = CausalAlign::bottom_right;  // ALiBi counts from the aligned key
  fit_window(kernel.description, problem);
  return problem;
}

// A size that divides that of the blocks, so that the smaller blocks hold no other pair.
std::int64_t part(std::int64_t size) { return size % 2 == 0 ? size / 2 : 1; }

// The same problem in forms that the kernel takes, each once.
std::vector<Problem> forms_of(const Problem& problem, std::uint32_t features) {
  std::vector<Problem> forms;
  const SparsityPattern& pattern = *problem.mask.sparsity();
  std::set<std::uint32_t> taken;
  const auto add = [&](const Problem& form) {
    const std::uint32_t as = mask_form(form.mask.sparsity(), features);
    if (as != 0 && taken.insert(as).second) forms.push_back(form);
  };
  add(problem);
  if (const auto* blocks = std::get_if<BlockForm>(&pattern.form());
      blocks != nullptr && blocks->block_q * blocks->block_k > 1 &&
      (features & ATTEST_BLOCK_MASK) != 0) {
    forms.push_back(with_pattern(
        problem, pattern.tiles(part(blocks->block_q), part(blocks->block_k)), "smaller_blocks"));
  }
  add(with_pattern(problem, pattern.to_csr(), "csr"));
  add(without_form(problem));
  return forms;
}

LawResult check_sparsity_forms(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const Problem problem = patterned(kernel, c);
    const std::vector<Problem> forms = forms_of(problem, kernel.description.features);
    if (forms.size() < 2) stop(Verdict::unsupported, "not claimed: two forms of one pattern");
    for (const Problem& form : forms) require_claimed(kernel, form, Direction::forward);
    if (problem.visible_pairs() == 0) stop(Verdict::vacuous, "no query sees a key");
    const Direction direction = furthest(kernel, problem);
    const Solved first(kernel, forms.front(), make_values(problem, c.values, c.seed), direction, c);
    std::vector<Comparison> found;
    for (auto form = forms.begin() + 1; form != forms.end(); ++form) {
      const KernelRun run = complete(kernel, *form, first.values, direction, c);
      for (Comparison& comparison : first.truth.agreement(run, first.run)) {
        found.push_back(std::move(comparison));
      }
    }
    return judged_with_truth(found, first);
  });
}

}  // namespace

std::vector<Law> sparsity_laws() {
  return {{"sparsity_forms", "blocks, N:M, CSR and boolean mask of one sparsity pattern are one",
           check_sparsity_forms, ATTEST_FORWARD | ATTEST_BACKWARD,
           ATTEST_BLOCK_MASK | ATTEST_CSR_MASK | ATTEST_NM_MASK}};
}

}  // namespace attest::proptest
