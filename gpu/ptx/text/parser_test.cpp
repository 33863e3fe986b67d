#include "gpu/ptx/text/parser.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/texts.hpp"

namespace attest::ptx {
namespace {

using testing::kernel;
using testing::with;

// Message of the refusal; empty where there is none.
std::string refusal(const std::string& text) {
  try {
    parse(text);
  } catch (const InvalidProblem& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a kernel of nvcc is read", "[ptx]") {
  const Module module = parse(testing::text("softmax_nvcc"));
  CHECK(module.version_major == 9);
  CHECK(module.target == "sm_80");
  REQUIRE(module.functions.size() == 2);
  const Function& add = module.functions[0];
  CHECK(add.name == "vector_add");
  CHECK(add.parameters.size() == 4);
  CHECK(add.parameters[3].type == Type::u32);
  CHECK(add.statements.front().opcode == "ld.param.u64");
  CHECK(add.statements.front().operands[1].name == "vector_add_param_0");
  CHECK(add.labels.at(0).statement + 1 == add.statements.size());
  const auto branch = std::find_if(add.statements.begin(), add.statements.end(),
                                   [](const Statement& each) { return each.opcode == "bra"; });
  REQUIRE(branch != add.statements.end());
  CHECK(branch->predicate->name == "%p1");
  CHECK(branch->source.line == 5);
  const Function& softmax = module.functions[1];
  CHECK(softmax.variables.at(0).size_bytes() == 128);
  const auto shuffle =
      std::find_if(softmax.statements.begin(), softmax.statements.end(),
                   [](const Statement& each) { return each.opcode == "shfl.sync.bfly.b32"; });
  REQUIRE(shuffle != softmax.statements.end());
  CHECK(shuffle->operands[0].parts[1].name == "%p3");
  CHECK(shuffle->source.file == 2);
  CHECK(shuffle->source.call_file == 1);
  CHECK(shuffle->source.call_line == 12);
}

TEST_CASE("a kernel of Triton is read", "[ptx]") {
  const Module module = parse(testing::text("softmax_triton"));
  CHECK(module.variables.at(0).elements == 0);
  CHECK(module.variables.at(0).alignment == 16);
  CHECK(module.files.at(0) == std::pair{1, std::string("small.py")});
  const Function& softmax = module.functions.at(0);
  CHECK(softmax.required_threads == std::vector<std::uint64_t>{64});
  CHECK(softmax.parameters[0].alignment == 8);
  const auto load =
      std::find_if(softmax.statements.begin(), softmax.statements.end(),
                   [](const Statement& each) { return each.opcode == "ld.global.b32"; });
  REQUIRE(load != softmax.statements.end());
  CHECK(load->source.line == 8);
  CHECK(load->operands[0].kind == Operand::Kind::vector);
}

TEST_CASE("numbers in every spelling", "[ptx]") {
  const auto bits = [](const std::string& number) {
    const Module module = parse(kernel("", "mov.b64 %rd1, " + number + ";"));
    return module.functions[0].statements[0].operands[1].value.bits;
  };
  CHECK(bits("12") == 12);
  CHECK(bits("-1") == ~std::uint64_t{0});
  CHECK(bits("0xFF") == 255);
  CHECK(bits("0b101") == 5);
  CHECK(bits("017") == 15);
  CHECK(bits("7U") == 7);
  CHECK(bits("0") == 0);
  CHECK(bits("0f3F800000") == 0x3F800000U);
  CHECK(bits("-0f3F800000") == 0xBF800000U);
  CHECK(bits("0d3FF0000000000000") == 0x3FF0000000000000U);
  CHECK(bits("1.5") == 0x3FF8000000000000U);
  CHECK(bits("25e-1") == 0x4004000000000000U);
  for (const char* wrong : {"0f3F80", "0x", "12q", "0b12", "99999999999999999999", "1.5.2", "08"}) {
    INFO(wrong);
    CHECK(refusal(kernel("", std::string("mov.b64 %rd1, ") + wrong + ";")) != "");
  }
}

TEST_CASE("scopes, labels and tables of branches", "[ptx]") {
  const Module module = parse(kernel("",
                                     "{ .reg .u32 t; L: { mov.u32 t, 1; } }\n"
                                     "T: .branchtargets L, M;\nM: ret;"));
  const Function& function = module.functions[0];
  CHECK(function.scopes == std::vector<int>{-1, 0, 1});
  CHECK(function.registers[0].scope == 1);
  CHECK(function.statements[0].scope == 2);
  CHECK(function.labels[0].scope == 1);
  CHECK(function.branch_targets[0].labels == std::vector<std::string>{"L", "M"});
  CHECK(function.labels[1].statement == 1);
}

TEST_CASE("initial values", "[ptx]") {
  const std::string text = with(kernel("", "ret;"), ".visible",
                                ".global .align 4 .b8 t[4][2] = {1, 2, 255};\n"
                                ".const .f32 x = 0f3F800000;\n.visible");
  const Module module = parse(text);
  CHECK(module.variables.at(0).size_bytes() == 8);
  CHECK(module.variables.at(0).values == std::vector<std::uint64_t>{1, 2, 255});
  CHECK(module.variables.at(1).values.at(0) == 0x3F800000U);
}

TEST_CASE("a refusal names line, column and text", "[ptx]") {
  CHECK(refusal(kernel("", "mov.u32 %r1 %r2;")) ==
        "PTX line 6, column 13: expected ';', got '%r2'");
  CHECK(refusal(kernel("", ".regs .b32 %r<3>;")) ==
        "PTX line 6, column 1: unknown directive '.regs' in a function");
  CHECK(refusal(kernel("", "mov.u32 %r1, #2;")) == "PTX line 6, column 14: no PTX begins with '#'");
  CHECK(refusal(kernel("", "{ ret;")) == "PTX line 5, column 1: '{' of 'kernel' has no '}'");
  CHECK(refusal(with(kernel("", "ret;"), "8.7", "6.5")) ==
        "PTX line 1, column 10: expected a PTX version from 7.0 to 9.x, got '6.5'");
  CHECK(refusal(with(kernel("", "ret;"), "64", "32")) ==
        "PTX line 3, column 1: addresses of 64 bits alone are carried out");
  CHECK(refusal(kernel("", ".shared .b8 a[99999999999];")) ==
        "PTX line 6, column 15: expected an extent of at most 4294967296, got '99999999999'");
  CHECK(refusal(kernel(".param .b33 a", "ret;")) ==
        "PTX line 4, column 31: expected a type such as .b32, got '.b33'");
  CHECK(refusal("") == "PTX line 1, column 1: expected '.version', got the end of the text");
}

}  // namespace
}  // namespace attest::ptx
