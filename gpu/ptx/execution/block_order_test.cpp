#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Blocks that fences and atomic operations order: the last of them sums what all have written.
namespace attest::ptx {
namespace {

using simt::Fault;
using testing::Call;
using testing::kernel;
using testing::with;

constexpr unsigned kBlocks = 5, kThreads = 64;

// Every thread writes its number plus one; the last block to count itself reads all of them.
// FENCE, BARRIER, COUNT, SECOND and RESET are parts to leave out or to replace.
std::string last_sums() {
  return kernel(
      ".param .u64 parts, .param .u64 counter, .param .u64 sums",
      ".shared .b32 is_last; .reg .b64 %a<9>; .reg .b32 %r<9>; .reg .pred %p<9>;\n"
      "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 64, %r0;\n"
      "ld.param.u64 %a0, [parts]; mad.wide.u32 %a1, %r2, 4, %a0; ld.param.u64 %a2, [counter];\n"
      "add.u32 %r3, %r2, 1; EARLY st.global.u32 [%a1], %r3; FENCE BARRIER LATE\n"
      "setp.ne.u32 %p0, %r0, 0; @%p0 bra WAIT;\n"
      "COUNT setp.eq.u32 %p1, %r4, 4; selp.u32 %r5, 1, 0, %p1; st.shared.u32 [is_last], %r5;\n"
      "WAIT: SECOND ld.shared.u32 %r5, [is_last]; setp.eq.u32 %p2, %r5, 0; @%p2 bra END;\n"
      "mov.u32 %r6, 0; mov.u32 %r7, 0;\n"
      "NEXT: mad.lo.u32 %r8, %r7, 64, %r0; mad.wide.u32 %a3, %r8, 4, %a0;\n"
      "ld.global.u32 %r8, [%a3]; add.u32 %r6, %r6, %r8; add.u32 %r7, %r7, 1;\n"
      "setp.lt.u32 %p3, %r7, 5; @%p3 bra NEXT;\n"
      "ld.param.u64 %a4, [sums]; mad.wide.u32 %a4, %r0, 4, %a4; st.global.u32 [%a4], %r6;\n"
      "RESET END: ret;");
}

struct Parts {
  std::string early{}, fence = "membar.gl;", barrier = "bar.sync 0;", late{},
                       count = "atom.global.inc.u32 %r4, [%a2], 4;", second = "bar.sync 0;",
                       reset{};
};

std::string text(const Parts& parts) {
  std::string all = last_sums();
  for (const auto& [name, part] :
       {std::pair{"EARLY", parts.early}, std::pair{"FENCE", parts.fence},
        std::pair{"BARRIER", parts.barrier}, std::pair{"LATE", parts.late},
        std::pair{"COUNT", parts.count}, std::pair{"SECOND", parts.second},
        std::pair{"RESET", parts.reset}}) {
    all = with(all, name, part);
  }
  return all;
}

simt::LaunchReport run(const Parts& parts, simt::Order order, int threads = 1) {
  std::vector<std::uint32_t> written(kBlocks * kThreads), counter(1, 0), sums(kThreads, 0);
  Call call(text(parts));
  call.buffer("parts", written).buffer("counter", counter).buffer("sums", sums);
  auto report = call.on_threads(threads).run(kBlocks, kThreads, 0, order);
  for (std::uint32_t k = 0; k < kThreads; ++k) CHECK(sums[k] == 5 * (k + 1) + 64 * 10);
  CHECK(counter[0] == 0);
  return report;
}

bool is_found(const Parts& parts) {
  std::size_t found = 0;
  for (const simt::Order order : testing::kOrders) {
    const auto report = run(parts, order);
    for (const Fault fault : testing::faults(report)) CHECK(fault == Fault::race);
    found += report.clean() ? 0 : 1;
  }
  CHECK((found == 0 || found == std::size(testing::kOrders)));
  return found != 0;
}

TEST_CASE("the last block may read what fences and a counter put before it", "[ptx]") {
  const std::string release = "atom.acq_rel.gpu.global.inc.u32 %r4, [%a2], 4;";
  const std::string fenced = "membar.gl; atom.global.inc.u32 %r4, [%a2], 4;";
  CHECK_FALSE(is_found({}));
  for (const simt::Order order : testing::kOrders) CHECK(run({}, order, 3).to_string() == "");
  CHECK_FALSE(is_found({.fence = "fence.acq_rel.gpu;"}));
  CHECK_FALSE(is_found({.fence = "", .count = fenced}));  // by the thread that counts
  CHECK_FALSE(is_found({.fence = "", .count = release}));
  CHECK_FALSE(is_found({.reset = "@!%p0 st.global.u32 [%a2], 0;"}));
}

TEST_CASE("blocks without a fence, a barrier or a counter are not in order", "[ptx]") {
  const std::string release = "atom.acq_rel.gpu.global.inc.u32 %r4, [%a2], 4;";
  CHECK(is_found({.fence = ""}));
  CHECK(is_found({.fence = "membar.cta;"}));
  CHECK(is_found({.fence = "", .count = "atom.acq_rel.cta.global.inc.u32 %r4, [%a2], 4;"}));
  CHECK(is_found({.barrier = ""}));  // other threads' fences may come later
  CHECK(is_found({.fence = "", .barrier = "", .count = release}));
  CHECK(is_found({.early = "membar.gl;", .fence = ""}));   // before the write
  CHECK(is_found({.late = "st.global.u32 [%a1], %r3;"}));  // after the fence
}

// Block 0 writes and posts a flag, the others wait for it and read. POST and POLL are parts to
// replace.
simt::LaunchReport handed_over(const std::string& post, const std::string& poll, int threads = 1) {
  const std::string text = with(
      with(kernel(".param .u64 data, .param .u64 flag, .param .u64 out",
                  ".reg .b64 %a<4>; .reg .b32 %r<4>; .reg .pred %p<2>;\n"
                  "mov.u32 %r0, %ctaid.x; ld.param.u64 %a0, [data]; ld.param.u64 %a1, [flag];\n"
                  "ld.param.u64 %a2, [out]; mad.wide.u32 %a2, %r0, 4, %a2;\n"
                  "setp.ne.u32 %p0, %r0, 0; @%p0 bra POLL_;\n"
                  "st.global.u32 [%a0], 42; POST ret;\n"
                  "POLL_: POLL setp.eq.u32 %p1, %r1, 0; @%p1 bra POLL_;\n"
                  "ld.global.u32 %r2, [%a0]; st.global.u32 [%a2], %r2; ret;"),
           "POST", post),
      "POLL ", poll + " ");
  std::vector<std::uint32_t> data(1), flag(1, 0), out(kBlocks);
  Call call(text);
  call.buffer("data", data).buffer("flag", flag).buffer("out", out);
  auto report = call.on_threads(threads).run(kBlocks, 1);
  for (std::uint32_t k = 1; k < kBlocks; ++k) CHECK(out[k] == 42);
  return report;
}

TEST_CASE("a release and an acquire order blocks", "[ptx]") {
  const std::string release = "st.release.gpu.global.u32 [%a1], 1;";
  const std::string acquire = "ld.acquire.gpu.global.u32 %r1, [%a1];";
  CHECK(handed_over(release, acquire).to_string() == "");
  CHECK(handed_over(release, acquire, 3).to_string() == "");
  CHECK(handed_over("st.global.release.sys.b32 [%a1], 1;", "ld.global.acquire.sys.b32 %r1, [%a1];")
            .to_string() == "");
  CHECK(handed_over("membar.gl; st.relaxed.gpu.global.u32 [%a1], 1;", acquire).clean());
  CHECK(handed_over("membar.gl; st.volatile.global.u32 [%a1], 1;",
                    "ld.volatile.global.u32 %r1, [%a1];")
            .clean());
  CHECK(handed_over("red.release.gpu.global.add.u32 [%a1], 1;", acquire).clean());
}

TEST_CASE("weaker accesses order no blocks", "[ptx]") {
  const auto finds = [](const std::string& post, const std::string& poll) {
    // In each block that reads.
    return testing::faults(handed_over(post, poll)) == std::vector(kBlocks - 1, Fault::race);
  };
  const std::string acquire = "ld.acquire.gpu.global.u32 %r1, [%a1];";
  CHECK(finds("st.relaxed.gpu.global.u32 [%a1], 1;", acquire));
  CHECK(finds("st.release.cta.global.u32 [%a1], 1;", acquire));
  CHECK(finds("st.release.gpu.global.u32 [%a1], 1;", "ld.acquire.cta.global.u32 %r1, [%a1];"));
  // The flag itself races, too, where one side is no strong access.
  CHECK_FALSE(handed_over("membar.gl; st.global.u32 [%a1], 1;", acquire).clean());
  CHECK_FALSE(
      handed_over("st.release.gpu.global.u32 [%a1], 1;", "ld.global.u32 %r1, [%a1];").clean());
}

// The second warp stores what the first waits for.
TEST_CASE("a warp that polls lets others go on", "[ptx]") {
  std::vector<std::uint32_t> flag(1, 0), out(64, 0);
  Call call(kernel(".param .u64 flag, .param .u64 out",
                   ".reg .b64 %a<3>; .reg .b32 %r<4>; .reg .pred %p<3>;\n"
                   "mov.u32 %r0, %tid.x; ld.param.u64 %a0, [flag]; ld.param.u64 %a1, [out];\n"
                   "setp.ne.u32 %p0, %r0, 32; @!%p0 st.release.cta.global.u32 [%a0], 7;\n"
                   "POLL: ld.acquire.cta.global.u32 %r1, [%a0]; setp.eq.u32 %p1, %r1, 0;\n"
                   "@%p1 bra POLL; mad.wide.u32 %a2, %r0, 4, %a1; st.global.u32 [%a2], %r1; ret;"));
  CHECK(call.buffer("flag", flag).buffer("out", out).run(1, 64).to_string() == "");
  CHECK(out == std::vector<std::uint32_t>(64, 7));
}

}  // namespace
}  // namespace attest::ptx
