#include <algorithm>

#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Mistakes in PTX, each found with its line and the source's.
namespace attest::ptx {
namespace {

using simt::Fault;
using testing::Call;
using testing::faults;
using testing::kernel;
using testing::with;
using Faults = std::vector<Fault>;

constexpr unsigned kColumns = 77;

simt::LaunchReport softmax(const std::string& text, simt::Order order) {
  std::vector<float> x(kColumns, 1.0F), y(kColumns, 0.0F);
  Call call(text);
  call.input("x", x).buffer("y", y).value(kColumns);
  call.value(std::uint64_t{0}).value(std::uint64_t{0});
  return call.run(1, 64, 8, order);
}

std::size_t line_of(const std::string& text, const std::string& part) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(text.find(part));
  return static_cast<std::size_t>(std::count(text.begin(), end, '\n')) + 1;
}

TEST_CASE("each barrier that is removed from Triton's softmax is a race, at its lines", "[ptx]") {
  const std::string text = testing::text("softmax_triton"), barrier = "bar.sync \t0;";
  std::size_t found = 0, barriers = 0;
  for (std::size_t at = text.find(barrier); at != std::string::npos;
       at = text.find(barrier, at + 1), ++barriers) {
    std::string broken = text;
    broken.replace(at, barrier.size(), "");
    for (const simt::Order order : testing::kOrders) {
      const auto report = softmax(broken, order);
      INFO("barrier " << barriers);
      REQUIRE_FALSE(report.diagnoses.empty());
      const simt::Diagnosis& first = report.diagnoses[0];
      const bool is_order = first.fault == Fault::race || first.fault == Fault::uninitialised;
      CHECK(is_order);
      CHECK(first.where.line >= 5);  // of small.py, by the outermost call where that is known
      CHECK(first.text.find("PTX line") != std::string::npos);
      ++found;
    }
  }
  CHECK(barriers == 5);
  CHECK(found == 3 * barriers);
}

TEST_CASE("a store that is one row too far is out of bounds, at its lines", "[ptx]") {
  const std::string text = with(testing::text("softmax_triton"), "@%p2 st.global.b32 [ %rd6 + 0 ]",
                                "@%p2 st.global.b32 [ %rd6 + 4 ]");
  const auto report = softmax(text, simt::Order::ascending);
  REQUIRE(faults(report) == Faults{Fault::out_of_bounds});
  CHECK(report.diagnoses[0].to_string() ==
        "out of bounds: lane 12 writes 4 bytes at byte 308 of 'y', which has 308 (PTX line " +
            std::to_string(line_of(text, "%rd6 + 4")) + ") (small.py:10, block 0,0,0)");
}

TEST_CASE("shared memory that nothing has written is read", "[ptx]") {
  const std::string text =
      with(testing::text("softmax_triton"), "@%p5 st.shared.b32 [ %r9 + 0 ], %r10;", "");
  const auto report = softmax(text, simt::Order::ascending);
  REQUIRE_FALSE(report.diagnoses.empty());
  CHECK(report.diagnoses[0].fault == Fault::uninitialised);
  CHECK(report.diagnoses[0].where.file == std::string("standard.py"));
}

// One block of 64 threads with 64 words of shared memory and of output.
simt::LaunchReport run(const std::string& body, simt::Order order = simt::Order::ascending) {
  std::vector<std::uint32_t> out(64, 0);
  const std::string begin =
      ".shared .b32 s[64]; .reg .b64 %a<9>; .reg .b32 %r<9>; .reg .pred %p<9>;\n"
      "mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;\n"
      "ld.param.u64 %a0, [out]; cvt.u64.u32 %a1, %r1; add.u64 %a1, %a0, %a1;\n";
  Call call(kernel(".param .u64 out", begin + body));
  return call.buffer("out", out).run(1, 64, 0, order);
}

TEST_CASE("faults of memory", "[ptx]") {
  CHECK(faults(run("st.shared.u32 [%r2+4], %r0; ret;")) == Faults{Fault::out_of_bounds});
  CHECK(faults(run("st.shared.u32 [%r2-4], %r0; ret;")) == Faults{Fault::out_of_bounds});
  CHECK(faults(run("st.shared.u32 [%r2+2], %r0; ret;")) == Faults{Fault::misaligned});
  CHECK(faults(run("ld.global.u32 %r3, [%a1+4]; ret;")) == Faults{Fault::out_of_bounds});
  CHECK(faults(run("ld.global.u32 %r3, [8]; ret;")) == Faults{Fault::out_of_bounds});
  CHECK(faults(run("ld.global.u16 %r3, [%a1+1]; ret;")) == Faults{Fault::misaligned});
  CHECK(faults(run("ld.local.u32 %r3, [%a1]; ret;")) == Faults{Fault::out_of_bounds});
  CHECK(faults(run("st.global.u32 [%a0], %r0; ret;")) == Faults{Fault::race});
  CHECK(faults(run("st.shared.u32 [s], %r0; ret;")) == Faults{Fault::race});
  CHECK(faults(run("ld.shared.u32 %r3, [%r2]; ret;")) == Faults{Fault::uninitialised});
}

TEST_CASE("an input is written; the same memory as an output is not", "[ptx]") {
  std::vector<std::uint32_t> x(32, 1);
  const std::string text = kernel(".param .u64 x, .param .u64 y",
                                  ".reg .b64 %a; .reg .b32 %r; ld.param.u64 %a, [x];\n"
                                  "mov.u32 %r, %tid.x; mad.wide.u32 %a, %r, 4, %a;\n"
                                  "st.global.u32 [%a], %r; ret;");
  const std::vector<std::uint32_t>& input = x;
  CHECK(faults(Call(text).input("x", input).input("y", input).run(1, 32)) ==
        Faults{Fault::out_of_bounds});
  CHECK(x[5] == 1);
  CHECK(Call(text).input("x", input).buffer("y", x).run(1, 32).clean());
  CHECK(x[5] == 5);
}

TEST_CASE("orders between the lanes of a warp are made by bar.warp.sync alone", "[ptx]") {
  const std::string exchange =
      "xor.b32 %r3, %r2, 4; st.shared.u32 [%r2], %r0; SYNC ld.shared.u32 %r4, [%r3]; ret;";
  for (const simt::Order order : testing::kOrders) {
    CHECK(faults(run(with(exchange, "SYNC", ""), order)) == Faults{Fault::race});
    CHECK(run(with(exchange, "SYNC", "bar.warp.sync -1;"), order).to_string() == "");
    CHECK(run(with(exchange, "SYNC", "bar.sync 0;"), order).to_string() == "");
  }
}

TEST_CASE("two warps that write the same value to the same place are no race", "[ptx]") {
  const std::string replicated =
      "and.b32 %r3, %r1, 127; mov.u32 %r2, s; add.u32 %r2, %r2, %r3;\n"
      "st.shared.u32 [%r2], VALUE; bar.sync 0;\n"
      "ld.shared.u32 %r4, [%r2]; ret;";
  for (const simt::Order order : testing::kOrders) {
    CHECK(run(with(replicated, "VALUE", "%r3"), order).to_string() == "");
    CHECK(faults(run(with(replicated, "VALUE", "%r0"), order)) == Faults{Fault::race});
  }
}

TEST_CASE("barriers that not all come to", "[ptx]") {
  CHECK(faults(run("setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 0; ret;")) ==
        Faults{Fault::exited_lane});
  CHECK(faults(run("setp.lt.u32 %p1, %r0, 40; @%p1 bar.sync 0; ret;")) ==
        Faults{Fault::divergence});
  CHECK(faults(run("bar.sync 1, 128; ret;")) == Faults{Fault::deadlock});
  CHECK(faults(run("setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 1; @!%p1 bar.sync 2; ret;")) ==
        Faults{Fault::deadlock});
  CHECK(faults(run("bar.sync 16; ret;")) == Faults{Fault::divergence});
}

// Warp 0 writes and arrives; warp 1 waits and reads.
TEST_CASE("a hand-over by a named barrier orders two warps", "[ptx]") {
  const std::string hand_over =
      "setp.lt.u32 %p1, %r0, 32; @!%p1 bra READ;\nst.shared.u32 [%r2], %r0; ARRIVE ret;\n"
      "READ: WAIT ld.shared.u32 %r3, [%r2-128]; ret;";
  const auto text = [&](const char* arrive, const char* wait) {
    return with(with(hand_over, "ARRIVE", arrive), "WAIT", wait);
  };
  for (const simt::Order order : testing::kOrders) {
    CHECK(run(text("bar.arrive 1, 64;", "bar.sync 1, 64;"), order).to_string() == "");
    CHECK_FALSE(run(text("", ""), order).clean());  // a race, or read before it is written
    CHECK(faults(run(text("", "bar.sync 1, 64;"), order)) == Faults{Fault::deadlock});
    // A write after the arrival is not handed over.
    CHECK_FALSE(
        run(text("bar.arrive 1, 64; st.shared.u32 [%r2], 7;", "bar.sync 1, 64;"), order).clean());
  }
}

TEST_CASE("loops without an end, traps and masks", "[ptx]") {
  CHECK(faults(run("L: bra L;")) == Faults{Fault::deadlock});
  CHECK(faults(run("trap;")) == Faults{Fault::exception});
  CHECK(faults(run("setp.lt.u32 %p1, %r0, 5; @%p1 bra L; ret;\n"
                   "L: shfl.sync.bfly.b32 %r3, %r0, 1, 31, -1; ret;"))[0] == Fault::exited_lane);
  CHECK(faults(run("shfl.sync.bfly.b32 %r3, %r0, 1, 31, 0xFFFF; ret;"))[0] == Fault::outside_mask);
}

}  // namespace
}  // namespace attest::ptx
