#include "gpu/ptx/program/calls.hpp"

#include <cmath>

#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Functions that are called, and branches that a number chooses.
namespace attest::ptx {
namespace {

using simt::Fault;
using testing::Call;
using testing::kernel;
using testing::with;
using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t kThreads = 64;

// testing/calls_nvcc.ptx: polynomials by functions that are not inlined, with a struct by value, an
// assertion that n < 100 and a printf that no thread comes to.
float polynomial(float x, int n) {
  if (n < 0) return x;
  float sum = 1.0F;
  for (int k = 0; k < n; ++k) sum = std::fma(sum, x, static_cast<float>(k));
  return sum;
}
float expected(const std::vector<float>& in, int n, int thread) {
  const int terms = n + thread % 3 - 1;
  float a[3] = {in[static_cast<std::size_t>(thread)], 2.0F, 3.0F};
  for (std::size_t k = 0; k < 3; ++k) a[k] = polynomial(a[k], terms) + in[k];
  return a[2] + (a[0] + a[1]) + polynomial(a[0], 3);
}

simt::LaunchReport called(int n, std::vector<float>& out, const std::vector<float>& in) {
  Call call(testing::text("calls_nvcc"));
  return call.buffer("out", out).input("in", in).value(n).run(1, kThreads);
}

TEST_CASE("functions are called as nvcc compiles them", "[ptx]") {
  std::vector<float> in(kThreads), out(kThreads);
  for (std::size_t k = 0; k < kThreads; ++k) in[k] = static_cast<float>(k % 7) / 4.0F - 0.5F;
  for (const int n : {0, 1, 6, 9}) {  // without terms, too, as some threads return at once
    CHECK(called(n, out, in).to_string() == "");
    for (std::size_t k = 0; k < kThreads; ++k) {
      CHECK(out[k] == expected(in, n, static_cast<int>(k)));
    }
  }
  CHECK(testing::faults(called(100, out, in)) == std::vector{Fault::exception});  // assert
}

std::string with_function(const std::string& function, const std::string& body) {
  return with(
      kernel(".param .u64 out",
             ".reg .b32 %r<9>; .reg .b64 %a<2>; .reg .pred %p; mov.u32 %r0, %tid.x;\n" + body +
                 "\nld.param.u64 %a0, [out]; mad.wide.u32 %a1, %r0, 4, %a0;\n"
                 "st.global.u32 [%a1], %r1; ret;"),
      ".visible .entry", function + "\n.visible .entry");
}

const std::string kHalve =
    ".func (.param .b32 result) halve(.param .b32 value) {\n"
    ".reg .b32 %r<3>; .reg .pred %p; ld.param.u32 %r0, [value]; and.b32 %r1, %r0, 1;\n"
    "setp.ne.u32 %p, %r1, 0; @!%p bra EVEN; st.param.b32 [result], 1000; ret;\n"
    "EVEN: shr.u32 %r2, %r0, 1; st.param.b32 [result], %r2; }";
const std::string kCall =
    "{ .param .b32 v; .param .b32 r; st.param.b32 [v], %r0; call.uni (r), halve, (v); "
    "ld.param.b32 %r1, [r]; }";

TEST_CASE("lanes return at different places, and some are not in a call", "[ptx]") {
  Words out(kThreads);
  const std::string text =
      with_function(kHalve, "mov.u32 %r1, 7; setp.lt.u32 %p, %r0, 40;\n" +
                                with(kCall, "call.uni", "st.param.b32 [r], 7; @%p call"));
  for (const simt::Order order : testing::kOrders) {
    CHECK(Call(text).buffer("out", out).run(1, kThreads, 0, order).to_string() == "");
    for (std::uint32_t k = 0; k < kThreads; ++k) {
      CHECK(out[k] == (k >= 40 ? 7 : k % 2 != 0 ? 1000 : k / 2));
    }
  }
}

TEST_CASE("calls that are not carried out are told", "[ptx]") {
  const auto refusal = [](const std::string& function, const std::string& body) -> std::string {
    try {
      check(parse(with_function(function, body)));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(kHalve, kCall).empty());
  CHECK_THAT(refusal(with(kHalve, "ret;\n", kCall + "ret;\n"), kCall),
             Catch::Contains("'halve' calls itself"));
  CHECK_THAT(refusal(kHalve, with(kCall, "halve", "%a0")), Catch::Contains("through pointers"));
  CHECK_THAT(refusal(kHalve, with(kCall, "(v)", "(v), proto")),
             Catch::Contains("through pointers"));
  CHECK_THAT(refusal(kHalve, with(kCall, "(r), ", "")), Catch::Contains("0 parameters where"));
  CHECK_THAT(refusal(kHalve, with(kCall, "(v)", "(%r0)")), Catch::Contains("no .param variables"));
  CHECK_THAT(refusal(kHalve, with(kCall, ".b32 v;", ".b16 v;")),
             Catch::Contains("'v' has 2 bytes"));
  CHECK_THAT(refusal(".extern .func elsewhere();", "call elsewhere;"),
             Catch::Contains("'elsewhere' has no text in this module"));
  CHECK_THAT(refusal("", "st.param.b32 [out], 5;"), Catch::Contains("is not carried out"));
}

TEST_CASE("an indexed branch takes each lane to its label", "[ptx]") {
  const std::string text = with_function(
      "",
      "and.b32 %r2, %r0, 3;\nts: .branchtargets ONE, TWO, ONE, FOUR;\nbrx.idx %r2, ts;\n"
      "ONE: mov.u32 %r1, 1; bra END; TWO: mov.u32 %r1, 2; bra END; FOUR: mov.u32 %r1, 4; END:");
  Words out(kThreads);
  CHECK(Call(text).buffer("out", out).run(1, kThreads).to_string() == "");
  for (std::uint32_t k = 0; k < kThreads; ++k) CHECK(out[k] == Words{1, 2, 1, 4}[k % 4]);
  const auto beyond = Call(with(text, "%r0, 3;", "%r0, 7;")).buffer("out", out).run(1, kThreads);
  CHECK(testing::faults(beyond) == std::vector{Fault::out_of_bounds});
  CHECK_THROWS_WITH(check(parse(with(text, "brx.idx %r2, ts", "brx.idx %r2, ONE"))),
                    Catch::Contains("'ONE' is no list of labels"));
}

}  // namespace
}  // namespace attest::ptx
