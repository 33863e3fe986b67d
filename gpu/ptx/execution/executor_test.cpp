#include "gpu/ptx/execution/executor.hpp"

#include <bit>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

namespace attest::ptx {
namespace {

using testing::Call;
using testing::kernel;

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t k = 0; k < count; ++k) {
    values[k] = static_cast<float>((k * 37 + 11) % 64) / 8.0F - 4.0F;
  }
  return values;
}

TEST_CASE("nvcc's vector addition, to the word", "[ptx]") {
  constexpr std::size_t kCount = 1000;
  const auto a = numbers(kCount);
  auto b = numbers(kCount);
  std::vector<float> c(kCount, NAN);
  Call call(testing::text("softmax_nvcc"), "vector_add");
  call.input("a", a).input("b", b).buffer("c", c).value(static_cast<std::uint32_t>(kCount));
  const auto report = call.run(8, 128);
  CHECK(report.to_string() == "");
  for (std::size_t k = 0; k < kCount; ++k) REQUIRE(c[k] == a[k] + b[k]);
  REQUIRE(report.traffic.size() >= 3);
  constexpr std::int64_t kBytes = kCount * sizeof(float);
  CHECK(report.traffic[0] == simt::GlobalTraffic{kBytes, 0});
  CHECK(report.traffic[1] == simt::GlobalTraffic{kBytes, 0});
  CHECK(report.traffic[2] == simt::GlobalTraffic{0, kBytes});
}

// Largest error over that of one rounding, of rows against their softmax in double.
double softmax_error(const std::vector<float>& x, const std::vector<float>& y,
                     std::size_t columns) {
  double worst = 0.0;
  for (std::size_t begin = 0; begin < x.size(); begin += columns) {
    double sum = 0.0, most = -INFINITY;
    for (std::size_t k = 0; k < columns; ++k) {
      most = std::fmax(most, static_cast<double>(x[begin + k]));
    }
    for (std::size_t k = 0; k < columns; ++k) {
      sum += std::exp(static_cast<double>(x[begin + k]) - most);
    }
    for (std::size_t k = 0; k < columns; ++k) {
      const double exact = std::exp(static_cast<double>(x[begin + k]) - most) / sum;
      const double error = std::fabs(static_cast<double>(y[begin + k]) - exact);
      if (!(error <= worst)) worst = error / (exact * 0x1p-24);
    }
  }
  return worst;
}

// exp, a sum of `columns` numbers and a division, each within some roundings.
double most_roundings(std::size_t columns) { return 16.0 + static_cast<double>(columns); }

TEST_CASE("nvcc's softmax with shuffles, in every order", "[ptx]") {
  constexpr std::size_t kRows = 3, kColumns = 300;
  const auto x = numbers(kRows * kColumns);
  for (const simt::Order order : testing::kOrders) {
    std::vector<float> y(x.size(), NAN);
    Call call(testing::text("softmax_nvcc"), "row_softmax");
    call.input("x", x).buffer("y", y).value(static_cast<std::uint32_t>(kColumns));
    CHECK(call.run(kRows, 96, 0, order).to_string() == "");
    CHECK(softmax_error(x, y, kColumns) <= most_roundings(kColumns));
  }
}

TEST_CASE("Triton's softmax, to the word", "[ptx]") {
  constexpr std::size_t kRows = 3;
  for (const std::size_t columns : {1U, 77U, 256U}) {
    const auto x = numbers(kRows * columns);
    std::vector<float> y(x.size(), NAN);
    Call call(testing::text("softmax_triton"));
    call.input("x", x).buffer("y", y).value(static_cast<std::uint32_t>(columns));
    call.value(std::uint64_t{0}).value(std::uint64_t{0});
    const auto report = call.run(kRows, 64, 8);
    CHECK(report.to_string() == "");
    CHECK(softmax_error(x, y, columns) <= most_roundings(columns));
    const auto bytes = static_cast<std::int64_t>(x.size() * sizeof(float));
    CHECK(report.traffic[0] == simt::GlobalTraffic{bytes, 0});
    CHECK(report.traffic[1] == simt::GlobalTraffic{0, bytes});
  }
}

TEST_CASE("nvcc's switch, loops, local array, constants and atomics", "[ptx]") {
  constexpr unsigned kThreads = 64;
  constexpr double kScale = 20.25;
  std::vector<int> in(kThreads), out(kThreads, -1);
  for (unsigned k = 0; k < kThreads; ++k) in[k] = static_cast<int>(k * k % 23);
  Call call(testing::text("divergent_nvcc"));
  constexpr std::uint16_t kThree = 0x4200;  // in f16
  call.input("in", in).buffer("out", out).value(static_cast<std::uint32_t>(kThreads));
  call.value(kScale).value(kThree);
  const auto report = call.run(1, kThreads, kThreads * sizeof(float));
  CHECK(report.to_string() == "");
  const float table[] = {1.0F, 2.0F, -3.5F, 4.0F};
  std::vector<int> sums(kThreads);
  for (unsigned i = 0; i < kThreads; ++i) {
    const int value = in[i];
    int sum = 0;
    if (value % 5 == 0) sum = 1;
    if (value % 5 == 1) sum = in[(i + (static_cast<unsigned>(value) & 7U)) % kThreads];
    if (value % 5 == 2) sum = (value + 2) / 3 * 3;
    if (value % 5 == 4) sum = std::popcount(static_cast<unsigned>(value));
    sums[i] = sum;
  }
  for (unsigned i = 0; i < kThreads; ++i) {
    std::uint32_t ballot = 0;
    for (unsigned k = 0; k < 32; ++k) ballot |= (sums[i / 32 * 32 + k] > 2 ? 1U : 0U) << k;
    const unsigned next = (i + 1) % kThreads;
    std::uint32_t expected = static_cast<std::uint32_t>(
        static_cast<int>(static_cast<float>(sums[next]) * table[next % 4]));
    expected += ballot + static_cast<std::uint32_t>(static_cast<int>(std::sqrt(kScale) * sums[i]));
    CHECK(static_cast<std::uint32_t>(out[i]) == expected + 3 + 7);
  }
}

TEST_CASE("atomic additions of blocks on several threads", "[ptx]") {
  std::vector<std::uint32_t> sum(1, 0);
  Call call(kernel(".param .u64 sum",
                   ".reg .b64 %a; ld.param.u64 %a, [sum];\n"
                   "red.global.add.u32 [%a], 3; ret;"));
  const auto report = call.buffer("sum", sum).on_threads(2).run(20, 64);
  CHECK(report.to_string() == "");
  CHECK(sum[0] == 20 * 64 * 3);
  CHECK(report.traffic[0] == simt::GlobalTraffic{20 * 64 * 4, 20 * 64 * 4});
}

TEST_CASE("generic addresses reach shared, local and global memory", "[ptx]") {
  std::vector<std::uint32_t> out(32, 0);
  Call call(
      kernel(".param .u64 out",
             ".shared .b32 s[32]; .local .b32 l[2];\n.reg .b64 %a<9>; .reg .b32 %r<9>;\n"
             "mov.u32 %r0, %tid.x; mul.wide.u32 %a0, %r0, 4;\n"
             "mov.u64 %a1, s; cvta.shared.u64 %a1, %a1; add.u64 %a1, %a1, %a0;\n"
             "st.u32 [%a1], %r0; ld.u32 %r1, [%a1];\n"
             "mov.u64 %a2, l; cvta.local.u64 %a2, %a2; st.u32 [%a2+4], %r1;\n"
             "ld.local.u32 %r2, [l+4]; cvta.to.local.u64 %a3, %a2; ld.local.u32 %r3, [%a3+4];\n"
             "add.u32 %r2, %r2, %r3;\n"
             "ld.param.u64 %a4, [out]; cvta.to.global.u64 %a4, %a4; add.u64 %a4, %a4, %a0;\n"
             "st.u32 [%a4], %r2; ret;"));
  CHECK(call.buffer("out", out).run(1, 32).to_string() == "");
  for (std::uint32_t k = 0; k < 32; ++k) CHECK(out[k] == 2 * k);
}

TEST_CASE("a narrow value in a wider register has zeros or its sign above it", "[ptx]") {
  const std::vector<std::uint8_t> in{0x85, 0xFF, 0x01, 0x80};
  std::vector<std::uint64_t> out(4, 0);
  Call call(kernel(".param .u64 in, .param .u64 out",
                   ".reg .b64 %a<3>; .reg .b64 %w; .reg .b32 %r<3>;\n"
                   "ld.param.u64 %a0, [in]; ld.param.u64 %a1, [out];\n"
                   "ld.global.u8 %r0, [%a0]; ld.global.s8 %r1, [%a0]; ld.global.s16 %w, [%a0+2];\n"
                   "st.global.v2.b32 [%a1], {%r0, %r1}; st.global.b64 [%a1+8], %w;\n"
                   "st.global.u8 [%a1+16], %w; ret;"));
  CHECK(call.input("in", in).buffer("out", out).run(1, 1).to_string() == "");
  CHECK(out == std::vector<std::uint64_t>{0xFFFF'FF85'0000'0085, 0xFFFF'FFFF'FFFF'8001, 0x01, 0});
}

TEST_CASE("parameters are read at addresses that registers hold", "[ptx]") {
  const std::string text =
      kernel(".param .u64 out, .param .align 4 .b8 table[8], .param .u32 place",
             ".reg .b64 %a<3>; .reg .b32 %r<2>; ld.param.u64 %a0, [out];\n"
             "mov.b64 %a1, table; ld.param.u32 %r0, [place]; mul.wide.u32 %a2, %r0, 4;\n"
             "add.s64 %a1, %a1, %a2; ld.param.u32 %r1, [%a1]; st.global.u32 [%a0], %r1; ret;");
  const std::uint64_t table = std::uint64_t{22} << 32 | 11;
  const auto read = [&](std::uint32_t place, std::uint32_t& got) {
    std::vector<std::uint32_t> out(1, 0);
    Call call(text);
    const std::string report =
        call.buffer("out", out).value(table).value(place).run(1, 1).to_string();
    got = out[0];
    return report;
  };
  std::uint32_t got = 0;
  CHECK(read(0, got).empty());
  CHECK(got == 11);
  CHECK(read(1, got).empty());
  CHECK(got == 22);
  CHECK_THAT(read(3, got),
             Catch::Contains("reads 4 bytes at byte 20 of the parameters, which have 20"));
}

TEST_CASE("a module's variables keep their values from launch to launch", "[ptx]") {
  const std::string text = testing::with(
      kernel(".param .u64 out",
             ".reg .b64 %a; .reg .b32 %r<3>; ld.param.u64 %a, [out];\n"
             "atom.global.add.u32 %r0, [counter], 1;\n"
             "ld.const.u16 %r1, [table+2]; add.u32 %r0, %r0, %r1;\n"
             "st.global.u32 [%a], %r0; ret;"),
      ".visible", ".global .u32 counter = 5;\n.const .b8 table[4] = {1, 2, 3, 4};\n.visible");
  std::vector<std::uint32_t> out(1, 0);
  Call call(text);
  call.buffer("out", out);
  CHECK(call.run(1, 1).to_string() == "");
  CHECK(out[0] == 5 + 0x0403);
  call.run(1, 1);
  CHECK(out[0] == 6 + 0x0403);
}

TEST_CASE("parameters are held against the kernel's", "[ptx]") {
  const Program program = check(parse(kernel(".param .u64 a, .param .u32 n", "ret;")));
  CHECK_THROWS_WITH(Parameters(program).add(1.0F),
                    "kernel 'kernel': parameter 'a' has 8 bytes, not 4");
  CHECK_THROWS_WITH(Parameters(program).add(1.0).bytes(),
                    "kernel 'kernel': takes 2 parameters, got 1");
  CHECK_THROWS_WITH(Parameters(program).add(1.0).add(1).add(2),
                    "kernel 'kernel': takes 2 parameters, not more");
  Call softmax(testing::text("softmax_triton"));
  std::vector<float> x(1);
  softmax.input("x", x).input("y", x).value(1).value(std::uint64_t{0}).value(std::uint64_t{0});
  CHECK_THROWS_WITH(softmax.run(1, 32),
                    "kernel 'softmax': axis 0 of the block has 32 threads, .reqntid says 64");
}

}  // namespace
}  // namespace attest::ptx
