#include <algorithm>

#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/pipeline.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Tensor copies, mbarriers and products of a warpgroup together: gpu/simt/testing's
/// pipelined_product as nvcc compiled it for sm_90a.
namespace attest::ptx {
namespace {

using simt::Fault;
using testing::Pipeline;
using testing::with;

const std::string& right() {
  static const std::string text = testing::text("pipelined_nvcc");
  return text;
}

TEST_CASE("a pipeline of tensor copies and products is right, to the word", "[ptx]") {
  for (const simt::Order order : testing::kOrders) {
    Pipeline run;
    const simt::LaunchReport report = run(right(), order);
    CHECK(report.to_string() == "");
    CHECK(run.is_right());
    CHECK(report.traffic[0] ==
          simt::GlobalTraffic{Pipeline::kRows * Pipeline::kInner * Pipeline::kTiles * 2, 0});
    CHECK(report.traffic[1] ==
          simt::GlobalTraffic{Pipeline::kColumns * Pipeline::kInner * Pipeline::kTiles * 2, 0});
    CHECK(report.traffic[2] == simt::GlobalTraffic{0, Pipeline::kRows * Pipeline::kColumns * 4});
  }
}

TEST_CASE("prefetches change nothing, but need their map", "[ptx]") {
  const auto run = [](const std::string& offset) {
    return testing::faults(
        Pipeline{}(with(right(), "cvta.param.u64 \t%rd6, %rd3;",
                        "cvta.param.u64 %rd6, %rd3; prefetch.tensormap [%rd6+" + offset +
                            "];\nprefetch.global.L2 [%rd6]; nanosleep.u32 20;\n"
                            "prefetch.param.tensormap [pipelined_product_param_0];"),
                   simt::Order::ascending));
  };
  CHECK(run("0").empty());
  CHECK(run("16") == std::vector{Fault::out_of_bounds});
}

bool finds(const std::string& part, const std::string& other, Fault fault) {
  return std::all_of(
      std::begin(testing::kOrders), std::end(testing::kOrders), [&](simt::Order order) {
        const auto found = testing::faults(Pipeline{}(with(right(), part, other), order));
        return std::find(found.begin(), found.end(), fault) != found.end();
      });
}

TEST_CASE("what is broken in the pipeline is found", "[ptx]") {
  CHECK(finds("wgmma.fence.sync.aligned;", "", Fault::missing_fence));
  CHECK(finds("wgmma.wait_group.sync.aligned 0;", "", Fault::async_pending));
  CHECK(finds("fence.proxy.async.shared::cta;", "", Fault::missing_fence));
  CHECK(finds("cp.async.bulk.wait_group.read 0;", "", Fault::async_pending));
  CHECK(finds("mbarrier.arrive.shared::cta.b64 _, [%r58];", "", Fault::deadlock));
}

}  // namespace
}  // namespace attest::ptx
