#include "gpu/simt/async/tensor_copy.cuh"

#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/simt/launch.hpp"

namespace attest::simt {
namespace {

constexpr LaunchShape kOneLane{{1, 1, 1}, {1, 1, 1}, 65536};

// Where PTX's figures put the 16-byte piece of a row of a box: spans of 32, 64 or 128 bytes fill
// lines of 128, and the pieces of a span change places by the line.
std::size_t place_of(std::size_t row, std::size_t piece, Swizzle swizzle, std::size_t row_bytes) {
  std::size_t key = 0;
  if (swizzle == Swizzle::bytes_32) key = row / 4 % 2;
  if (swizzle == Swizzle::bytes_64) key = row / 2 % 4;
  if (swizzle == Swizzle::bytes_128) key = row % 8;
  return row * row_bytes + 16 * (piece ^ key);
}

// 19 columns of 24, 13 rows, 3 planes.
struct Volume {
  static constexpr int kColumns = 19, kStride = 24, kRows = 13, kPlanes = 3;
  std::vector<std::uint16_t> words = std::vector<std::uint16_t>(kStride * kRows * kPlanes);

  Volume() { std::iota(words.begin(), words.end(), std::uint16_t{1}); }
  static TensorShape shape(int rank, Swizzle swizzle, int box_x, int box_y, int box_z) {
    TensorShape made;
    made.rank = rank;
    made.swizzle = swizzle;
    made.extents[0] = kColumns;
    made.extents[1] = kRows;
    made.stride_bytes[0] = kStride * 2;
    made.box[0] = box_x;
    made.box[1] = box_y;
    if (rank == 3) {
      made.extents[2] = kPlanes;
      made.stride_bytes[1] = kStride * kRows * 2;
      made.box[2] = box_z;
    }
    return made;
  }
  static bool has(int x, int y, int z) {
    return x >= 0 && x < kColumns && y >= 0 && y < kRows && z >= 0 && z < kPlanes;
  }
  static std::size_t at(int x, int y, int z) {
    return static_cast<std::size_t>((std::int64_t{z} * kRows + y) * kStride + x);
  }
};

struct Case {
  TensorShape shape;
  int x, y, z;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Swizzle swizzle :
       {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128}) {
    const int columns = swizzle == Swizzle::none ? 24 : 8 << static_cast<int>(swizzle);
    for (const auto& [x, y, z] : {std::array{0, 0, 0}, std::array{-3, -5, -1}, std::array{7, 9, 2},
                                  std::array{40, 2, 0}, std::array{2, -20, 1}}) {
      all.push_back({Volume::shape(2, swizzle, columns, 11, 1), x, y, 0});
      all.push_back({Volume::shape(3, swizzle, columns, 7, 2), x, y, z});
    }
  }
  return all;
}

// function(place in the box's bytes in shared memory, x, y, z of the tensor) for each element.
template <class Function>
void for_each_element(const Case& c, Function&& function) {
  const auto row_bytes = static_cast<std::size_t>(c.shape.box[0]) * 2;
  for (int z = 0; z < c.shape.box[2]; ++z) {
    for (int y = 0; y < c.shape.box[1]; ++y) {
      for (int x = 0; x < c.shape.box[0]; ++x) {
        const auto row = static_cast<std::size_t>(std::int64_t{z} * c.shape.box[1] + y);
        const auto column = static_cast<std::size_t>(x);
        function(place_of(row, column / 8, c.shape.swizzle, row_bytes) + column % 8 * 2, c.x + x,
                 c.y + y, c.z + z);
      }
    }
  }
}

__global__ void load_box(const __grid_constant__ TensorMap map, int x, int y, int z,
                         unsigned char* seen) {
  Counted mem(Counted::Sink{});
  ATTEST_DYNAMIC_SHARED(unsigned char, box);
  ATTEST_SHARED(std::uint64_t, full, [1]);
  mbarrier_init(full, 1);
  fence_mbarrier_init();
  mbarrier_arrive_expect_tx(full, static_cast<unsigned>(map.shape.box_bytes()));
  if (map.shape.rank == 2) {
    cp_async_bulk_tensor_2d(box, mem, map, x, y, full);
  } else {
    cp_async_bulk_tensor_3d(box, mem, map, x, y, z, full);
  }
  mbarrier_wait(full, 0);
  std::memcpy(seen, box, static_cast<std::size_t>(map.shape.box_bytes()));
}

TEST_CASE("a box comes swizzled, with zeros where the tensor has nothing", "[tensor_copy]") {
  Volume volume;
  for (const Case& c : cases()) {
    std::vector<unsigned char> seen(static_cast<std::size_t>(c.shape.box_bytes()));
    GlobalMemory memory;
    const auto in = memory.add("in", static_cast<const std::uint16_t*>(volume.words.data()),
                               static_cast<std::int64_t>(volume.words.size()));
    const LaunchReport report =
        launch(kOneLane, {}, memory, load_box, map_tensor(in, c.shape), c.x, c.y, c.z, seen.data());
    CHECK(report.to_string().empty());
    std::int64_t bytes = 0;
    bool equal = true;
    for_each_element(c, [&](std::size_t place, int x, int y, int z) {
      std::uint16_t got = 0;
      std::memcpy(&got, seen.data() + place, 2);
      const bool has = Volume::has(x, y, z);
      equal &= got == (has ? volume.words[Volume::at(x, y, z)] : 0);
      bytes += has ? 2 : 0;
    });
    INFO("box at " << c.x << " " << c.y << " " << c.z << " rank " << c.shape.rank);
    CHECK(equal);
    CHECK(report.traffic[0] == GlobalTraffic{bytes, 0});
    CHECK(c.shape.inside_bytes(c.x, c.y, c.z) == bytes);
  }
}

__global__ void store_box(const __grid_constant__ TensorMap map, int x, int y, int z,
                          const unsigned char* from) {
  Counted mem(Counted::Sink{});
  ATTEST_DYNAMIC_SHARED(unsigned char, box);
  std::memcpy(box, from, static_cast<std::size_t>(map.shape.box_bytes()));
  fence_proxy_async();
  if (map.shape.rank == 2) {
    cp_async_bulk_tensor_2d_store(mem, map, x, y, box);
  } else {
    cp_async_bulk_tensor_3d_store(mem, map, x, y, z, box);
  }
  cp_async_bulk_commit();
  cp_async_bulk_wait<0>();
}

TEST_CASE("a stored box leaves what is outside of the tensor alone", "[tensor_copy]") {
  for (const Case& c : cases()) {
    Volume volume;
    std::vector<std::uint16_t> expected = volume.words;
    std::vector<unsigned char> box(static_cast<std::size_t>(c.shape.box_bytes()));
    std::int64_t bytes = 0;
    std::uint16_t value = 40000;
    for_each_element(c, [&](std::size_t place, int x, int y, int z) {
      std::memcpy(box.data() + place, &++value, 2);
      if (!Volume::has(x, y, z)) return;
      expected[Volume::at(x, y, z)] = value;
      bytes += 2;
    });
    GlobalMemory memory;
    const auto out =
        memory.add("out", volume.words.data(), static_cast<std::int64_t>(volume.words.size()));
    const LaunchReport report = launch(kOneLane, {}, memory, store_box, map_tensor(out, c.shape),
                                       c.x, c.y, c.z, box.data());
    CHECK(report.to_string().empty());
    CHECK(volume.words == expected);
    CHECK(report.traffic[0] == GlobalTraffic{0, bytes});
  }
}

constexpr int kGroups = 3;

// Stores in groups of one, then looks at what is written after a wait for all but `kPending`.
template <int kPending>
__global__ void store_groups(const __grid_constant__ TensorMap map, const float* out, float* seen) {
  Uncounted mem(Uncounted::Sink{});
  ATTEST_DYNAMIC_SHARED(float, words);
  for (int k = 0; k < kGroups; ++k) {
    words[32 * k] = static_cast<float>(k + 1);
    fence_proxy_async();
    cp_async_bulk_tensor_2d_store(mem, map, 0, k, words + 32 * k);
    cp_async_bulk_commit();
  }
  cp_async_bulk_wait<kPending>();
  for (int k = 0; k < kGroups; ++k) seen[k] = out[4 * k];
  cp_async_bulk_wait<0>();
}

TensorShape rows_of_four(int rows) {
  TensorShape shape;
  shape.element = Element::f32;
  shape.extents[0] = shape.box[0] = 4;
  shape.extents[1] = rows;
  shape.stride_bytes[0] = 16;
  return shape;
}

template <int kPending>
void check_groups() {
  alignas(16) std::array<float, 4 * kGroups> out{};
  std::array<float, kGroups> seen{};
  const TensorMap map = map_tensor(out.data(), rows_of_four(kGroups));
  CHECK(launch(kOneLane, {}, {}, store_groups<kPending>, map, out.data(), seen.data())
            .to_string()
            .empty());
  for (int k = 0; k < kGroups; ++k) {
    const auto at = static_cast<std::size_t>(k);
    CHECK(seen[at] == (k < kGroups - kPending ? static_cast<float>(k + 1) : 0));
    CHECK(out[4 * at] == static_cast<float>(k + 1));
  }
}

TEST_CASE("a wait ends all groups of stores but the latest", "[tensor_copy]") {
  check_groups<0>();
  check_groups<1>();
  check_groups<kGroups>();
}

TEST_CASE("maps that no device takes", "[tensor_copy]") {
  alignas(16) const std::array<float, 64> data{};
  const TensorShape valid = rows_of_four(4);
  CHECK_NOTHROW(map_tensor(data.data(), valid));
  const auto refused = [&](const std::string& text, auto change) {
    TensorShape shape = valid;
    change(shape);
    CHECK_THROWS_MATCHES(map_tensor(data.data(), shape), InvalidProblem,
                         Catch::Message("tensor map: " + text));
  };
  CHECK_THROWS_WITH(map_tensor(data.data() + 1, valid), Catch::Contains("multiple of 16 bytes"));
  refused("6 dimensions; it has 1 to 5", [](TensorShape& s) { s.rank = 6; });
  refused("extent 0 along y; it is 1 to 2^31 - 1", [](TensorShape& s) { s.extents[1] = 0; });
  refused("a box of 257 along y; it is 1 to 256", [](TensorShape& s) { s.box[1] = 257; });
  refused("a box of 0 along x; it is 1 to 256", [](TensorShape& s) { s.box[0] = 0; });
  refused("a row of the box has 12 bytes; it must be a multiple of 16",
          [](TensorShape& s) { s.box[0] = 3; });
  refused("a stride of 24 bytes along y; it must be a multiple of 16 below 2^40",
          [](TensorShape& s) { s.stride_bytes[0] = 24; });
  TensorShape repeated = valid;  // as libraries have it along a dimension of one
  repeated.stride_bytes[0] = 0;
  CHECK_NOTHROW(map_tensor(data.data(), repeated));
  refused("a row of the box has 16 bytes, but its swizzle spans 32",
          [](TensorShape& s) { s.swizzle = Swizzle::bytes_32; });
  refused("extent and box along z must be 1 in 2 dimensions", [](TensorShape& s) { s.box[2] = 2; });
}

TEST_CASE("tensor copies that no device takes", "[tensor_copy]") {
  alignas(16) std::array<float, 16> data{};
  GlobalMemory memory;
  const auto in = memory.add("in", data.data(), 12);  // the map says 16
  const TensorMap counted = map_tensor(in, rows_of_four(4));
  const TensorMap uncounted = map_tensor(data.data(), rows_of_four(4));
  const auto found = [&](const TensorMap& map, int byte, int y, bool fenced) {
    const LaunchReport report = launch({{1, 1, 1}, {1, 1, 1}, 256}, {}, memory, [&] {
      Counted mem(Counted::Sink{});
      ATTEST_DYNAMIC_SHARED(unsigned char, box);
      ATTEST_SHARED(std::uint64_t, full, [1]);
      mbarrier_init(full, 1);
      if (fenced) fence_mbarrier_init();
      mbarrier_arrive_expect_tx(full, 16);
      cp_async_bulk_tensor_2d(box + byte, mem, map, 0, y, full);
      mbarrier_wait(full, 0);
    });
    return report.clean() ? "" : std::string(name(report.diagnoses.front().fault));
  };
  CHECK(found(counted, 128, 0, true).empty());
  CHECK(found(counted, 0, 9, true).empty());  // all zeros
  CHECK(found(counted, 64, 0, true) == name(Fault::misaligned));
  CHECK(found(counted, 256, 0, true) == name(Fault::out_of_bounds));
  CHECK(found(counted, 0, 3, true) == name(Fault::out_of_bounds));
  CHECK(found(counted, 0, 0, false) == name(Fault::mbarrier));
  CHECK(found(uncounted, 0, 0, true) == name(Fault::uncounted));
}

}  // namespace
}  // namespace attest::simt
