#include <algorithm>
#include <cstring>

#include "core/dtype.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/tensor_map.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Tensor copies, mbarriers and products of a warpgroup together: gpu/simt/testing's
/// pipelined_product as nvcc compiled it for sm_90a.
namespace attest::ptx {
namespace {

using simt::Fault;
using testing::Call;
using testing::with;

constexpr std::size_t kRows = 64, kColumns = 32, kInner = 64, kTiles = 3;  // of a block
constexpr unsigned kThreads = 160;
constexpr std::int64_t kSharedBytes = 2 * (kRows + kColumns) * kInner * 2 + kRows * kColumns * 4;

std::vector<std::uint16_t> random_rows(std::uint64_t seed, std::size_t rows) {
  std::vector<std::uint16_t> values(rows * kInner * kTiles);
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = bf16_from_float(static_cast<float>(mix(seed, k) % 17) - 8.0F);
  }
  return values;
}

// A map is the first half of the kernel's parameter; the other describes the tensor to it.
using Parameter = std::array<std::byte, 2 * kTensorMapBytes>;
template <class T>
Parameter map_of(const std::vector<T>& data, std::size_t rows, std::size_t columns,
                 std::size_t box_rows, std::size_t box_columns, simt::Swizzle swizzle) {
  simt::TensorShape shape;
  shape.element = sizeof(T) == 2 ? simt::Element::bf16 : simt::Element::f32;
  shape.extents[0] = static_cast<std::int64_t>(columns);
  shape.extents[1] = static_cast<std::int64_t>(rows);
  shape.stride_bytes[0] = static_cast<std::int64_t>(columns * sizeof(T));
  shape.box[0] = static_cast<int>(box_columns);
  shape.box[1] = static_cast<int>(box_rows);
  shape.swizzle = swizzle;
  Parameter parameter{};
  const TensorMapBytes map = encode_tensor_map(data.data(), shape);
  std::memcpy(parameter.data(), map.data(), map.size());
  return parameter;
}

struct Run {
  std::vector<std::uint16_t> a = random_rows(1, kRows), b = random_rows(2, kColumns);
  std::vector<float> c = std::vector<float>(kRows * kColumns, 7777.0F);

  simt::LaunchReport operator()(const std::string& text, simt::Order order) {
    Call call(text);
    call.memory("A", a).memory("B", b).memory("C", c);
    call.value(map_of(a, kRows, kInner * kTiles, kRows, kInner, simt::Swizzle::bytes_128));
    call.value(map_of(b, kColumns, kInner * kTiles, kColumns, kInner, simt::Swizzle::bytes_128));
    call.value(map_of(c, kRows, kColumns, kRows, kColumns, simt::Swizzle::none));
    call.value(static_cast<std::uint32_t>(kTiles)).value(std::uint8_t{0});
    return call.run(1, kThreads, kSharedBytes, order);
  }

  bool is_right() const {
    for (std::size_t k = 0; k < c.size(); ++k) {
      float sum = 0.0F;  // whole numbers: exact
      for (std::size_t i = 0; i < kInner * kTiles; ++i) {
        sum += float_from_bf16(a[k / kColumns * kInner * kTiles + i]) *
               float_from_bf16(b[k % kColumns * kInner * kTiles + i]);
      }
      if (c[k] != sum) return false;
    }
    return true;
  }
};

const std::string& right() {
  static const std::string text = testing::text("pipelined_nvcc");
  return text;
}

TEST_CASE("a pipeline of tensor copies and products is right, to the word", "[ptx]") {
  for (const simt::Order order : testing::kOrders) {
    Run run;
    const simt::LaunchReport report = run(right(), order);
    CHECK(report.to_string() == "");
    CHECK(run.is_right());
    CHECK(report.traffic[0] == simt::GlobalTraffic{kRows * kInner * kTiles * 2, 0});
    CHECK(report.traffic[1] == simt::GlobalTraffic{kColumns * kInner * kTiles * 2, 0});
    CHECK(report.traffic[2] == simt::GlobalTraffic{0, kRows * kColumns * 4});
  }
}

TEST_CASE("prefetches change nothing, but need their map", "[ptx]") {
  const auto run = [](const std::string& offset) {
    return testing::faults(
        Run{}(with(right(), "cvta.param.u64 \t%rd6, %rd3;",
                   "cvta.param.u64 %rd6, %rd3; prefetch.tensormap [%rd6+" + offset +
                       "];\nprefetch.global.L2 [%rd6]; nanosleep.u32 20;\n"
                       "prefetch.param.tensormap [pipelined_product_param_0];"),
              simt::Order::ascending));
  };
  CHECK(run("0").empty());
  CHECK(run("16") == std::vector{Fault::out_of_bounds});
}

bool finds(const std::string& part, const std::string& other, Fault fault) {
  return std::all_of(std::begin(testing::kOrders), std::end(testing::kOrders),
                     [&](simt::Order order) {
                       const auto found = testing::faults(Run{}(with(right(), part, other), order));
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
