#include <bit>
#include <cmath>

#include "core/dtype/dtype.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Instructions on matrices against PTX ISA's tables of fragments.
namespace attest::ptx {
namespace {

using testing::Call;
using testing::kernel;
using Words = std::vector<std::uint32_t>;

constexpr std::size_t kLanes = 32;

float number(std::uint64_t seed, std::size_t row, std::size_t column) {
  return static_cast<float>(mix(seed, 64 * row + column) % 33) / 4.0F - 4.0F;
}

struct Shape {
  const char* type;
  std::size_t depth, a_words, b_words;
  bool is_narrow;  // two factors in a word
};
constexpr Shape kShapes[] = {{"f16", 16, 4, 2, true},  {"bf16", 16, 4, 2, true},
                             {"f16", 8, 2, 1, true},   {"bf16", 8, 2, 1, true},
                             {"tf32", 8, 4, 2, false}, {"tf32", 4, 2, 1, false}};

std::uint32_t bits_of(const Shape& shape, float value) {
  if (!shape.is_narrow) return std::bit_cast<std::uint32_t>(value) | 0x155U;  // ignored bits
  return shape.type[0] == 'f' ? f16_from_float(value) : bf16_from_float(value);
}

// Row and column of the i-th element of a lane's fragment.
struct Place {
  std::size_t row, column;
};
Place place_in_a(const Shape& shape, std::size_t lane, std::size_t i) {
  const std::size_t group = lane / 4, member = lane % 4;
  if (!shape.is_narrow) return {i % 2 == 0 ? group : group + 8, i < 2 ? member : member + 4};
  const bool is_upper = i % 4 < 2;
  return {is_upper ? group : group + 8, member * 2 + i % 2 + (i < 4 ? 0 : 8)};
}
Place place_in_b(const Shape& shape, std::size_t lane, std::size_t i) {
  const std::size_t group = lane / 4, member = lane % 4;
  if (!shape.is_narrow) return {i == 0 ? member : member + 4, group};
  return {member * 2 + i % 2 + (i < 2 ? 0 : 8), group};
}

// `to`: the registers of D, which may be those of C in another order.
void check_products(const std::string& to) {
  for (const Shape& shape : kShapes) {
    const std::size_t per_word = shape.is_narrow ? 2 : 1;
    Words a(kLanes * 4), b(kLanes * 2), d(kLanes * 4);
    std::vector<float> c(kLanes * 4);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (std::size_t i = 0; i < shape.a_words * per_word; ++i) {
        const Place place = place_in_a(shape, lane, i);
        a[4 * lane + i / per_word] |= bits_of(shape, number(1, place.row, place.column))
                                      << 16 * (i % per_word);
      }
      for (std::size_t i = 0; i < shape.b_words * per_word; ++i) {
        const Place place = place_in_b(shape, lane, i);
        b[2 * lane + i / per_word] |= bits_of(shape, number(2, place.row, place.column))
                                      << 16 * (i % per_word);
      }
      for (std::size_t i = 0; i < 4; ++i) {
        c[4 * lane + i] = number(3, lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2);
      }
    }
    const std::string type = shape.type;
    const std::string opcode = "mma.sync.aligned.m16n8k" + std::to_string(shape.depth) +
                               ".row.col.f32." + type + "." + type + ".f32 ";
    Call call(kernel(
        ".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d",
        ".reg .b64 %a<9>; .reg .b32 %a_<4>; .reg .b32 %b_<2>; .reg .f32 %c<4>; .reg .b32 %r;\n"
        "mov.u32 %r, %tid.x; mul.wide.u32 %a0, %r, 16; mul.wide.u32 %a1, %r, 8;\n"
        "ld.param.u64 %a2, [a]; add.u64 %a2, %a2, %a0;\n"
        "ld.global.v4.b32 {%a_0, %a_1, %a_2, %a_3}, [%a2];\n"
        "ld.param.u64 %a3, [b]; add.u64 %a3, %a3, %a1; ld.global.v2.b32 {%b_0, %b_1}, [%a3];\n"
        "ld.param.u64 %a4, [c]; add.u64 %a4, %a4, %a0;\n"
        "ld.global.v4.f32 {%c0, %c1, %c2, %c3}, [%a4];\n" +
            opcode + "{" + to + "}, " +
            (shape.a_words == 4 ? "{%a_0, %a_1, %a_2, %a_3}, " : "{%a_0, %a_1}, ") +
            (shape.b_words == 2 ? "{%b_0, %b_1}" : "{%b_0}") + ", {%c0, %c1, %c2, %c3};\n" +
            "ld.param.u64 %a5, [d]; add.u64 %a5, %a5, %a0;\n"
            "st.global.v4.f32 [%a5], {" +
            to + "}; ret;"));
    CHECK(call.input("a", a).input("b", b).input("c", c).buffer("d", d).run(1, 32).to_string() ==
          "");
    for (std::size_t k = 0; k < d.size(); ++k) {
      const std::size_t lane = k / 4, i = k % 4;
      const std::size_t row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
      float expected = number(3, row, column);  // small multiples of 1/16: exact
      for (std::size_t j = 0; j < shape.depth; ++j) {
        expected += number(1, row, j) * number(2, j, column);
      }
      INFO(opcode << "row " << row << " column " << column);
      CHECK(std::bit_cast<float>(d[k]) == expected);
    }
  }
}

TEST_CASE("mma.sync multiplies fragments as PTX lays them out", "[ptx]") {
  check_products("%c0, %c1, %c2, %c3");
  check_products("%c2, %c3, %c0, %c1");
}

// Shared memory has half (i, j) of small matrix k at 64 k + 8 i + j.
TEST_CASE("ldmatrix and stmatrix move small matrices", "[ptx]") {
  for (const std::string transposed : {"", ".trans"}) {
    for (const std::size_t count : {1U, 2U, 4U}) {
      std::vector<std::uint16_t> in(256), out(256, 0);
      for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<std::uint16_t>(3 * k + 1);
      Words words(kLanes * 4, 0);
      const std::string registers = count == 1   ? "{%w0}"
                                    : count == 2 ? "{%w0, %w1}"
                                                 : "{%w0, %w1, %w2, %w3}";
      const std::string form =
          "matrix.sync.aligned.m8n8.x" + std::to_string(count) + transposed + ".shared.b16 ";
      Call call(
          kernel(".param .u64 in, .param .u64 words, .param .u64 out",
                 ".shared .align 16 .b8 s[512]; .shared .align 16 .b8 t[512];\n"
                 ".reg .b64 %a<9>; .reg .b32 %w<8>; .reg .b32 %r<5>;\n"
                 "mov.u32 %r0, %tid.x; mul.wide.u32 %a0, %r0, 16; shl.b32 %r1, %r0, 4;\n"
                 "mov.u32 %r2, s; add.u32 %r2, %r2, %r1; mov.u32 %r3, t; add.u32 %r3, %r3, %r1;\n"
                 "ld.param.u64 %a1, [in]; add.u64 %a1, %a1, %a0;\n"
                 "ld.global.v4.b32 {%w4, %w5, %w6, %w7}, [%a1];\n"
                 "st.shared.v4.b32 [%r2], {%w4, %w5, %w6, %w7};\n"
                 "mov.b32 %w0, 0; mov.b32 %w1, 0; mov.b32 %w2, 0; mov.b32 %w3, 0;\n"
                 "st.shared.v4.b32 [%r3], {%w0, %w1, %w2, %w3}; bar.warp.sync -1;\n"
                 "ld" +
                     form + registers +
                     ", [%r2];\n"
                     "st" +
                     form + "[%r3], " + registers +
                     "; bar.warp.sync -1;\n"
                     "ld.param.u64 %a2, [words]; add.u64 %a2, %a2, %a0;\n"
                     "st.global.v4.b32 [%a2], {%w0, %w1, %w2, %w3};\n"
                     "ld.shared.v4.b32 {%w4, %w5, %w6, %w7}, [%r3]; ld.param.u64 %a3, [out];\n"
                     "add.u64 %a3, %a3, %a0; st.global.v4.b32 [%a3], {%w4, %w5, %w6, %w7}; ret;"));
      call.input("in", in).buffer("words", words).buffer("out", out);
      CHECK(call.run(1, 32).to_string() == "");
      for (std::size_t k = 0; k < in.size(); ++k) CHECK(out[k] == (k < 64 * count ? in[k] : 0));
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        for (std::size_t matrix = 0; matrix < count; ++matrix) {
          const std::size_t i = lane / 4, j = lane % 4 * 2;
          const auto at = [&](std::size_t row, std::size_t column) {
            return std::uint32_t{in[64 * matrix + 8 * row + column]};
          };
          const std::uint32_t expected =
              transposed.empty() ? at(i, j) | at(i, j + 1) << 16 : at(j, i) | at(j + 1, i) << 16;
          CHECK(words[4 * lane + matrix] == expected);
        }
      }
    }
  }
}

TEST_CASE("movmatrix transposes", "[ptx]") {
  std::vector<std::uint16_t> in(64), out(64);
  for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<std::uint16_t>(3 * k + 1);
  Call call(kernel(".param .u64 in, .param .u64 out",
                   ".reg .b64 %a<3>; .reg .b32 %r<3>; mov.u32 %r0, %tid.x;\n"
                   "ld.param.u64 %a0, [in]; mad.wide.u32 %a0, %r0, 4, %a0;\n"
                   "ld.global.b32 %r1, [%a0]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;\n"
                   "ld.param.u64 %a1, [out]; mad.wide.u32 %a1, %r0, 4, %a1;\n"
                   "st.global.b32 [%a1], %r2; ret;"));
  CHECK(call.input("in", in).buffer("out", out).run(1, 32).to_string() == "");
  for (std::size_t k = 0; k < in.size(); ++k) CHECK(out[k] == in[k % 8 * 8 + k / 8]);
}

TEST_CASE("Triton's product of two tiles", "[ptx]") {
  constexpr std::size_t kSize = 32;
  std::vector<std::uint16_t> a(kSize * kSize), b(kSize * kSize);
  for (std::size_t k = 0; k < a.size(); ++k) {
    a[k] = bf16_from_float(number(1, k / kSize, k % kSize));
    b[k] = bf16_from_float(number(2, k / kSize, k % kSize));
  }
  std::vector<float> c(kSize * kSize, NAN);
  Call call(testing::text("dot_triton"));
  call.input("a", a).input("b", b).buffer("c", c);
  call.value(std::uint64_t{0}).value(std::uint64_t{0});
  CHECK(call.run(1, 64, 4096).to_string() == "");
  for (std::size_t k = 0; k < c.size(); ++k) {
    float expected = 0.0F;  // small multiples of 1/16: exact
    for (std::size_t j = 0; j < kSize; ++j) {
      expected += number(1, k / kSize, j) * number(2, j, k % kSize);
    }
    REQUIRE(c[k] == expected);
  }
}

// Two warps store at one place, as layouts do that hold a tile twice.
TEST_CASE("equal matrices may be stored by two warps, others not", "[ptx]") {
  const auto faults = [](const std::string& value) {
    Call call(kernel("",
                     ".shared .align 16 .b8 s[512]; .reg .b32 %w<4>; .reg .b32 %r<3>;\n"
                     "mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; shl.b32 %r1, %r1, 4;\n"
                     "mov.u32 %r2, s; add.u32 %r2, %r2, %r1; mov.b32 %w0, " +
                         value + ";\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%w0}; ret;"));
    return testing::faults(call.run(1, 64));
  };
  CHECK(faults("%r1").empty());
  CHECK(faults("%r0") == std::vector{simt::Fault::race});
}

TEST_CASE("matrices need the whole warp", "[ptx]") {
  Call call(kernel("",
                   ".reg .b32 %w<4>; .reg .pred %p; mov.u32 %w0, %tid.x;\n"
                   "setp.lt.u32 %p, %w0, 31; @%p ldmatrix.sync.aligned.m8n8.x1.shared.b16 "
                   "{%w1}, [0]; ret;"));
  CHECK(testing::faults(call.run(1, 32)) == std::vector{simt::Fault::divergence});
}

}  // namespace
}  // namespace attest::ptx
