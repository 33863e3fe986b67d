#include "certify/report/html/mathematics.hpp"

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

TEST_CASE("formulas are typeset", "[html]") {
  CHECK(mathematics("N^2 d^2 / M") == "N<sup>2</sup> d<sup>2</sup> / M");
  CHECK(mathematics("d^2 <= M <= N d") == "d<sup>2</sup> \u2264 M \u2264 N d");
  CHECK(mathematics("1 / sqrt(M)") == "1 / \u221a<span class=\"root\">M</span>");
  CHECK(mathematics("(B/3)^(3/2)") == "(B/3)<sup>3/2</sup>");
  CHECK(mathematics("sqrt(Z_AXA)") == "\u221a<span class=\"root\">Z<sub>AXA</sub></span>");
  CHECK(mathematics("d_k + d_v") == "d<sub>k</sub> + d<sub>v</sub>");
  CHECK(mathematics("2^-3 to 10^6") == "2<sup>-3</sup> to 10<sup>6</sup>");
  CHECK(mathematics("Theta(N d)") == "\u0398(N d)");
  CHECK(mathematics("n^2d") == "n<sup>2</sup>d");
}

TEST_CASE("names and text that is no formula stay", "[html]") {
  for (const char* text : {"two_pass_row:bq=4", "flash2_row", "head_dim_qk", "a_long", "a_b_c",
                           "x ^ y", "^2", "a^", "sqrt(M", "BigTheta(N)", "M", ""}) {
    INFO(text);
    CHECK(mathematics(text) == text);
    CHECK(plain_mathematics(text) == text);
  }
}

TEST_CASE("text around formulas is escaped", "[html]") {
  CHECK(mathematics("<b> & d^2 < M") == "&lt;b&gt; &amp; d<sup>2</sup> &lt; M");
  CHECK(mathematics("sqrt(<i>)") == "\u221a<span class=\"root\">&lt;i&gt;</span>");
  CHECK(mathematics("N^(<i>)") == "N<sup>&lt;i&gt;</sup>");
  CHECK(mathematics("\xff^2") == "\\xff^2");
}

TEST_CASE("drawings have the signs of Unicode", "[html]") {
  CHECK(plain_mathematics("M / d^2") == "M / d\u00b2");
  CHECK(plain_mathematics("N^10") == "N\u00b9\u2070");
  CHECK(plain_mathematics("M^(3/2)") == "M^(3/2)");
  CHECK(plain_mathematics("1/sqrt(M) >= sqrt(2 d)") == "1/\u221aM \u2265 \u221a(2 d)");
  CHECK(plain_mathematics("d_k") == "d_k");
}

}  // namespace
}  // namespace attest::certify
