#include "gpu/simt/tensor_core/warpgroup.cuh"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/simt/async/mbarrier.cuh"
#include "gpu/simt/launch.hpp"
#include "gpu/simt/testing/operand_layout.hpp"
#include "gpu/simt/testing/seeded_pipelines.hpp"

namespace attest::simt {
namespace {

constexpr LaunchShape kOneGroup{{1, 1, 1}, {128, 1, 1}, 65536};

std::vector<Emulation> orders() {
  std::vector<Emulation> all(3);
  all[1].order = Order::descending;
  all[2].order = Order::shuffled;
  return all;
}

TEST_CASE("descriptors have the bits that PTX says", "[warpgroup]") {
  // Start 0x123, leading 1, stride 64 in units of 16 bytes; 128 bytes are mode 1.
  CHECK(encode({0x1230, 16, 1024, Swizzle::bytes_128, 0}) == 0x4000'0040'0001'0123U);
  CHECK(encode({0, 0, 0, Swizzle::bytes_64, 0}) >> 62 == 2);
  CHECK(encode({0, 0, 0, Swizzle::bytes_32, 5}) ==
        (std::uint64_t{3} << 62 | std::uint64_t{5} << 49));
  for (const Swizzle swizzle :
       {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128}) {
    const MatrixDescriptor matrix = decode(encode({0x3FFF0, 4096, 128, swizzle, 3}));
    CHECK(matrix.start == 0x3FFF0);
    CHECK(matrix.leading == 4096);
    CHECK(matrix.stride == 128);
    CHECK(matrix.swizzle == swizzle);
    CHECK(matrix.base_offset == 3);
  }
}

using Layout = testing::OperandLayout;

struct Data {
  Layout a, b;
  Factor type;
  bool adds, from_registers;
  std::vector<std::uint16_t> bits_a, bits_b;  // (64, 16) and (columns, 16)
  std::vector<float> d;                       // (64, columns)
};

template <int kColumns, Major kMajorA, Major kMajorB>
__global__ void multiply(Data* data) {
  ATTEST_DYNAMIC_SHARED(unsigned char, bytes);
  const std::size_t lane = threadIdx.x, pad = 1024 - data->a.bytes() % 1024;
  unsigned char* const at_b = bytes + data->a.bytes() + pad;
  const auto put = [lane](unsigned char* to, const Layout& layout,
                          const std::vector<std::uint16_t>& bits) {
    for (std::size_t k = lane; k < bits.size(); k += 128) {
      *reinterpret_cast<std::uint16_t*>(to + layout.place(k / 16, k % 16)) = bits[k];
    }
  };
  put(bytes, data->a, data->bits_a);
  put(at_b, data->b, data->bits_b);
  fence_proxy_async();
  __syncthreads();
  const auto place = [lane](std::size_t k) {
    return std::pair{16 * (lane / 32) + lane % 32 / 4 + (k % 4 < 2 ? 0 : 8),
                     k / 4 * 8 + lane % 4 * 2 + k % 2};
  };
  float d[kColumns / 2];
  for (std::size_t k = 0; k < kColumns / 2; ++k) {
    d[k] = data->d[place(k).first * kColumns + place(k).second];
  }
  unsigned fragments[4] = {};
  for (std::size_t k = 0; k < 8; ++k) {
    const std::size_t row = 16 * (lane / 32) + lane % 32 / 4 + k / 2 % 2 * 8;
    const std::size_t column = lane % 4 * 2 + k % 2 + k / 4 * 8;
    fragments[k / 2] |= unsigned{data->bits_a[row * 16 + column]} << 16 * (k % 2);
  }
  const auto a = matrix_descriptor(bytes, data->a.leading(), data->a.stride(), data->a.swizzle);
  const auto b = matrix_descriptor(at_b, data->b.leading(), data->b.stride(), data->b.swizzle);
  wgmma_fence();
  if (data->from_registers && data->type == Factor::bf16) {
    wgmma_bf16<kColumns, kMajorB>(d, fragments, b, data->adds);
  } else if (data->from_registers) {
    wgmma_f16<kColumns, kMajorB>(d, fragments, b, data->adds);
  } else if (data->type == Factor::bf16) {
    wgmma_bf16<kColumns, kMajorA, kMajorB>(d, a, b, data->adds);
  } else {
    wgmma_f16<kColumns, kMajorA, kMajorB>(d, a, b, data->adds);
  }
  wgmma_commit();
  wgmma_wait<0>();
  for (std::size_t k = 0; k < kColumns / 2; ++k) {
    data->d[place(k).first * kColumns + place(k).second] = d[k];
  }
}

template <int kColumns, Major kMajorA, Major kMajorB>
void check_products(std::uint64_t seed) {
  Rng rng(seed);
  const auto whole = [&rng] { return static_cast<float>(rng.between(-16, 16)); };
  for (const Swizzle swizzle :
       {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128}) {
    const auto mode = static_cast<unsigned>(swizzle);
    for (const bool from_registers : {false, true}) {
      // The other operand in another mode.
      Data data{{swizzle, kMajorA, 64},
                {static_cast<Swizzle>((mode + 1) % 4), kMajorB, kColumns},
                mode % 2 == 0 ? Factor::bf16 : Factor::f16,
                mode / 2 == 0,
                from_registers,
                std::vector<std::uint16_t>(64 * 16),
                std::vector<std::uint16_t>(kColumns * 16),
                std::vector<float>(64 * kColumns)};
      std::vector<float> a(data.bits_a.size()), b(data.bits_b.size());
      const auto bits = data.type == Factor::bf16 ? bf16_from_float : f16_from_float;
      for (std::size_t k = 0; k < a.size(); ++k) data.bits_a[k] = bits(a[k] = whole());
      for (std::size_t k = 0; k < b.size(); ++k) data.bits_b[k] = bits(b[k] = whole());
      for (float& value : data.d) value = whole();
      std::vector<float> expected = data.d;
      for (std::size_t k = 0; k < expected.size(); ++k) {
        if (!data.adds) expected[k] = 0;
        for (std::size_t i = 0; i < 16; ++i) {
          expected[k] += a[k / kColumns * 16 + i] * b[k % kColumns * 16 + i];
        }
      }
      CHECK(launch(kOneGroup, {}, {}, multiply<kColumns, kMajorA, kMajorB>, &data)
                .to_string()
                .empty());
      INFO("columns " << kColumns << " swizzle " << mode << " registers " << from_registers);
      CHECK(data.d == expected);
    }
  }
}

// Whole numbers so small that every order of the sums gives the same bits.
TEST_CASE("a product of a warpgroup is that of the matrices", "[warpgroup]") {
  check_products<8, Major::k, Major::k>(1);
  check_products<16, Major::k, Major::rows>(2);
  check_products<32, Major::rows, Major::k>(3);
  check_products<64, Major::rows, Major::rows>(4);
  check_products<128, Major::k, Major::rows>(5);
  check_products<256, Major::k, Major::k>(6);
}

// Leaves kPending of three groups under way: their accumulators are NaN, the others' are not.
template <int kPending>
__global__ void wait_for_some(float* seen) {
  ATTEST_DYNAMIC_SHARED(unsigned char, bytes);
  reinterpret_cast<std::uint64_t*>(bytes)[threadIdx.x] = 0;  // 1024 bytes, read by all
  fence_proxy_async();
  __syncthreads();
  const auto zeros = matrix_descriptor(bytes, 0, 0, Swizzle::none);
  float d[3][4] = {{1}, {2}, {3}};
  wgmma_fence();
  for (auto& each : d) {
    wgmma_bf16<8, Major::k, Major::k>(each, zeros, zeros, true);
    wgmma_commit();
  }
  wgmma_wait<kPending>();
  if (threadIdx.x == 77) {
    for (int k = 0; k < 3; ++k) seen[k] = d[k][0];
  }
  wgmma_wait<0>();
}

template <int kPending>
void check_waits() {
  std::array<float, 3> seen{};
  CHECK(launch(kOneGroup, {}, {}, wait_for_some<kPending>, seen.data()).to_string().empty());
  for (int k = 0; k < 3; ++k) {
    const float got = seen[static_cast<std::size_t>(k)];
    CHECK((k < 3 - kPending ? got == static_cast<float>(k + 1) : std::isnan(got)));
  }
}

TEST_CASE("a wait ends all groups of products but the latest", "[warpgroup]") {
  check_waits<0>();
  check_waits<1>();
  check_waits<3>();
}

// The sum of 1, 2^-24 and 2^-24 is 1 in float32 if added one after the other.
TEST_CASE("a warpgroup's product is rounded once", "[warpgroup]") {
  Data data{{Swizzle::none, Major::k, 64},
            {Swizzle::none, Major::k, 8},
            Factor::bf16,
            true,
            false,
            std::vector<std::uint16_t>(64 * 16),
            std::vector<std::uint16_t>(8 * 16),
            std::vector<float>(64 * 8)};
  data.d[0] = 1;
  for (std::size_t k = 0; k < 2; ++k) {
    data.bits_a[k] = data.bits_b[k] = bf16_from_float(0x1p-12F);
  }
  CHECK(launch(kOneGroup, {}, {}, multiply<8, Major::k, Major::k>, &data).clean());
  CHECK(data.d[0] == 1 + std::numeric_limits<float>::epsilon());
}

__global__ void some_return() {
  if (threadIdx.x == 70) return;
  wgmma_fence();
}

__global__ void one_warp_elsewhere() {
  if (threadIdx.x / 32 == 2) {
    __syncthreads();
  } else {
    wgmma_fence();
  }
}

__global__ void two_waits() {
  if (threadIdx.x < 64) {
    wgmma_wait<0>();
  } else {
    wgmma_wait<1>();
  }
}

// Returns a kernel that applies `use` to a matrix of 64 rows at the beginning of shared memory.
template <class Use>
auto on_a_matrix(Use use) {
  return [use] {
    ATTEST_DYNAMIC_SHARED(unsigned char, bytes);
    float d[4] = {};
    wgmma_fence();
    use(d, bytes);
    wgmma_commit();
    wgmma_wait<0>();
  };
}

TEST_CASE("what is undefined without the whole warpgroup", "[warpgroup]") {
  for (const Emulation& emulation : orders()) {
    const auto found = [&](const auto& kernel, unsigned lanes = 128) {
      const LaunchReport report = launch({{1, 1, 1}, {lanes, 1, 1}, 65536}, emulation, {}, kernel);
      REQUIRE_FALSE(report.diagnoses.empty());
      CHECK_THAT(report.diagnoses.front().where.to_string(),
                 Catch::StartsWith("warpgroup_test.cpp:"));
      return report.diagnoses.front().fault;
    };
    CHECK(found(some_return) == Fault::exited_lane);
    CHECK(found([] { wgmma_fence(); }, 96) == Fault::exited_lane);
    CHECK(found(one_warp_elsewhere) == Fault::divergence);
    CHECK(found(two_waits) == Fault::divergence);
    CHECK(found(on_a_matrix([](float(&d)[4], unsigned char* bytes) {
            const auto a =
                matrix_descriptor(bytes + threadIdx.x / 64 * 1024, 128, 256, Swizzle::none);
            wgmma_bf16<8, Major::k, Major::k>(d, a, a, false);
          })) == Fault::divergence);
    CHECK(found(on_a_matrix([](float(&d)[4], unsigned char* bytes) {
            const auto a = matrix_descriptor(bytes + 64 * 1024 - 256, 128, 256, Swizzle::none);
            wgmma_bf16<8, Major::k, Major::k>(d, a, a, false);
          })) == Fault::out_of_bounds);
    CHECK(found(on_a_matrix([](float(&d)[4], unsigned char* bytes) {
            const auto based = encode({128, 16, 1024, Swizzle::bytes_128, 1});
            wgmma_bf16<8, Major::k, Major::k>(
                d, based, matrix_descriptor(bytes, 16, 1024, Swizzle::bytes_128), false);
          })) == Fault::misaligned);
    CHECK(found(on_a_matrix([](float(&)[4], unsigned char* bytes) {
            matrix_descriptor(bytes + 8, 16, 1024, Swizzle::bytes_128);
          })) == Fault::misaligned);
  }
}

__global__ void forgotten_wait() {
  ATTEST_DYNAMIC_SHARED(unsigned char, bytes);
  float d[4] = {};
  const auto a = matrix_descriptor(bytes, 128, 256, Swizzle::none);
  wgmma_fence();
  wgmma_bf16<8, Major::k, Major::k>(d, a, a, false);
  wgmma_commit();
}

TEST_CASE("a product that nothing waits for", "[warpgroup]") {
  const LaunchReport report = launch(kOneGroup, {}, {}, forgotten_wait);
  REQUIRE(report.diagnoses.size() == 1);
  CHECK_THAT(report.to_string(), Catch::Contains("the block ends while a wgmma is under way"));
}

// Tensor copies, mbarriers and products together; the bits of the product and the bytes moved.
TEST_CASE("a pipelined product is exact in every order", "[warpgroup]") {
  for (Emulation emulation : orders()) {
    for (const int threads : {1, 2}) {
      emulation.threads = threads;
      const SeededRun run = run_pipeline(PipelineBug::none, emulation);
      CHECK(run.report.to_string().empty());
      CHECK(run.right);
    }
  }
  // Without hooks, too, where the copies' latest arrival and NaN show it.
  for (const PipelineBug bug :
       {PipelineBug::no_wait_for_tiles, PipelineBug::wrong_parity, PipelineBug::overwritten_tile}) {
    CHECK_FALSE(run_pipeline(bug, {}).right);
  }
}

}  // namespace
}  // namespace attest::simt
