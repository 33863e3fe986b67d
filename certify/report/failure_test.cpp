#include "certify/report/failure.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"

namespace attest::certify {
namespace {

using fixtures::Defect;
using proptest::Case;

Case case_of(const std::string& problem, proptest::Values values = proptest::Values::normal) {
  return {Problem::parse(problem), values, 7, 1};
}

std::int64_t nonzero(const Tensor& tensor) {
  std::int64_t count = 0;
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) {
    if (tensor.doubles()[e] != 0) ++count;
  }
  return count;
}

TEST_CASE("inputs of a case in which the kernel died come back", "[failure]") {
  const Case c = case_of("sq=2,sk=3,d=2,mask=causal_br,dtype=f16");
  const Inputs inputs = generated_inputs(fixtures::defective_kernel(Defect::none), c);
  const TensorFile file = parse_safetensors(
      safetensors(inputs_file(c, inputs, {"./mine.so", "reference_forward", "crash: why", 2})),
      "x");
  CHECK(file.tensors.count("O") == 0);
  const Failure again = parse_failure(file, "x");
  CHECK(again.of.problem.to_string() == c.problem.to_string());
  CHECK(again.note.kernel == "./mine.so");
  CHECK(again.note.checks == 2);
  CHECK(same_inputs(c, inputs, again.inputs));
}

TEST_CASE("tensors of a failure come back and fail again", "[failure]") {
  const attest_kernel& kernel = fixtures::defective_kernel(Defect::top_left_causal);
  const Case c = case_of("sq=2,sk=3,d=2,hq=2,mask=causal_br,dtype=bf16");
  const Inputs inputs = generated_inputs(kernel, c);
  const TensorFile file = parse_safetensors(
      safetensors(failure_file(kernel, c, inputs,
                               {"broken/top_left_causal", "reference_forward", "why", 3})),
      "x");
  for (const char* output : {"O", "LSE", "dQ", "dK", "dV"}) {
    INFO(output);
    const std::string name(output);
    REQUIRE(file.tensors.count(name) == 1);
    REQUIRE(file.tensors.count("exact." + name) == 1);
    REQUIRE(file.tensors.count("proved_bound." + name) == 1);
    CHECK(file.tensors.at("bound." + name).view().size() == file.tensors.at(name).view().size());
  }
  CHECK(file.tensors.at("Q").view().dtype() == DType::bf16);
  CHECK(file.tensors.at("dLSE").view().dtype() == DType::f32);
  CHECK(file.tensors.at("O").view().dtype() == DType::bf16);
  const Failure again = parse_failure(file, "x");
  CHECK(again.of.problem.to_string() == c.problem.to_string());
  CHECK(again.of.seed == c.seed);
  CHECK(again.note.kernel == "broken/top_left_causal");
  CHECK(again.note.law == "reference_forward");
  CHECK(again.note.message == "why");
  CHECK(again.note.checks == 3);
  for (std::int64_t e = 0; e < inputs.attention->Q.view().size(); ++e) {
    CHECK(again.inputs.attention->Q.doubles()[e] == inputs.attention->Q.doubles()[e]);
  }
  CHECK(same_inputs(c, inputs, again.inputs));
  Inputs other = inputs;
  other.attention->V.set(7, 0, 0, 0, 0);
  CHECK_FALSE(same_inputs(c, inputs, other));
  CHECK(law_on(again.inputs).check(kernel, again.of).verdict == Verdict::violated);
  const attest_kernel& correct = fixtures::defective_kernel(Defect::none);
  CHECK(law_on(again.inputs).check(correct, again.of).verdict == Verdict::passed);
}

TEST_CASE("failures of the loss gradient come back too", "[failure]") {
  const attest_kernel& kernel = fixtures::defective_loss_kernel(fixtures::LossDefect::zero_dx);
  const Case c = case_of("sq=3,d=2");
  const Failure again = parse_failure(
      failure_file(kernel, c, generated_inputs(kernel, c), {"k", "reference_loss", "", 1}), "x");
  CHECK(law_on(again.inputs).check(kernel, c).verdict == Verdict::violated);
  CHECK(law_on(again.inputs)
            .check(fixtures::defective_loss_kernel(fixtures::LossDefect::none), c)
            .verdict == Verdict::passed);
}

TEST_CASE("values are reduced to what still fails in the same output", "[failure]") {
  const attest_kernel& kernel = fixtures::defective_kernel(Defect::top_left_causal);
  const Case c = case_of("sq=1,sk=6,d=4,mask=causal_br");
  const Inputs inputs = generated_inputs(kernel, c);
  const auto reduced = reduce_values(kernel, c, inputs);
  REQUIRE(reduced);
  CHECK(law_on(*reduced).check(kernel, c).verdict == Verdict::violated);
  // Equal scores and one value are enough to tell one key from six.
  CHECK(nonzero(reduced->attention->Q) == 0);
  CHECK(nonzero(reduced->attention->K) == 0);
  CHECK(nonzero(reduced->attention->dO) == 0);
  CHECK(nonzero(reduced->attention->V) <= 1);
  CHECK_FALSE(reduce_values(fixtures::defective_kernel(Defect::none), c, inputs));
}

TEST_CASE("bad failures are refused with what is wrong", "[failure]") {
  const attest_kernel& kernel = fixtures::defective_kernel(Defect::none);
  const Case c = case_of("sq=2,d=2");
  const TensorFile good = failure_file(kernel, c, generated_inputs(kernel, c), {"k", "l", "m", 1});
  CHECK_NOTHROW(parse_failure(good, "x"));
  const auto refused = [](const TensorFile& file, const std::string& why) {
    CHECK_THROWS_WITH(parse_failure(file, "x"),
                      Catch::StartsWith("file 'x': ") && Catch::Contains(why));
    CHECK_THROWS_AS(parse_failure(file, "x"), InvalidProblem);
  };
  const auto with = [&](const char* key, const std::string& value) {
    TensorFile file = good;
    file.metadata[key] = value;
    return file;
  };
  TensorFile none;
  refused(none, "have no 'attest'");
  refused(with("attest", "failure-9"), "this version reads 'failure-1'");
  refused(with("problem", "sq=2"), "does not begin with 'v1;'");
  refused(with("problem", "v1;sq=two,d=2"), "sq");
  refused(with("values", "odd"), "odd");
  refused(with("seed", "-1"), "its seed is '-1'");
  refused(with("threads", "70000"), "its threads is '70000'");
  refused(with("problem", "v1;sq=3,d=2"),
          "tensor 'Q' has shape 1 2 1 2, the problem needs 1 3 1 2");
  refused(with("problem", "v1;sq=2,d=2,dtype=bf16"), "tensor 'Q' has dtype f32");
  TensorFile missing = good;
  missing.tensors.erase("K");
  refused(missing, "has no tensor 'K'");
}

}  // namespace
}  // namespace attest::certify
