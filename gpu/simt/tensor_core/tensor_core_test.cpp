#include "gpu/simt/tensor_core/tensor_core.cuh"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/simt/launch.hpp"

namespace attest::simt {
namespace {

constexpr LaunchShape kOneWarp{{1, 1, 1}, {32, 1, 1}, 0};

std::vector<Emulation> orders() {
  std::vector<Emulation> all(3);
  all[1].order = Order::descending;
  all[2].order = Order::shuffled;
  return all;
}

// Where the elements of a fragment lie, as the figures of the PTX ISA have them: element k of lane,
// two to a word.
struct Place {
  std::size_t row, column;
};
Place place_in_a(std::size_t lane, std::size_t k) {
  const bool below = k == 2 || k == 3 || k == 6 || k == 7;
  return {lane / 4 + (below ? 8 : 0), lane % 4 * 2 + k % 2 + (k < 4 ? 0 : 8)};
}
Place place_in_b(std::size_t lane, std::size_t k) {
  return {lane % 4 * 2 + k % 2 + (k < 2 ? 0 : 8), lane / 4};
}
Place place_in_c(std::size_t lane, std::size_t k) {
  return {lane / 4 + (k < 2 ? 0 : 8), lane % 4 * 2 + k % 2};
}

// Fragments and what comes of them, lane by lane.
struct Product {
  std::array<std::array<unsigned, 4>, 32> a{};
  std::array<std::array<unsigned, 2>, 32> b{};
  std::array<std::array<float, 4>, 32> c{}, d{};
};

__global__ void multiply(Product* p, Half type) {
  const unsigned lane = threadIdx.x;
  unsigned a[4], b[2];
  float c[4], d[4];
  for (unsigned k = 0; k < 4; ++k) a[k] = p->a[lane][k], c[k] = p->c[lane][k];
  for (unsigned k = 0; k < 2; ++k) b[k] = p->b[lane][k];
  if (type == Half::bf16) {
    mma_m16n8k16_bf16(d, a, b, c);
  } else {
    mma_m16n8k16_f16(d, a, b, c);
  }
  for (unsigned k = 0; k < 4; ++k) p->d[lane][k] = d[k];
}

// Whole numbers so small that every order of the sums gives the same bits.
TEST_CASE("a product of fragments is that of the matrices", "[tensor_core]") {
  for (const Half type : {Half::bf16, Half::f16}) {
    const auto bits = type == Half::bf16 ? bf16_from_float : f16_from_float;
    for (const Emulation& emulation : orders()) {
      Rng rng(7);
      const auto whole = [&rng] { return static_cast<float>(rng.between(-16, 16)); };
      std::array<std::array<float, 16>, 16> A{};
      std::array<std::array<float, 8>, 16> B{}, C{};
      for (auto& row : A) {
        for (float& value : row) value = whole();
      }
      for (auto* matrix : {&B, &C}) {
        for (auto& row : *matrix) {
          for (float& value : row) value = whole();
        }
      }
      Product product;
      for (std::size_t lane = 0; lane < 32; ++lane) {
        for (std::size_t k = 0; k < 8; ++k) {
          const Place at = place_in_a(lane, k);
          product.a[lane][k / 2] |= unsigned{bits(A[at.row][at.column])} << 16 * (k % 2);
        }
        for (std::size_t k = 0; k < 4; ++k) {
          const Place in_b = place_in_b(lane, k), in_c = place_in_c(lane, k);
          product.b[lane][k / 2] |= unsigned{bits(B[in_b.row][in_b.column])} << 16 * (k % 2);
          product.c[lane][k] = C[in_c.row][in_c.column];
        }
      }
      CHECK(launch(kOneWarp, emulation, {}, multiply, &product, type).to_string().empty());
      for (std::size_t lane = 0; lane < 32; ++lane) {
        for (std::size_t k = 0; k < 4; ++k) {
          const Place at = place_in_c(lane, k);
          float expected = C[at.row][at.column];
          for (std::size_t i = 0; i < 16; ++i) expected += A[at.row][i] * B[i][at.column];
          CHECK(product.d[lane][k] == expected);
        }
      }
    }
  }
}

// The sum of 1, 2^-24 and 2^-24 is 1 in float32 if added one after the other: rounded once, it is
// not.
TEST_CASE("a product is rounded once", "[tensor_core]") {
  Product product;
  const unsigned one = bf16_from_float(1), small = bf16_from_float(0x1p-12F);
  product.a[0] = {one | small << 16, 0, small, 0};
  product.b[0] = {one | small << 16, small};
  CHECK(launch(kOneWarp, {}, {}, multiply, &product, Half::bf16).clean());
  CHECK(product.d[0][0] == 1 + std::numeric_limits<float>::epsilon());
}

template <int kMatrices, bool kTransposed>
__global__ void load(unsigned* out) {
  ATTEST_SHARED(std::uint16_t, rows, [32 * 8]);
  const unsigned lane = threadIdx.x;
  for (unsigned k = 0; k < 8; ++k) rows[lane * 8 + k] = static_cast<std::uint16_t>(lane * 8 + k);
  __syncwarp();
  unsigned r[kMatrices];
  if constexpr (kMatrices == 1) {
    kTransposed ? ldmatrix_x1_trans(r, rows + lane * 8) : ldmatrix_x1(r, rows + lane * 8);
  } else if constexpr (kMatrices == 2) {
    kTransposed ? ldmatrix_x2_trans(r, rows + lane * 8) : ldmatrix_x2(r, rows + lane * 8);
  } else {
    kTransposed ? ldmatrix_x4_trans(r, rows + lane * 8) : ldmatrix_x4(r, rows + lane * 8);
  }
  for (unsigned k = 0; k < kMatrices; ++k) out[lane * kMatrices + k] = r[k];
}

template <int kMatrices, bool kTransposed>
void check_loads() {
  for (const Emulation& emulation : orders()) {
    std::array<unsigned, 32 * kMatrices> out{};
    CHECK(launch(kOneWarp, emulation, {}, load<kMatrices, kTransposed>, out.data()).clean());
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned matrix = 0; matrix < kMatrices; ++matrix) {
        const unsigned group = lane / 4, pair = lane % 4 * 2;
        const unsigned first = kTransposed ? pair * 8 + group : group * 8 + pair;
        const unsigned second = kTransposed ? first + 8 : first + 1;
        CHECK(out[lane * kMatrices + matrix] ==
              ((matrix * 64 + first) | (matrix * 64 + second) << 16));
      }
    }
  }
}

TEST_CASE("matrices come as fragments", "[tensor_core]") {
  check_loads<1, false>();
  check_loads<1, true>();
  check_loads<2, false>();
  check_loads<2, true>();
  check_loads<4, false>();
  check_loads<4, true>();
}

__global__ void convert(unsigned* out) {
  out[0] = cvt_bf16x2(2.0F, 0x1.01p0F);  // the second a tie, to even
  out[1] = cvt_f16x2(2.0F, 0x1.006p0F);
}

TEST_CASE("values are packed in pairs", "[tensor_core]") {
  std::array<unsigned, 2> out{};
  CHECK(launch({}, {}, {}, convert, out.data()).clean());
  CHECK(out[0] == 0x40003F80U);
  CHECK(out[1] == 0x40003C02U);
}

__global__ void some_return() {
  if (threadIdx.x == 9) return;
  unsigned a[4] = {}, b[2] = {};
  float c[4] = {};
  mma_m16n8k16_bf16(c, a, b, c);
}

__global__ void halves_apart() {
  unsigned a[4] = {}, b[2] = {};
  float c[4] = {};
  if (threadIdx.x < 16) {  // NOLINT(bugprone-branch-clone): two places
    mma_m16n8k16_bf16(c, a, b, c);
  } else {
    mma_m16n8k16_bf16(c, a, b, c);
  }
}

__global__ void other_types() {
  unsigned a[4] = {}, b[2] = {};
  float c[4] = {};
  if (threadIdx.x < 16) {
    mma_m16n8k16_bf16(c, a, b, c);
  } else {
    mma_m16n8k16_f16(c, a, b, c);
  }
}

__global__ void rows_elsewhere(unsigned* seen) {
  alignas(16) const std::array<std::uint16_t, 8> own{};
  unsigned r[1];
  ldmatrix_x1(r, own.data());
  seen[threadIdx.x] = r[0];
}

__global__ void rows_from_part_of_the_warp() {
  ATTEST_SHARED(std::uint16_t, rows, [64]);
  unsigned r[1];
  if (threadIdx.x != 31) ldmatrix_x1(r, rows + threadIdx.x % 8 * 8);
}

TEST_CASE("what is undefined without the whole warp", "[tensor_core]") {
  for (const Emulation& emulation : orders()) {
    const auto found = [&](const auto& kernel, auto... arguments) {
      const LaunchReport report = launch(kOneWarp, emulation, {}, kernel, arguments...);
      REQUIRE_FALSE(report.diagnoses.empty());
      return report.diagnoses.front().fault;
    };
    CHECK(found(some_return) == Fault::exited_lane);
    CHECK(found(rows_from_part_of_the_warp) == Fault::exited_lane);
    CHECK(found(halves_apart) == Fault::divergence);
    CHECK(found(other_types) == Fault::divergence);
    std::array<unsigned, 32> seen{};
    CHECK(found(rows_elsewhere, seen.data()) == Fault::out_of_bounds);
    CHECK(seen[0] == ~0U);
  }
}

}  // namespace
}  // namespace attest::simt
