#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// mbarriers and copies of rows: what each instruction does, and what they need.
namespace attest::ptx {
namespace {

using simt::Fault;
using testing::Call;
using testing::faults;
using testing::kernel;
using Faults = std::vector<Fault>;

constexpr unsigned kThreads = 64;

// An mbarrier at m for as many arrivals as `count`; %p1: the first thread.
simt::LaunchReport run(const std::string& body, std::vector<std::uint32_t>& out,
                       const std::string& count, simt::Order order = simt::Order::ascending) {
  std::vector<std::uint32_t> in(64);
  for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<std::uint32_t>(100 + k);
  out.assign(64, 7777);
  Call call(
      kernel(".param .u64 in, .param .u64 out",
             ".shared .align 256 .b8 s[256]; .shared .align 8 .b64 m[2]; .reg .b64 %a<9>, %s<2>;\n"
             ".reg .b32 %r<9>; .reg .pred %p<5>; mov.u32 %r0, %tid.x; setp.eq.u32 %p1, %r0, 0;\n"
             "mov.u32 %r1, m; mov.u32 %r2, s; shl.b32 %r3, %r0, 2; add.u32 %r4, %r2, %r3;\n"
             "ld.param.u64 %a0, [in]; ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r0, 4;\n"
             "add.u64 %a2, %a2, %a1;\n"
             "@%p1 mbarrier.init.shared::cta.b64 [%r1], " +
                 count + ";\nbar.sync 0;\n" + body + "ret;"));
  return call.input("in", in).buffer("out", out).run(1, kThreads, 0, order);
}

const std::string kPut = "st.shared.b32 [%r4], %r0;\n";
// Reads what the other warp has put.
const std::string kTake =
    "xor.b32 %r5, %r4, 128; ld.shared.b32 %r6, [%r5]; st.global.b32 [%a2], %r6;\n";

TEST_CASE("arrivals hand over what came before them", "[ptx]") {
  for (const simt::Order order : testing::kOrders) {
    std::vector<std::uint32_t> out;
    const auto hands_over = [&](const std::string& arrive_and_wait, const std::string& count) {
      INFO(arrive_and_wait);
      CHECK(run(kPut + arrive_and_wait + kTake, out, count, order).to_string() == "");
      for (std::size_t k = 0; k < out.size(); ++k) CHECK(out[k] == (k ^ 32U));
    };
    for (const std::string wait : {"mbarrier.try_wait", "mbarrier.test_wait"}) {
      const std::string until = "again: " + wait;
      hands_over("mbarrier.arrive.shared::cta.b64 _, [%r1];\n" + until +
                     ".parity.shared::cta.b64 %p2, [%r1], 0;\n@!%p2 bra again;\n",
                 "64");
      hands_over("mbarrier.arrive.shared.b64 %s0, [%r1];\n" + until +
                     ".shared.b64 %p2, [%r1], %s0;\n@!%p2 bra again;\n",
                 "64");
    }
    hands_over(
        "cvta.shared.u64 %a3, %a3; mov.u64 %a4, m; cvta.shared.u64 %a4, %a4;\n"
        "mbarrier.arrive.release.cta.b64 _, [%a4], 2;\n"
        "mbarrier.try_wait.parity.acquire.cta.b64 %p2, [%a4], 0, 1000;\n",
        "128");
  }
}

TEST_CASE("mbarriers of too few or too many arrivals are found", "[ptx]") {
  std::vector<std::uint32_t> out;
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%r1];\n",
                    wait = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n";
  CHECK(faults(run(kPut + arrive + wait + kTake, out, "65")) == Faults{Fault::deadlock});
  CHECK(faults(run(arrive + "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 2;\n", out,
                   "64")) == Faults{Fault::mbarrier});
  CHECK(faults(run("mbarrier.arrive.shared::cta.b64 _, [%r1], 3;\n", out, "64")) ==
        Faults{Fault::mbarrier});
  CHECK(faults(run("mbarrier.arrive.shared::cta.b64 _, [%r1+8];\n", out, "64")) ==
        Faults{Fault::mbarrier});
  CHECK(faults(run("mbarrier.arrive.shared::cta.b64 _, [%r1+4096];\n", out, "64")) ==
        Faults{Fault::mbarrier});
  CHECK(faults(run("ld.shared.b64 %s0, [m];\n", out, "64")) == Faults{Fault::mbarrier});
  CHECK(run("@%p1 mbarrier.inval.shared::cta.b64 [%r1]; bar.sync 0;\n"
            "@%p1 mbarrier.init.shared::cta.b64 [%r1], 1;\n",
            out, "64")
            .clean());
  CHECK(faults(run("@%p1 mbarrier.init.shared::cta.b64 [%r1], 1;\n", out, "64")) ==
        Faults{Fault::mbarrier});
  CHECK(faults(run(kPut + kTake, out, "64")).back() == Fault::race);
}

const std::string kExpect = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;\n",
                  kCopy =
                      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                      "[%r2], [%a0], 256, [%r1];\n",
                  kWait = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n",
                  kStore =
                      "fence.proxy.async; bar.sync 0;\n"
                      "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%a1], [%r2], 256;\n"
                      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n";

TEST_CASE("rows are copied there and back, to the word", "[ptx]") {
  for (const simt::Order order : testing::kOrders) {
    for (const std::string& body :
         {kExpect + kCopy + kWait + kStore,
          "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 256;\n"
          "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];\n" +
              kCopy + kWait + kStore}) {
      std::vector<std::uint32_t> out;
      const auto report = run(body, out, "1", order);
      CHECK(report.to_string() == "");
      for (std::size_t k = 0; k < out.size(); ++k) CHECK(out[k] == 100 + k);
      CHECK(report.traffic[0] == simt::GlobalTraffic{256, 0});
      CHECK(report.traffic[1] == simt::GlobalTraffic{0, 256});
    }
  }
}

TEST_CASE("broken copies of rows are found", "[ptx]") {
  std::vector<std::uint32_t> out;
  const auto found = [&](const std::string& body) { return faults(run(body, out, "1")); };
  const std::string take = "ld.shared.b32 %r6, [%r4]; st.global.b32 [%a2], %r6;\n";
  CHECK(found(kExpect + kCopy + kWait + take).empty());
  CHECK(found(kExpect + kCopy + take).front() == Fault::async_pending);
  CHECK(found(kCopy + kWait + take) == Faults{Fault::deadlock});
  CHECK(found("@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 512;\n" + kCopy + kWait) ==
        Faults{Fault::transactions, Fault::deadlock});
  CHECK(found("@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n" + kCopy + kWait)
            .front() == Fault::transactions);
  CHECK(found(kPut + testing::with(kStore, "fence.proxy.async;", "")) ==
        Faults{Fault::missing_fence});
  CHECK(found(kPut + testing::with(kStore, "cp.async.bulk.wait_group 0;\n", "")) ==
        Faults{Fault::async_pending});
  CHECK(found(kPut + testing::with(kStore, "wait_group 0;\n",
                                   "wait_group.read 1;\nst.shared.b32 [%r4], 0;\n"))
            .front() == Fault::async_pending);
  const std::string far = "@%p1 add.u64 %a0, %a0, 16;\n", odd = "@%p1 add.u64 %a0, %a0, 4;\n";
  CHECK(found(far + kExpect + kCopy + kWait) == Faults{Fault::out_of_bounds});
  CHECK(found(odd + kExpect + kCopy + kWait) == Faults{Fault::misaligned});
}

TEST_CASE("a barrier of the block makes mbarriers visible to copies, nothing else before a fence",
          "[ptx]") {
  std::vector<std::uint32_t> out;
  const auto found = [&](const std::string& fence) {
    return faults(run("@%p1 mbarrier.init.shared::cta.b64 [%r1+8], 1;\n" + fence +
                          "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+8], 256;\n"
                          "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                          "[%r2], [%a0], 256, [%r1+8];\n"
                          "@%p1 mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1+8], 0;\n",
                      out, "1"));
  };
  CHECK(found("") == Faults{Fault::mbarrier});
  CHECK(found("fence.mbarrier_init.release.cluster;\n").empty());
  CHECK(found("fence.proxy.async.shared::cta;\n").empty());
  CHECK(found("fence.proxy.async.global;\n") == Faults{Fault::mbarrier});
  CHECK(found("bar.sync 0;\n").empty());
}

TEST_CASE("tensor copies need a map", "[ptx]") {
  std::vector<std::uint32_t> out;
  const auto copy = [&](const std::string& map) {
    return faults(run(kExpect +
                          "mov.u64 %a5, in; cvta.param.u64 %a5, %a5; mov.u64 %a6, 64;\n"
                          "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
                          "complete_tx::bytes [%r2], [" +
                          map + ", {%r0, %r0}], [%r1];\n",
                      out, "1"));
  };
  CHECK(copy("%a5") == Faults{Fault::out_of_bounds});  // parameters of 16 bytes
  CHECK(copy("%a0").back() == Fault::out_of_bounds);   // other data
  CHECK(copy("%a6") == Faults{Fault::out_of_bounds});
}

TEST_CASE("parameters are read by their address", "[ptx]") {
  std::vector<std::uint32_t> out;
  const std::string address = "mov.u64 %a5, out; cvta.param.u64 %a5, %a5; ld.b64 %a6, [%a5];\n";
  CHECK(run(address + "mul.wide.u32 %a7, %r0, 4; add.u64 %a6, %a6, %a7;\n"
                      "st.global.b32 [%a6], %r0;\n",
            out, "1")
            .clean());
  CHECK(out[5] == 5);
  CHECK(faults(run(address + "st.b64 [%a5], %a6;\n", out, "1")) == Faults{Fault::out_of_bounds});
  CHECK(faults(run(address + "ld.b64 %a6, [%a5+8];\n", out, "1")) == Faults{Fault::out_of_bounds});
}

}  // namespace
}  // namespace attest::ptx
