#include "gpu/simt/testing/seeded_pipelines.hpp"

#include <array>
#include <utility>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "gpu/simt/testing/pipelined_product.cuh"

namespace attest::simt {
namespace {

constexpr int kRows = 100, kColumns = 40, kInner = 232;

// Row-major, tensors and boxes by columns and rows.
TensorShape matrix(Element element, int rows, int columns, int box_rows, int box_columns,
                   Swizzle swizzle) {
  TensorShape shape;
  shape.element = element;
  shape.extents[0] = columns;
  shape.extents[1] = rows;
  shape.stride_bytes[0] = std::int64_t{columns} * shape.element_bytes();
  shape.box[0] = box_columns;
  shape.box[1] = box_rows;
  shape.swizzle = swizzle;
  return shape;
}

template <PipelineBug bug>
SeededRun run(const Emulation& emulation) {
  using T = PipelinedTiles;
  std::vector<std::uint16_t> a(kRows * kInner), b(kColumns * kInner);
  const auto value = [](std::size_t k, std::size_t period) {
    const std::size_t half = period / 2;
    return static_cast<float>(k * k % period) - static_cast<float>(half);
  };
  for (std::size_t k = 0; k < a.size(); ++k) a[k] = bf16_from_float(value(k, 13));
  for (std::size_t k = 0; k < b.size(); ++k) b[k] = bf16_from_float(value(k, 17));
  std::vector<float> c(kRows * kColumns), expected(c.size());
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      float& sum = expected[row * kColumns + column];
      for (std::size_t k = 0; k < kInner; ++k) {
        sum += value(row * kInner + k, 13) * value(column * kInner + k, 17);
      }
    }
  }
  GlobalMemory memory;
  const auto in_a = memory.add("A", static_cast<const std::uint16_t*>(a.data()),
                               static_cast<std::int64_t>(a.size()));
  const auto in_b = memory.add("B", static_cast<const std::uint16_t*>(b.data()),
                               static_cast<std::int64_t>(b.size()));
  const auto out = memory.add("C", c.data(), static_cast<std::int64_t>(c.size()));
  const TensorMap A = map_tensor(
      in_a, matrix(Element::bf16, kRows, kInner, T::kRows, T::kInner, Swizzle::bytes_128));
  const TensorMap B = map_tensor(
      in_b, matrix(Element::bf16, kColumns, kInner, T::kColumns, T::kInner, Swizzle::bytes_128));
  const TensorMap C =
      map_tensor(out, matrix(Element::f32, kRows, kColumns, T::kRows, T::kColumns, Swizzle::none));
  constexpr unsigned kBlocksX = 2, kBlocksY = 2;
  constexpr int kTiles = (kInner + T::kInner - 1) / T::kInner;
  SeededRun result;
  result.report = launch({{kBlocksX, kBlocksY, 1}, {T::kLanes, 1, 1}, T::kSharedBytes}, emulation,
                         memory, pipelined_product<Counted, bug>, A, B, C, kTiles, Counted::Sink{});
  // A is read once for each block along x, B for each along y.
  const std::vector<GlobalTraffic> traffic{{std::int64_t{kBlocksX} * kRows * kInner * 2, 0},
                                           {std::int64_t{kBlocksY} * kColumns * kInner * 2, 0},
                                           {0, std::int64_t{4} * kRows * kColumns}};
  result.right = c == expected && result.report.traffic == traffic;
  return result;
}

template <std::size_t... k>
SeededRun choose(PipelineBug bug, const Emulation& emulation, std::index_sequence<k...>) {
  using Run = SeededRun (*)(const Emulation&);
  constexpr std::array<Run, sizeof...(k)> kRuns{run<static_cast<PipelineBug>(k)>...};
  return kRuns[static_cast<std::size_t>(bug)](emulation);
}

}  // namespace

SeededRun run_pipeline(PipelineBug bug, const Emulation& emulation) {
  return choose(bug, emulation, std::make_index_sequence<kPipelineBugs>{});
}

}  // namespace attest::simt
