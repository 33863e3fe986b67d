#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Asynchronous copies: their bytes, their words and the waits that a kernel needs.
namespace attest::ptx {
namespace {

using simt::Fault;
using testing::Call;
using testing::faults;
using testing::kernel;
using testing::with;
using Faults = std::vector<Fault>;

constexpr std::size_t kThreads = 64;

// Each thread copies 16 bytes, then reads those of the thread before it.
struct Run {
  simt::LaunchReport report;
  std::vector<std::uint32_t> in, out;
};
Run run(const std::string& copies, simt::Order order = simt::Order::ascending) {
  Run run;
  run.in.resize(4 * kThreads);
  for (std::size_t k = 0; k < run.in.size(); ++k) run.in[k] = static_cast<std::uint32_t>(k + 1);
  run.out.assign(4 * kThreads, 7777);
  Call call(
      kernel(".param .u64 in, .param .u64 out",
             ".shared .align 16 .b8 s[1024]; .reg .b64 %a<5>; .reg .b32 %r<9>; .reg .b32 %w<4>;\n"
             "mov.u32 %r0, %tid.x; mul.wide.u32 %a0, %r0, 16; ld.param.u64 %a1, [in];\n"
             "add.u64 %a1, %a1, %a0; ld.param.u64 %a2, [out]; add.u64 %a2, %a2, %a0;\n"
             "shl.b32 %r1, %r0, 4; mov.u32 %r2, s; add.u32 %r3, %r2, %r1;\n"
             "add.u32 %r4, %r1, 1008; and.b32 %r4, %r4, 1023; add.u32 %r4, %r4, %r2;\n" +
                 copies +
                 "ld.shared.v4.b32 {%w0, %w1, %w2, %w3}, [%r4];\n"
                 "st.global.v4.b32 [%a2], {%w0, %w1, %w2, %w3}; ret;"));
  call.input("in", run.in).buffer("out", run.out);
  run.report = call.run(1, kThreads, 0, order);
  return run;
}

const std::string kCopy = "cp.async.cg.shared.global [%r3], [%a1], 16;\n";
const std::string kWait = "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;\n";

TEST_CASE("copies arrive at their wait, counted as read", "[ptx]") {
  for (const simt::Order order : testing::kOrders) {
    for (const std::string& copies : {kCopy + kWait, kCopy + "cp.async.wait_all; bar.sync 0;\n",
                                      "cp.async.ca.shared.global [%r3], [%a1], 8;\n"
                                      "cp.async.ca.shared.global.L2::128B [%r3+8], [%a1+8], 4;\n"
                                      "cp.async.ca.shared.global [%r3+12], [%a1+12], 4;\n" +
                                          kWait}) {
      const Run done = run(copies, order);
      CHECK(done.report.to_string() == "");
      CHECK(done.report.traffic[0] == simt::GlobalTraffic{16 * kThreads, 0});
      for (std::size_t k = 0; k < done.out.size(); ++k) {
        CHECK(done.out[k] == done.in[(k + done.in.size() - 4) % done.in.size()]);
      }
    }
  }
}

TEST_CASE("bytes beyond a copy's source are zero, and not read", "[ptx]") {
  const Run done =
      run("mov.u32 %r5, 4; cp.async.cg.shared.global [%r3], [%a1], 16, %r5;\n" + kWait);
  CHECK(done.report.to_string() == "");
  CHECK(done.report.traffic[0] == simt::GlobalTraffic{4 * kThreads, 0});
  CHECK(done.out[4] == done.in[0]);
  CHECK(done.out[5] == 0);
  const Run hinted =
      run("mov.u32 %r5, 4; createpolicy.fractional.L2::evict_last.b64 %a4;\n"
          "cp.async.cg.shared.global.L2::cache_hint [%r3], [%a1], 16, %r5, %a4;\n" +
          kWait);
  CHECK(hinted.out == done.out);
  const Run whole =
      run("createpolicy.fractional.L2::evict_last.b64 %a4, 1.0;\n"
          "cp.async.cg.shared.global.L2::cache_hint [%r3], [%a1], 16, %a4;\n" +
          kWait);
  CHECK(whole.out[5] == whole.in[1]);
  const Run none = run("cp.async.cg.shared.global [%r3], [8], 16, 0;\n" + kWait);
  CHECK(none.report.to_string() == "");
  CHECK(none.out[4] == 0);
}

TEST_CASE("a wait or a barrier that is left out is found", "[ptx]") {
  for (const simt::Order order : testing::kOrders) {
    CHECK(faults(run(kCopy + "cp.async.commit_group; bar.sync 0;\n", order).report) ==
          Faults{Fault::async_pending});
    CHECK(faults(run(kCopy + "cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;\n", order)
                     .report) == Faults{Fault::async_pending});
    CHECK(faults(run(kCopy + "cp.async.wait_group 0; bar.sync 0;\n", order).report) ==
          Faults{Fault::async_pending});  // never committed
    CHECK_FALSE(run(kCopy + "cp.async.wait_all;\n", order).report.clean());
  }
}

TEST_CASE("copies that leave memory, and sizes that there are not", "[ptx]") {
  CHECK(faults(run("cp.async.cg.shared.global [%r3+16], [%a1], 16;\n" + kWait).report)[0] ==
        Fault::out_of_bounds);
  CHECK(faults(run("cp.async.cg.shared.global [%r3], [%a1+16], 16;\n" + kWait).report)[0] ==
        Fault::out_of_bounds);
  CHECK(faults(run("cp.async.cg.shared.global [%r3+4], [%a1], 16;\n" + kWait).report)[0] ==
        Fault::misaligned);
  CHECK(faults(run("mov.u32 %r5, 4; cp.async.cg.shared.global [%r3], [%a1+4], 16, %r5;\n" + kWait)
                   .report)[0] == Fault::misaligned);
  CHECK_THROWS_WITH(run("cp.async.cg.shared.global [%r3], [%a1], 8;\n"),
                    Catch::Matchers::Contains("with these operands is not carried out"));
}

}  // namespace
}  // namespace attest::ptx
