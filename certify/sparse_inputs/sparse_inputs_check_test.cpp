#include "certify/sparse_inputs/sparse_inputs_check.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "certify/sparse_inputs/sparse_inputs.hpp"
#include "core/error.hpp"
#include "core/sparse_operands/sparse_operands_file.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/sparse_kernels.hpp"
#include "proptest/values/sparse_values.hpp"
#include "sparse/inputs/input_kernels.hpp"

namespace attest::certify {
namespace {

using proptest::SparseFamily;
using proptest::SparseTruth;

SparseTruth truth_of(const SparseOperands& operands, std::uint64_t seed = 1) {
  Rng rng(seed, 1);
  return {operands, proptest::draw_cotangent(rng, operands.Q.rows * operands.V.columns)};
}

SparseOperands drawn(SparseFamily family, std::uint64_t seed = 1,
                     const char* problem = "sq=22,sk=35,d=16,dv=9") {
  const SparseInputs inputs = parse_sparse_inputs("csr:density=0.2", Problem::parse(problem));
  return proptest::with_values(family, inputs.operands, seed);
}

SparseKernel kernel_named(const std::string& name) {
  for (const auto& kernels : {sparse::input_kernels(), fixtures::broken_sparse_kernels()}) {
    for (const SparseKernel& kernel : kernels) {
      if (kernel.name == name) return kernel;
    }
  }
  throw InvalidProblem(name);
}

Verdict verdict_on(const std::string& kernel, const SparseTruth& truth) {
  return verdict_of(check_sparse_kernel(kernel_named(kernel), truth));
}

TEST_CASE("kernels of sparse inputs pass on every family of values", "[sparse]") {
  for (const auto& [family, name] : proptest::sparse_families()) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const SparseTruth truth = truth_of(drawn(family, seed), seed);
      for (const SparseKernel& kernel : sparse::input_kernels()) {
        for (const SparseFinding& finding : check_sparse_kernel(kernel, truth)) {
          INFO(name << " " << kernel.name << " " << finding.pass << " " << finding.result.message);
          // With scores in the thousands pairs that share no column have no weight to see.
          const bool hidden = family == SparseFamily::huge_scores;
          CHECK(finding.result.verdict == (hidden ? Verdict::vacuous : Verdict::passed));
          CHECK(finding.result.comparisons.size() == (finding.pass == "forward" ? 2 : 3));
        }
      }
    }
  }
}

TEST_CASE("a single query, key and column pass", "[sparse]") {
  for (const char* problem : {"sq=1,d=1", "sq=1,sk=7,d=3,dv=2", "sq=5,sk=1,d=2,dv=4"}) {
    const SparseTruth truth = truth_of(drawn(SparseFamily::normal, 1, problem));
    for (const SparseKernel& kernel : sparse::input_kernels()) {
      INFO(problem << " " << kernel.name);
      CHECK(verdict_of(check_sparse_kernel(kernel, truth)) == Verdict::passed);
    }
  }
}

TEST_CASE("wrong kernels of sparse inputs are refused", "[sparse]") {
  const SparseTruth truth = truth_of(drawn(SparseFamily::normal));
  for (const SparseKernel& kernel : fixtures::broken_sparse_kernels()) {
    const auto findings = check_sparse_kernel(kernel, truth);
    const bool backward_alone = kernel.name == "broken/sparse_no_rank_one";
    INFO(kernel.name);
    CHECK(verdict_of(findings) == Verdict::violated);
    CHECK(findings[0].result.verdict == (backward_alone ? Verdict::passed : Verdict::violated));
    CHECK_THAT(findings[backward_alone ? 1 : 0].result.message,
               Catch::StartsWith("outside the proved bound: "));
  }
  const auto findings = check_sparse_kernel(kernel_named("broken/sparse_no_rank_one"), truth);
  CHECK(findings[1].result.comparisons[0].verdict == Verdict::passed);  // dQ
  CHECK(findings[1].result.comparisons[1].verdict == Verdict::violated);
  CHECK(findings[1].result.comparisons[2].verdict == Verdict::passed);  // dV
}

TEST_CASE("backward passes of sparse inputs without the stored LSE are refused", "[sparse]") {
  const SparseTruth truth = truth_of(drawn(SparseFamily::normal));
  for (const SparseKernel& right : sparse::input_kernels()) {
    SparseKernel unshifted = right;
    unshifted.backward = [&right](const SparseOperands& operands, std::span<const float> dO,
                                  const SparseOutputs& stored) {
      const std::vector<float> none(stored.LSE.size(), 0);
      return right.backward(operands, dO, {stored.O, none});
    };
    const auto findings = check_sparse_kernel(unshifted, truth);
    INFO(right.name);
    CHECK(findings[0].result.verdict == Verdict::passed);
    CHECK(findings[1].result.verdict == Verdict::violated);
  }
}

TEST_CASE("results of another size are refused", "[sparse]") {
  const SparseTruth truth = truth_of(drawn(SparseFamily::normal));
  SparseKernel kernel = kernel_named("sparse_inputs/expm1");
  const auto whole = kernel;
  kernel.backward = [&](const auto&... given) {
    SparseGradients gradients = whole.backward(given...);
    gradients.dK.pop_back();
    return gradients;
  };
  auto findings = check_sparse_kernel(kernel, truth);
  CHECK(findings[0].result.verdict == Verdict::passed);
  CHECK(findings[1].result.verdict == Verdict::violated);
  CHECK(findings[1].result.message == "dK has 559 elements, not 560");
  kernel.forward = [](const SparseOperands&) { return SparseOutputs{}; };
  findings = check_sparse_kernel(kernel, truth);
  CHECK(findings[0].result.verdict == Verdict::violated);
  CHECK(findings[1].result.verdict == Verdict::unsupported);
}

TEST_CASE("what proves nothing of sparse inputs does not pass", "[sparse]") {
  SparseOperands in = drawn(SparseFamily::normal);
  in.softmax_scale = 0x1p-40;  // weights are those of no scores at all, within their bounds
  auto findings = check_sparse_kernel(kernel_named("sparse_inputs/expm1"), truth_of(in));
  CHECK(findings[0].result.verdict == Verdict::vacuous);
  CHECK(findings[0].result.message == "would also pass: mean of V");
  for (CsrMatrix* matrix : {&in.Q, &in.K}) {
    for (float& value : matrix->values) value *= 0x1p70f;
  }
  in.softmax_scale = 1;
  findings = check_sparse_kernel(kernel_named("sparse_inputs/expm1"), truth_of(in));
  CHECK(findings[0].result.verdict == Verdict::unsupported);
  CHECK_THAT(findings[0].result.message, Catch::Contains("no bound is proved for"));
  CHECK(verdict_of(findings) == Verdict::unsupported);
}

TEST_CASE("mistakes that inputs do not show are named", "[sparse]") {
  using Names = std::vector<std::string>;
  const Names hidden{"pairs that share no column hidden"};
  const SparseTruth sparse = truth_of(drawn(SparseFamily::normal));
  CHECK(sparse.unseen_forward().empty());
  CHECK(sparse.unseen_backward().empty());
  // Every pair shares a column: what is wrong elsewhere alone passes, and the answer says of what.
  const SparseTruth full = truth_of(drawn(SparseFamily::negative_full));
  CHECK(verdict_on("broken/sparse_no_rank_one", full) == Verdict::passed);
  CHECK(full.unseen_forward() == hidden);
  CHECK(full.unseen_backward() == hidden);
  SparseOperands in = drawn(SparseFamily::negative_full);
  in.softmax_scale = 0;
  CHECK(truth_of(in).unseen_forward() == Names{"mean of V", hidden.front()});
  in.V.values.assign(in.V.values.size(), 0);
  CHECK(truth_of(in).unseen_forward() == Names{"all zeros", "mean of V", hidden.front()});
}

TEST_CASE("families by name", "[sparse]") {
  for (const auto& [family, name] : proptest::sparse_families()) {
    if (family == SparseFamily::many_keys) continue;
    CHECK(proptest::parse_sparse_family(name) == family);
  }
  CHECK_THROWS_WITH(proptest::parse_sparse_family("many_keys"), Catch::Contains("give sk=400"));
  CHECK_THROWS_WITH(proptest::parse_sparse_family("negativ"), Catch::Contains("'negative'"));
  CHECK_THROWS_AS(proptest::parse_sparse_family(""), InvalidProblem);
}

TEST_CASE("inputs by spelling are drawn or read", "[sparse]") {
  const Problem problem = Problem::parse("sq=22,sk=35,d=16,dv=9,scale=0.25");
  CHECK(parse_sparse_inputs("csr:density=0.2", problem).spelling == "csr:density=0.2,seed=1");
  const std::string path = "sparse_inputs_check_test.safetensors";
  const SparseOperands written = drawn(SparseFamily::stored_zeros);
  std::ofstream(path, std::ios::binary) << sparse_operands_safetensors(written);
  const SparseInputs inputs = parse_sparse_inputs(path, problem);
  std::remove(path.c_str());
  CHECK(inputs.source == SparseInputs::Source::file);
  CHECK(inputs.spelling == path);
  CHECK(inputs.operands.V == written.V);
  CHECK(verdict_on("sparse_inputs/expm1", truth_of(inputs.operands)) == Verdict::passed);
  CHECK(verdict_on("broken/sparse_unshifted", truth_of(inputs.operands)) == Verdict::violated);
  CHECK_THROWS_AS(parse_sparse_inputs(path, problem), InvalidProblem);  // gone
}

TEST_CASE("findings of sparse inputs as JSON", "[sparse]") {
  const auto list = findings_json(check_sparse_kernel(kernel_named("broken/sparse_unshifted"),
                                                      truth_of(drawn(SparseFamily::normal))));
  REQUIRE(list.size() == 2);
  CHECK(list[0].at("pass") == "forward");
  CHECK(list[0].at("verdict") == "violated");
  CHECK(list[0].at("outputs")[1].at("output") == "LSE");
  CHECK(list[0].at("outputs")[1].at("elements") == 22);
  CHECK(list[0].at("outputs")[1].at("error_over_bound") > 1);
}

}  // namespace
}  // namespace attest::certify
