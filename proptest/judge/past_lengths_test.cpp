#include "proptest/judge/past_lengths.hpp"

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/register.hpp"
#include "proptest/judge/buffer.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {
namespace {

using fixtures::Defect;

// Asks a law about a problem with query lengths.
LawResult said(const attest_kernel& kernel, const char* law, const char* problem) {
  const Case c{Problem::parse(problem), Values::normal, 3, 1};
  return find_law(law).check(kernel, c);
}

const char* const kProblems[] = {
    "b=2,hq=2,sq=5,sk=9,d=8,query_lengths=3_5",
    "b=3,hq=2,hkv=1,sq=5,sk=9,d=8,sinks=drawn_3,mask=causal_br,query_lengths=0_2_5",
    "hq=2,d=8,mask=cu_3x5_5x9,bias=bq_drawn_2,query_lengths=2_0"};

TEST_CASE("what is written past a length", "[past_lengths]") {
  for (const char* text : kProblems) {
    INFO(text);
    const Problem p = Problem::parse(text);
    for (const auto& axes : {p.o_axes(), p.lse_axes()}) {
      const Buffer untouched(axes.size() == 4 ? "O" : "LSE", DType::f32,
                             lay_out(axes, p.layout, Strides::packed, Repeat::none));
      const Tensor left = untouched.packed_copy();
      CHECK(written_past_lengths(p, left).empty());
      const Tensor zeros(untouched.view().name(), DType::f32, axes);
      CHECK_THAT(written_past_lengths(p, zeros), Catch::Contains("which lies past its length"));
    }
  }
  const Problem p = Problem::parse(kProblems[0]);
  Tensor LSE("LSE", DType::f32, p.lse_axes());
  CHECK(written_past_lengths(p, LSE) ==
        "wrote query 3 of batch entry 0 of LSE, which lies past its length of 3, and claims to "
        "write no such row");
}

TEST_CASE("rows past a length may be left where the contract says so, and nowhere else",
          "[past_lengths]") {
  const attest_kernel& right = fixtures::kernel_leaving_rows();
  attest_kernel unsaid = right, written = fixtures::defective_kernel(Defect::none);
  unsaid.description.past_length = ATTEST_PAST_EMPTY_ROW;
  written.description.past_length = ATTEST_PAST_NOT_WRITTEN;
  for (const char* problem : kProblems) {
    INFO(problem);
    for (const char* law : {"reference_forward", "reference_backward"}) {
      CHECK(said(right, law, problem).verdict == Verdict::passed);
      CHECK(said(unsaid, law, problem).verdict == Verdict::violated);
      const LawResult result = said(written, law, problem);
      CHECK(result.verdict == Verdict::violated);
      CHECK_THAT(result.message, Catch::Contains("claims to write no such row"));
    }
  }
  const char* const plain = "b=2,hq=2,sq=5,sk=9,d=8";
  CHECK(said(written, "reference_backward", plain).verdict == Verdict::passed);
}

TEST_CASE("the kernel that leaves rows keeps every law", "[past_lengths]") {
  const attest_kernel& kernel = fixtures::kernel_leaving_rows();
  const std::uint64_t cases = attest::testing::is_nightly() ? 100 : 4;
  std::uint64_t seen = 0;
  for (std::uint64_t index = 0; seen < cases; ++index) {
    const Case c = generate(kernel.description, Tier::smoke, 2, index);
    if (c.problem.query_lengths.kind == QueryLengths::Kind::none) continue;
    ++seen;
    for (const Law& law : laws()) {
      if (!concerns(law, kernel.description)) continue;
      const LawResult result = law.check(kernel, c);
      INFO(law.name << " " << c.problem.to_string() << ": " << result.message);
      CHECK(result.verdict != Verdict::violated);
      CHECK(result.verdict != Verdict::improbable);
    }
  }
}

}  // namespace
}  // namespace attest::proptest
