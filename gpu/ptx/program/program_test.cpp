#include "gpu/ptx/program/program.hpp"

#include <cstring>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/texts.hpp"
#include "gpu/ptx/text/parser.hpp"

namespace attest::ptx {
namespace {

using testing::kernel;

constexpr const char* kRegisters =
    ".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .b16 %h<4>; .reg .pred %p<4>; .shared .b32 s[4];\n";

// Message of the refusal; empty where there is none. Statements stand in line 7.
std::string refusal(const std::string& statements) {
  try {
    check(parse(kernel(".param .u64 a", kRegisters + statements)));
  } catch (const InvalidProblem& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("what is not carried out is refused with its name, line and the nearest", "[ptx]") {
  CHECK(refusal("add.s32 %r1, %r2, %r3;") == "");
  CHECK(refusal("ad.s32 %r1, %r2, %r3;") ==
        "PTX line 7, column 1: 'ad.s32' is not carried out; did you mean 'add'?");
  CHECK(
      refusal("add.ftz.s32 %r1, %r2, %r3;") ==
      "PTX line 7, column 1: 'add.ftz.s32' is not carried out, for '.s32' there; the nearest form "
      "is add[.rn|.rz|.rm|.rp][.ftz][.sat].f32");
  CHECK(refusal("mul.s32 %r1, %r2, %r3;") ==
        "PTX line 7, column 1: 'mul.s32' is not carried out, for '.s32' there; the nearest form is "
        "mul.lo(.s16|.u16|.s32|.u32|.s64|.u64)");
  CHECK(refusal("fma.f32 %r1, %r2, %r3, %r1;") ==
        "PTX line 7, column 1: 'fma.f32' is not carried out, for '.f32' there; the nearest form is "
        "fma(.rn|.rz|.rm|.rp)[.ftz][.sat].f32");
  CHECK(refusal("mul.lo %r1, %r2, %r3;") ==
        "PTX line 7, column 1: 'mul.lo' is not carried out, for it without more modifiers; the "
        "nearest form is mul.lo(.s16|.u16|.s32|.u32|.s64|.u64)");
  CHECK(refusal("call.uni vprintf, (%r1);").find("'vprintf' is no function of this module") !=
        std::string::npos);
}

TEST_CASE("operands are held against what the instruction takes", "[ptx]") {
  CHECK(refusal("add.s32 %r1, %r2, %rd3;") ==
        "PTX line 7, column 19: '%rd3' is declared as .b64; this operand takes .s32");
  CHECK(refusal("add.s32 %r1, %r2, %p1;") ==
        "PTX line 7, column 19: '%p1' is declared as .pred; this operand takes .s32");
  CHECK(refusal("add.s32 %r1, %r2, %r4;") ==
        "PTX line 7, column 19: '%r4' is not declared; did you mean '%r0'?");
  CHECK(refusal("add.s32 %r1, %r2;") ==
        "PTX line 7, column 1: 'add.s32' has 2 operands; it takes: d a b");
  CHECK(refusal("add.s32 4, %r2, %r3;") == "PTX line 7, column 9: a number takes no result");
  CHECK(refusal("add.s32 %r1, _, %r3;") ==
        "PTX line 7, column 14: '_' takes results; here a value is read");
  CHECK(refusal("add.s32 %r1, %r2, !%r3;") ==
        "PTX line 7, column 19: '!' belongs before predicates that are read");
  CHECK(refusal("add.s32 %r1, %r2, 0x1FFFFFFFF;") ==
        "PTX line 7, column 19: a number of more than 32 bits");
  CHECK(refusal("add.s32 %r1, %r2, 0f3F800000;") ==
        "PTX line 7, column 19: a floating-point number where .s32 is read");
  CHECK(refusal("add.f32 %r1, %r2, 3;") ==
        "PTX line 7, column 19: an integer where .f32 is read; write 0f…");
  CHECK(refusal("add.s32 %r1, %r2, {%r1, %r2};") ==
        "PTX line 7, column 19: expected one register or number");
  CHECK(refusal("ld.shared.v2.b32 {%r1}, [s];") ==
        "PTX line 7, column 18: 1 registers where there must be 2");
  CHECK(refusal("ld.global.b32 %r1, [s];") ==
        "PTX line 7, column 20: 's' lies in another state space");
  CHECK(refusal("ld.shared.b32 %r1, %r2;") ==
        "PTX line 7, column 20: expected an address such as [%rd1 + 4]");
  CHECK(refusal("ld.shared.b32 %h1, [s];") ==
        "PTX line 7, column 15: '%h1' is declared as .b16; this operand takes .b32");
  CHECK(refusal("ld.shared.b16 %r1, [s];") == "");  // a register may be wider
  CHECK(refusal("ld.param.b64 %rd1, [a+4];") == "PTX line 7, column 20: 'a' has 8 bytes");
  CHECK(refusal("ld.param.b64 %rd1, [4];") ==
        "PTX line 7, column 20: a parameter is read by its name or by a register with its address");
  CHECK(refusal("mov.b64 %rd1, s;") == "");
  CHECK(refusal("mov.b16 %h1, s;") ==
        "PTX line 7, column 14: the address of 's' does not fit here");
  CHECK(refusal("mov.b32 %r1, %tid.w;") == "PTX line 7, column 14: '%tid.w' is not declared");
  CHECK(refusal("mov.b32 %r1|%p1, %r2;") == "PTX line 7, column 9: 'mov.b32' takes no '|' here");
  CHECK(refusal("bra L;") == "PTX line 7, column 5: 'L' is no label of this function");
  CHECK(refusal("{ L: ret; } bra L;") == "PTX line 7, column 17: 'L' is no label of this function");
  CHECK(refusal("{ .reg .b64 %r1; add.s32 %r1, %r2, %r3; }") ==
        "PTX line 7, column 26: '%r1' is declared as .b64; this operand takes .s32");
  CHECK(refusal(".reg .b32 %r3;") == "PTX line 7, column 11: '%r3' is declared twice in one scope");
  CHECK(refusal(".reg .b128 %q;") ==
        "PTX line 7, column 12: registers of 8 and 128 bits are not carried out");
}

TEST_CASE("a kernel is chosen by its name", "[ptx]") {
  const Module module = parse(testing::text("softmax_nvcc"));
  CHECK(check(module, "vector_add").name == "vector_add");
  CHECK_THROWS_WITH(check(module),
                    "PTX: there are 2 kernels; name one of: vector_add, row_softmax");
  CHECK_THROWS_WITH(
      check(module, "vector_ad"),
      "PTX: no kernel 'vector_ad'; did you mean 'vector_add'? (there are: vector_add, "
      "row_softmax)");
}

TEST_CASE("extern shared memory comes after the static", "[ptx]") {
  const std::string text =
      testing::with(kernel("", ".shared .b8 s[5]; .reg .b32 %r; mov.b32 %r, dynamic; ret;"),
                    ".visible", ".extern .shared .align 16 .b8 dynamic[];\n.visible");
  const Program program = check(parse(text));
  CHECK(program.static_shared_bytes == 5);
  CHECK(program.shared_bytes(0) == 5);
  CHECK(program.shared_bytes(8) == 24);
  std::uint32_t address = 0;
  std::memcpy(&address, program.registers.data() + program.code[0].slots[1], sizeof address);
  CHECK(address == 16);
}

}  // namespace
}  // namespace attest::ptx
