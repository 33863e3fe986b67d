#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/opcode_runner.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Arithmetic of several words against numbers that are wide enough.
namespace attest::ptx {
namespace {

using testing::Call;
using testing::kernel;
using Bits = std::vector<std::uint64_t>;
using Large = unsigned __int128;

// %x and %y of each thread as numbers of 64 bits and as their words of 32; the results in %d, %e,
// %f.
Bits run(const std::string& statements, const Bits& x, const Bits& y) {
  Bits out(3 * 256, 0);
  Call call(
      kernel(".param .u64 out, .param .u64 x, .param .u64 y",
             ".reg .b64 %a, %o, %x, %y, %d, %e, %f; .reg .b32 %i, %x0, %x1, %y0, %y1, %r<4>;\n"
             "mov.u32 %i, %tid.x; mul.wide.u32 %o, %i, 8; mov.b64 %d, 0; mov.b64 %e, 0;\n"
             "mov.b64 %f, 0; ld.param.u64 %a, [x]; add.u64 %a, %a, %o; ld.global.b64 %x, [%a];\n"
             "ld.param.u64 %a, [y]; add.u64 %a, %a, %o; ld.global.b64 %y, [%a];\n"
             "mov.b64 {%x0, %x1}, %x; mov.b64 {%y0, %y1}, %y;\n" +
                 statements +
                 "\nld.param.u64 %a, [out]; add.u64 %a, %a, %o; st.global.b64 [%a], %d;\n"
                 "st.global.b64 [%a+2048], %e; st.global.b64 [%a+4096], %f; ret;"));
  CHECK(call.buffer("out", out).input("x", x).input("y", y).run(1, 256).to_string() == "");
  return out;
}

TEST_CASE("sums, differences and products of several words", "[ptx]") {
  auto operands = testing::edge_operands({Type::u64, Type::u64});
  for (auto& each : operands) each.resize(256);
  const Bits &x = operands[0], &y = operands[1];
  // Three words: the carry passes on, and out.
  const Bits sums = run("add.cc.u64 %d, %x, %y; addc.cc.u64 %e, %y, %x; addc.u64 %f, 0, 0;", x, y);
  const Bits differences =
      run("sub.cc.u64 %d, %x, %y; subc.cc.s64 %e, %y, %x; subc.u64 %f, 0, 0;", x, y);
  const Bits narrow =
      run("add.cc.u32 %r0, %x0, %y0; addc.s32 %r1, %x1, %y1; mov.b64 %d, {%r0, %r1};\n"
          "sub.cc.s32 %r0, %x0, %y0; subc.u32 %r1, %x1, %y1; mov.b64 %e, {%r0, %r1};",
          x, y);
  const Bits products =
      run("mad.lo.cc.u64 %d, %x, %y, %x; madc.hi.u64 %e, %x, %y, %y;\n"
          "mad.lo.cc.u32 %r0, %x0, %y0, %x1; madc.hi.cc.u32 %r1, %x0, %y0, %y1;\n"
          "mov.b64 %f, {%r0, %r1};",
          x, y);
  const Bits high =
      run("mad.hi.cc.s64 %d, %x, %y, %x; addc.u64 %e, 0, 0; mad.hi.cc.u64 %f, %x, %y, %x;\n"
          "madc.lo.u64 %f, 0, 0, %f;",
          x, y);
  for (std::size_t k = 0; k < 256; ++k) {
    INFO(std::hex << x[k] << " and " << y[k]);
    const Large low = Large{x[k]} + y[k], upper = Large{y[k]} + x[k] + (low >> 64);
    CHECK(sums[k] == static_cast<std::uint64_t>(low));
    CHECK(sums[256 + k] == static_cast<std::uint64_t>(upper));
    CHECK(sums[512 + k] == static_cast<std::uint64_t>(upper >> 64));
    const Large both_x = x[k] | Large{y[k]} << 64, both_y = y[k] | Large{x[k]} << 64;
    const Large difference = both_x - both_y;
    CHECK(differences[k] == static_cast<std::uint64_t>(difference));
    CHECK(differences[256 + k] == static_cast<std::uint64_t>(difference >> 64));
    CHECK(differences[512 + k] == (both_x < both_y ? ~std::uint64_t{0} : 0));
    CHECK(narrow[k] == x[k] + y[k]);
    CHECK(narrow[256 + k] == x[k] - y[k]);
    const Large product = Large{x[k]} * y[k] + (x[k] | Large{y[k]} << 64);
    CHECK(products[k] == static_cast<std::uint64_t>(product));
    CHECK(products[256 + k] == static_cast<std::uint64_t>(product >> 64));
    const std::uint64_t mixed = x[k] >> 32 | y[k] >> 32 << 32;
    CHECK(products[512 + k] == (x[k] & 0xFFFF'FFFF) * (y[k] & 0xFFFF'FFFF) + mixed);
    const auto signed_high =
        static_cast<std::uint64_t>((static_cast<__int128>(static_cast<std::int64_t>(x[k])) *
                                    static_cast<std::int64_t>(y[k])) >>
                                   64);
    const Large signed_sum = Large{signed_high} + x[k];
    CHECK(high[k] == static_cast<std::uint64_t>(signed_sum));
    CHECK(high[256 + k] == static_cast<std::uint64_t>(signed_sum >> 64));
    const Large unsigned_sum = (Large{x[k]} * y[k] >> 64) + x[k];
    CHECK(high[512 + k] == static_cast<std::uint64_t>(unsigned_sum) +
                               static_cast<std::uint64_t>(unsigned_sum >> 64));
  }
}

TEST_CASE("only the lanes that execute leave a carry", "[ptx]") {
  const Bits ones(256, ~std::uint64_t{0});
  const Bits carries =
      run("add.cc.u64 %d, 0, 0; .reg .pred %p; setp.lt.u32 %p, %i, 7;\n"
          "@%p add.cc.u64 %d, %x, %y; addc.u64 %e, 0, 0;",
          ones, ones);
  for (std::size_t k = 0; k < 256; ++k) CHECK(carries[256 + k] == (k < 7 ? 1U : 0U));
}

}  // namespace
}  // namespace attest::ptx
