#include <algorithm>

#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Clusters of one block: their barrier, addresses and registers.
namespace attest::ptx {
namespace {

using simt::Fault;
using testing::Call;
using testing::kernel;
using Words = std::vector<std::uint32_t>;

constexpr unsigned kThreads = 128;

// Each thread stores its number in shared memory, and reads its opposite's after BARRIER.
simt::LaunchReport exchanged(const std::string& barrier, simt::Order order, Words& out) {
  Call call(kernel(".param .u64 out",
                   ".shared .b32 s[128]; .reg .b32 %r<9>; .reg .b64 %a<2>; .reg .pred %p;\n"
                   "mov.u32 %r0, %tid.x; mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 4, %r1;\n"
                   "mov.u32 %r3, %cluster_ctarank; mapa.shared::cluster.u32 %r4, %r2, %r3;\n"
                   "st.shared::cluster.u32 [%r4], %r0;\n" +
                       barrier +
                       "\nxor.b32 %r5, %r0, 127; mad.lo.u32 %r5, %r5, 4, %r1;\n"
                       "ld.shared.u32 %r6, [%r5]; ld.param.u64 %a0, [out];\n"
                       "mad.wide.u32 %a1, %r0, 4, %a0; st.global.u32 [%a1], %r6; ret;"));
  return call.buffer("out", out).run(1, kThreads, 0, order);
}

bool finds(const std::string& barrier, Fault fault) {
  Words out(kThreads);
  const auto all = testing::faults(exchanged(barrier, simt::Order::descending, out));
  return std::find(all.begin(), all.end(), fault) != all.end();
}

TEST_CASE("a cluster's barrier orders its threads", "[ptx]") {
  for (const std::string barrier :
       {"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
        "barrier.cluster.arrive; mov.u32 %r8, 1; barrier.cluster.wait;",
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"}) {
    for (const simt::Order order : testing::kOrders) {
      Words out(kThreads);
      CHECK(exchanged(barrier, order, out).to_string() == "");
      for (std::uint32_t k = 0; k < kThreads; ++k) CHECK(out[k] == (k ^ 127U));
    }
  }
}

TEST_CASE("a broken barrier of a cluster is found", "[ptx]") {
  CHECK(finds("barrier.cluster.arrive.aligned;", Fault::race));
  CHECK(
      finds("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;", Fault::race));
  CHECK(finds("barrier.cluster.arrive; barrier.cluster.arrive;", Fault::divergence));
  CHECK(
      finds("setp.lt.u32 %p, %r0, 32; @%p bra WAIT; barrier.cluster.arrive;\n"
            "WAIT: setp.lt.u32 %p, %r0, 5; @%p barrier.cluster.wait;",
            Fault::divergence));
  CHECK(
      finds("setp.lt.u32 %p, %r0, 32; @%p bra SKIP; barrier.cluster.arrive;\n"
            "barrier.cluster.wait; bra DONE; SKIP: bar.sync 1, 64; DONE:",
            Fault::deadlock));
  CHECK(finds("mapa.u32 %r8, %r2, 1;", Fault::out_of_bounds));
}

TEST_CASE("a block is a cluster", "[ptx]") {
  Words out(7, 99);
  Call call(kernel(".param .u64 out",
                   ".shared .b32 s; .reg .b32 %r<9>; .reg .b64 %a<4>;\n"
                   "ld.param.u64 %a0, [out]; mov.u32 %r0, %cluster_ctaid.x;\n"
                   "mov.u32 %r1, %cluster_nctaid.y; mov.u32 %r2, %cluster_nctarank;\n"
                   "mov.u32 %r3, %clusterid.x; mov.u32 %r4, %nclusterid.x;\n"
                   "mov.u32 %r5, s; getctarank.shared::cluster.u32 %r5, %r5;\n"
                   "mov.u64 %a1, s; cvta.shared::cluster.u64 %a1, %a1; mov.u32 %r6, 12;\n"
                   "mapa.u64 %a1, %a1, 0; st.u32 [%a1], %r6; ld.shared.u32 %r6, [s];\n"
                   "mov.u32 %r7, %ctaid.x; mad.wide.u32 %a2, %r7, 28, %a0;\n"
                   "st.global.u32 [%a2], %r0; st.global.u32 [%a2+4], %r1;\n"
                   "st.global.u32 [%a2+8], %r2; st.global.u32 [%a2+12], %r3;\n"
                   "st.global.u32 [%a2+16], %r4; st.global.u32 [%a2+20], %r5;\n"
                   "st.global.u32 [%a2+24], %r6; ret;"));
  out.resize(14);
  CHECK(call.buffer("out", out).run(2, 1).to_string() == "");
  CHECK(out == Words{0, 1, 1, 0, 2, 0, 12, 0, 1, 1, 1, 2, 0, 12});
}

TEST_CASE("kernels for clusters of several blocks are refused", "[ptx]") {
  const auto with_cluster = [](const std::string& size) {
    return ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k()\n"
           ".reqnctapercluster " +
           size + "\n{\n ret;\n}\n";
  };
  CHECK_NOTHROW(check(parse(with_cluster("1, 1, 1"))));
  CHECK_THROWS_WITH(check(parse(with_cluster("2, 1, 1"))),
                    Catch::Contains("clusters of several blocks are not carried out"));
}

}  // namespace
}  // namespace attest::ptx
