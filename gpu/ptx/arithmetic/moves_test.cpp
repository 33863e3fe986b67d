#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Moves between registers and their parts, loads and stores of every width and with every hint.
namespace attest::ptx {
namespace {

using testing::Call;
using testing::kernel;
using Bits = std::vector<std::uint64_t>;

// Returns what one thread leaves in %out0 to %out2, from %in.
Bits run(const std::string& statements, std::uint64_t in = 0x1122'3344'5566'7788) {
  Bits out(3, 0);
  Call call(
      kernel(".param .u64 out, .param .u64 in",
             ".reg .b64 %a, %in, %out<3>; .reg .b32 %r<5>; .reg .b16 %h<5>; .reg .pred %p<3>;\n"
             ".shared .align 16 .b8 s[32];\n"
             "ld.param.u64 %a, [out]; ld.param.u64 %in, [in]; mov.b64 %out0, 0;\n"
             "mov.b64 %out1, 0; mov.b64 %out2, 0;\n" +
                 statements +
                 "\nst.global.v2.b64 [%a], {%out0, %out1}; st.global.b64 [%a+16], %out2; ret;"));
  CHECK(call.buffer("out", out).value(in).run(1, 1).to_string() == "");
  return out;
}

TEST_CASE("registers are joined and split", "[ptx]") {
  CHECK(run("mov.b64 {%r0, %r1}, %in; mov.b64 %out0, {%r1, %r0};\n"
            "mov.b64 {%h0, %h1, %h2, %h3}, %in; mov.b64 %out1, {%h3, %h2, %h1, %h0};\n"
            "mov.b32 {%h0, %h1}, %r0; mov.b32 %r2, {%h1, %h0}; cvt.u64.u32 %out2, %r2;") ==
        Bits{0x5566'7788'1122'3344, 0x7788'5566'3344'1122, 0x7788'5566});
  CHECK(run("mov.b64 {_, %r1}, %in; cvt.u64.u32 %out0, %r1; mov.u16 %h0, -2; cvt.s64.s16 %out1, "
            "%h0;\n"
            "mov.f64 %out2, 0d3FF0000000000000;") ==
        Bits{0x1122'3344, ~std::uint64_t{1}, 0x3FF0'0000'0000'0000});
}

TEST_CASE("predicates are moved, and instructions skipped by them", "[ptx]") {
  CHECK(run("mov.pred %p0, 1; mov.pred %p1, %p0; not.pred %p2, %p1; @%p1 mov.b64 %out0, 1;\n"
            "@!%p1 mov.b64 %out1, 1; @%p2 mov.b64 %out1, 2; selp.b64 %out2, 3, 4, %p2;") ==
        Bits{1, 0, 4});
}

TEST_CASE("windows of generic addresses", "[ptx]") {
  CHECK(
      run("mov.u64 %out0, s; cvta.shared.u64 %out1, %out0; isspacep.shared %p0, %out1;\n"
          "isspacep.global %p1, %out1; isspacep.global %p2, %a; cvta.to.shared.u64 %out0, %out1;\n"
          "selp.b64 %out1, 1, 0, %p0; @%p1 mov.b64 %out1, 2; selp.b64 %out2, 1, 0, %p2;") ==
      Bits{0, 1, 1});
}

TEST_CASE("loads and stores of every width, with hints of caches", "[ptx]") {
  for (const std::string hint : {"", ".ca", ".cg", ".cs", ".nc.L1::no_allocate.L2::128B"}) {
    CHECK(run("st.global.v2.b64 [%a], {%in, %in}; ld.global" + hint +
              ".v4.u16 {%h0, %h1, %h2, %h3}, [%a+8];\n"
              "mov.b64 %out0, {%h0, %h1, %h2, %h3};\n"
              "ld.volatile.global.v2.s8 {%h0, %h1}, [%a+6]; cvt.s64.s16 %out1, %h0;\n"
              "ld.global.b64 %out2, [%a+8];") ==
          Bits{0x1122'3344'5566'7788, 0x22, 0x1122'3344'5566'7788});
  }
  CHECK(
      run("st.shared.b64 [s], %in; st.shared.u8 [s+2], 255; st.weak.shared.v2.b16 [s+4], {1, 2};\n"
          "ld.shared.b64 %out0, [s]; ld.shared::cta.s8 %r0, [s+2]; cvt.s64.s32 %out1, %r0;") ==
      Bits{0x0002'0001'55FF'7788, ~std::uint64_t{0}, 0});
}

TEST_CASE("policies of caches change no value", "[ptx]") {
  CHECK(run("createpolicy.fractional.L2::evict_last.b64 %out2, 1.0;\n"
            "createpolicy.fractional.L2::evict_first.b64 %out2;\n"
            "st.global.L1::evict_first.L2::cache_hint.b64 [%a], %in, %out2;\n"
            "ld.global.L1::evict_last.L2::cache_hint.v2.b32 {%r0, %r1}, [%a], %out2;\n"
            "mov.b64 %out0, {%r1, %r0}; mov.b64 %out2, 0;") == Bits{0x5566'7788'1122'3344, 0, 0});
}

TEST_CASE("an address may be in a register that is loaded", "[ptx]") {
  CHECK(run("st.global.b64 [%a], %in; mov.b64 %out2, %a; ld.global.b64 %out2, [%out2];")[2] ==
        0x1122'3344'5566'7788);
}

}  // namespace
}  // namespace attest::ptx
