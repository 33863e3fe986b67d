// A sparsity pattern, its CSR form and its boolean mask are one problem.
#include <set>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/laws/trials/reversed.hpp"
#include "proptest/values/generator.hpp"
#include "proptest/values/values.hpp"
#include "reference/exact/attention.hpp"

namespace attest::proptest {
namespace {

const attest_kernel& sound() { return fixtures::defective_kernel(fixtures::Defect::none); }

struct Exact {
  reference::Forward forward;
  reference::Backward backward;
};

Exact exact(const Problem& problem, const InputValues& in) {
  const TensorView dLSE = in.dLSE.view();
  return {
      reference::forward(problem, conventions_of(sound().description), in.Q.view(), in.K.view(),
                         in.V.view()),
      reference::backward(problem, in.Q.view(), in.K.view(), in.V.view(), {in.dO.view(), &dLSE})};
}

bool same(const Exact& a, const Exact& b) {
  const auto equal = [](const Tensor& x, const Tensor& y) {
    return compare_bits(x.view(), y.view()).verdict == Verdict::passed;
  };
  return equal(a.forward.O, b.forward.O) && equal(a.forward.LSE, b.forward.LSE) &&
         equal(a.backward.dQ, b.backward.dQ) && equal(a.backward.dK, b.backward.dK) &&
         equal(a.backward.dV, b.backward.dV);
}

std::string family_of(const Case& c) {
  const std::string spelling = c.problem.mask.sparsity()->spelling();
  return spelling.substr(0, spelling.find('_'));
}

// Returns every family but those that come from a file.
std::set<std::string> drawn_families() {
  std::set<std::string> all;
  for (const auto& family : SparsityPattern::families()) {
    if (family.name != "pattern") all.insert(family.name);
  }
  return all;
}

std::vector<Case> sparse_cases(std::size_t count) {
  std::vector<Case> cases;
  for (std::uint64_t index = 0; cases.size() < count; ++index) {
    const Case c = generate(sound().description, Tier::smoke, 3, index);
    if (c.problem.mask.sparsity() != nullptr) cases.push_back(c);
  }
  return cases;
}

TEST_CASE("the reference is equal bit for bit under every form of a pattern", "[sparsity]") {
  constexpr std::size_t kCases = 30;
  for (const Case& c : sparse_cases(kCases)) {
    INFO(c.problem.to_string());
    const InputValues in = make_values(c.problem, c.values, c.seed);
    const Exact expected = exact(c.problem, in);
    const SparsityPattern& pattern = *c.problem.mask.sparsity();
    Problem csr = c.problem, boolean = c.problem;
    csr.mask.boolean = mask_of({pattern.rows(), pattern.columns(), pattern.to_csr(), "csr"});
    auto mask = std::make_shared<BooleanMask>(*c.problem.mask.boolean);
    mask->sparsity = nullptr;
    boolean.mask.boolean = mask;
    CHECK(same(exact(csr, in), expected));
    CHECK(same(exact(boolean, in), expected));
  }
}

TEST_CASE("a window is its sparsity pattern", "[sparsity]") {
  const std::vector<std::pair<const char*, const char*>> pairs{{"causal_br", "dilated_inf_0_1"},
                                                               {"window_3_1", "dilated_3_1_1"},
                                                               {"window_4_2", "global_0_4_2"},
                                                               {"none", "blockband_4x4_9"},
                                                               {"none", "nm_3_3_1"}};
  for (const auto& [window, pattern] : pairs) {
    INFO(window << " " << pattern);
    const std::string sizes = "hq=2,hkv=1,sq=13,sk=21,d=5,dv=3,mask=";
    Problem a = Problem::parse(sizes + window), b = Problem::parse(sizes + pattern);
    const InputValues in = make_values(a, Values::normal, 1);
    CHECK(same(exact(a, in), exact(b, in)));
  }
  const Problem causal = Problem::parse("sq=9,d=4,mask=causal_br"),
                wider = Problem::parse("sq=9,d=4,mask=dilated_inf_1_1");
  const InputValues in = make_values(causal, Values::normal, 1);
  CHECK_FALSE(same(exact(causal, in), exact(wider, in)));
}

TEST_CASE("generated patterns are of every family and form", "[sparsity]") {
  std::set<std::string> families;
  std::set<std::uint32_t> forms;
  constexpr std::size_t kCases = 120;
  for (const Case& c : sparse_cases(kCases)) {
    families.insert(family_of(c));
    forms.insert(mask_form(c.problem.mask.sparsity(), sound().description.features));
  }
  CHECK(families == drawn_families());
  CHECK(forms == std::set<std::uint32_t>{ATTEST_BLOCK_MASK, ATTEST_CSR_MASK, ATTEST_NM_MASK});
}

TEST_CASE("the law of forms passes on a sound kernel and asks for two forms", "[sparsity]") {
  const Law& law = find_law("sparsity_forms");
  int passed = 0;
  for (std::uint64_t index = 0; index < 20; ++index) {
    const Case c = generate(sound().description, Tier::smoke, 4, index);
    const LawResult result = law.check(sound(), c);
    INFO(c.problem.to_string() << ": " << result.message);
    CHECK((result.verdict == Verdict::passed || result.verdict == Verdict::vacuous ||
           result.verdict == Verdict::unsupported));
    passed += result.verdict == Verdict::passed ? 1 : 0;
    attest_kernel boolean = sound();
    boolean.description.features &=
        ~static_cast<std::uint32_t>(ATTEST_BLOCK_MASK | ATTEST_CSR_MASK | ATTEST_NM_MASK);
    CHECK(law.check(boolean, c).message == "not claimed: two forms of one pattern");
  }
  CHECK(passed > 10);
}

// The sound kernel; remembers how many pairs the last CSR form listed.
std::int64_t listed_pairs = 0;
attest_kernel remembering_kernel() {
  attest_kernel kernel = sound();
  kernel.forward = [](const void*, const attest_forward_args* args) {
    const attest_csr_mask* csr = args->problem->mask.csr;
    if (csr != nullptr) listed_pairs = csr->by_query.offsets[args->problem->seqlen_q];
    return sound().forward(sound().self, args);
  };
  return kernel;
}

TEST_CASE("the law of forms is of the case's own pattern, of every family", "[sparsity]") {
  const attest_kernel kernel = remembering_kernel();
  std::set<std::string> held;
  for (const Case& c : sparse_cases(120)) {
    listed_pairs = -1;
    const LawResult result = find_law("sparsity_forms").check(kernel, c);
    INFO(c.problem.to_string() << ": " << result.message);
    CHECK(result.verdict != Verdict::violated);
    if (result.verdict != Verdict::passed) continue;
    CHECK(listed_pairs == c.problem.mask.sparsity()->nnz());
    held.insert(family_of(c));
  }
  CHECK(held == drawn_families());
}

TEST_CASE("pairs in the other order", "[sparsity]") {
  for (const char* mask : {"none", "causal_br", "causal_tl", "window_2_1", "block_3x4_50_1",
                           "block_5x3_50_1", "block_1_30_2", "nm_2_4_1", "pairs_30_1", "pairs_0_1",
                           "random_40_1", "causal_br+block_3x4_60_1", "window_3_inf+pairs_50_1"}) {
    for (const char* sizes : {"b=2,hq=2,sq=12,sk=12,d=2", "sq=7,sk=12,d=2", "sq=12,sk=5,d=2"}) {
      const Problem problem = Problem::parse(std::string(sizes) + ",mask=" + mask);
      const Problem keys = with_reversed_keys(problem), queries = with_reversed_queries(problem);
      INFO(problem.to_string());
      const Sequence sequence = problem.sequences().front();
      int wrong = 0;
      for (std::int64_t i = 0; i < problem.seqlen_q; ++i) {
        for (std::int64_t j = 0; j < problem.seqlen_k; ++j) {
          const bool seen = problem.mask.visible(sequence, i, j);
          wrong += keys.mask.visible(sequence, i, problem.seqlen_k - 1 - j) == seen ? 0 : 1;
          wrong += queries.mask.visible(sequence, problem.seqlen_q - 1 - i, j) == seen ? 0 : 1;
        }
      }
      CHECK(wrong == 0);
    }
  }
  // A kernel of blocks alone is asked where whole blocks change places.
  const auto of_blocks = [](const Problem& problem) {
    return std::holds_alternative<BlockForm>(problem.mask.sparsity()->form());
  };
  const Problem divided = Problem::parse("sq=13,sk=12,d=2,mask=block_4x3_50_1");
  CHECK(of_blocks(with_reversed_keys(divided)));
  CHECK_FALSE(of_blocks(with_reversed_queries(divided)));
  CHECK_THROWS_AS(with_reversed_keys(Problem::parse("b=2,sq=3,d=2,mask=lengths_1_2")),
                  InternalError);
}

// The mistake of pattern_transposed shows on a pattern alone.
TEST_CASE("laws keep the pattern of their case", "[sparsity]") {
  const attest_kernel& wrong = fixtures::defective_kernel(fixtures::Defect::pattern_transposed);
  Case c;
  c.problem = Problem::parse("sq=8,d=4,mask=pairs_30_1");
  for (const Law& law : laws()) {
    const LawResult result = law.check(wrong, c);
    INFO(law.name << ": " << result.message);
    if (law.mask == MaskUse::replaced) CHECK(result.verdict != Verdict::violated);
    const bool in_backward = law.name == "reference_backward" || law.name == "gradient_identity" ||
                             law.name == "score_identity" || law.name == "key_permutation" ||
                             law.name == "query_permutation" || law.name == "linearity_in_do";
    if (in_backward) CHECK(result.verdict == Verdict::violated);
  }
  // Nothing is there to hold on no pair.
  c.problem = Problem::parse("sq=8,d=4,mask=pairs_0_1");
  for (const Law& law : laws()) {
    if (law.mask == MaskUse::replaced || law.directions == ATTEST_LOSS_GRADIENT) continue;
    INFO(law.name);
    CHECK(law.check(sound(), c).verdict != Verdict::passed);
  }
}

TEST_CASE("a kernel without any form of a pattern is not asked", "[sparsity]") {
  attest_description description = sound().description;
  const Problem problem = Problem::parse("sq=9,d=4,mask=pairs_50_1");
  CHECK(unclaimed(description, problem, Direction::forward).empty());
  description.features &= ~static_cast<std::uint32_t>(ATTEST_BOOLEAN_MASK | ATTEST_CSR_MASK);
  CHECK(unclaimed(description, problem, Direction::forward) == "sparsity pattern");
  CHECK(unclaimed(description, Problem::parse("sq=9,d=4,mask=random_90_1"), Direction::forward) ==
        "boolean mask");
  CHECK(concerns(find_law("sparsity_forms"), description));
  description.features &= ~static_cast<std::uint32_t>(ATTEST_BLOCK_MASK | ATTEST_NM_MASK);
  CHECK_FALSE(concerns(find_law("sparsity_forms"), description));
}

TEST_CASE("shrinking keeps the form that fails and drops the others", "[sparsity]") {
  Case big;
  big.problem = Problem::parse("b=2,hq=2,sq=40,sk=50,d=8,mask=block_8x12_60_3+causal_br");
  const auto shrunk = [&](const auto& fails) {
    return shrink(big, [&](const Case& c) { return fails(c.problem); }).problem;
  };
  const auto small = [](const std::string& mask) {
    return "b=1,hq=1,hkv=1,sq=1,sk=1,d=1,dv=1,mask=" + mask +
           ",dtype=f32,layout=bshd,scale=1/sqrt(d)";
  };
  CHECK(shrunk([](const Problem&) { return true; }).to_string() == small("none"));
  CHECK(shrunk([](const Problem& p) { return p.mask.boolean != nullptr; }).to_string() ==
        small("random_0_0"));
  CHECK(shrunk([](const Problem& p) {
          return p.mask.sparsity() != nullptr &&
                 std::holds_alternative<BlockForm>(p.mask.sparsity()->form());
        }).to_string() == small("blockband_1x1_0"));
  big.problem = Problem::parse("sq=40,sk=50,d=8,mask=nm_3_7_3");
  CHECK(shrunk([](const Problem& p) { return p.mask.sparsity() != nullptr; }).to_string() ==
        small("nm_1_1_0"));
  big.problem = Problem::parse("sq=40,sk=50,d=8,mask=documents_10x10_30x40");
  CHECK(shrunk([](const Problem& p) { return p.mask.sparsity() != nullptr; }).to_string() ==
        small("pairs_0_0"));
}

}  // namespace
}  // namespace attest::proptest
