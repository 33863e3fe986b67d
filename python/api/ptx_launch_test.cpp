#include "python/api/ptx_launch.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"

namespace attest::python {
namespace {

using nlohmann::json;

// y[i] = 2 x[i] for i < n, by blocks of 32 threads.
const std::string kDouble = R"(.version 8.7
.target sm_80
.address_size 64
.file 1 "twice.py"
.visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n)
{
.reg .b64 %a<4>; .reg .b32 %r<4>; .reg .f32 %f; .reg .pred %p;
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.u32 %r0, %r0, 32, %r1;
ld.param.u32 %r2, [n]; setp.ge.u32 %p, %r0, %r2;
@%p ret;
ld.param.u64 %a0, [x]; ld.param.u64 %a1, [y]; mul.wide.u32 %a2, %r0, 4;
add.u64 %a0, %a0, %a2; add.u64 %a1, %a1, %a2;
ld.global.f32 %f, [%a0]; add.f32 %f, %f, %f;
.loc 1 7 0
st.global.f32 [%a1], %f; ret;
}
)";

class Call {
 public:
  explicit Call(std::uint32_t count) : n_(count) {
    REQUIRE(attest_ptx_load(kDouble.c_str(), "twice", &loaded_) == ATTEST_PASSED);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { attest_ptx_release(loaded_); }

  int run() { return attest_ptx_launch(loaded_, &shape); }

  static constexpr std::size_t kCount = 40;
  std::vector<float> x = std::vector<float>(kCount, 1.5F), y = std::vector<float>(kCount, 0.0F);

 private:
  const attest_ptx* loaded_ = nullptr;
  std::uint32_t n_;
  const float *from_ = x.data(), *to_ = y.data();

 public:
  attest_ptx_buffer buffers[2] = {{"x", x.data(), kCount * 4}, {"y", y.data(), kCount * 4}};
  attest_ptx_value values[3] = {{&from_, 8}, {&to_, 8}, {&n_, 4}};
  attest_ptx_shape shape = {
      sizeof(attest_ptx_shape), {2, 1, 1}, {32, 1, 1}, 0, values, 3, buffers, 2};
};

TEST_CASE("a launch of PTX computes, and counts by buffer", "[python]") {
  Call call(Call::kCount);
  CHECK(call.run() == ATTEST_PASSED);
  CHECK(call.y == std::vector<float>(Call::kCount, 3.0F));
  const json report = json::parse(attest_text());
  CHECK(report["findings"].empty());
  CHECK(report["shared_bytes"] == 0);
  CHECK(report["buffers"][0] == json{{"read_bytes", 160}, {"written_bytes", 0}});
  CHECK(report["buffers"][1] == json{{"read_bytes", 0}, {"written_bytes", 160}});
}

TEST_CASE("a store beyond a buffer is a finding with the lines of PTX and source", "[python]") {
  Call call(Call::kCount + 1);
  call.buffers[0].bytes -= 4;
  CHECK(call.run() == ATTEST_REFUSED);
  const json findings = json::parse(attest_text())["findings"];
  REQUIRE(findings.size() == 2);
  CHECK(findings[0]["fault"] == "out of bounds");
  CHECK(findings[0]["text"] ==
        "lane 7 reads 4 bytes at byte 156 of 'x', which has 156 (PTX line 13)");
  CHECK(findings[1]["text"] ==
        "lane 8 writes 4 bytes at byte 160 of 'y', which has 160 (PTX line 15)");
  CHECK(findings[1]["file"] == "twice.py");
  CHECK(findings[1]["line"] == 7);
  CHECK(findings[1]["block"] == json{1, 0, 0});
}

TEST_CASE("PTX that is not carried out is refused with its line", "[python]") {
  const attest_ptx* loaded = nullptr;
  const auto refused = [&](const std::string& text, const char* kernel, const char* words) {
    CHECK(attest_ptx_load(text.c_str(), kernel, &loaded) == ATTEST_BAD_INPUT);
    CHECK_THAT(attest_text(), Catch::Contains(words));
    CHECK(loaded == nullptr);
  };
  std::string unknown = kDouble;
  unknown.replace(unknown.find("add.f32"), 7, "adx.f32");
  refused(unknown, nullptr, "PTX line 13, column 26: ");
  refused(kDouble, "thrice", "no kernel 'thrice'");
  refused("kernel", "", "PTX line 1, column 1: ");
  CHECK(attest_ptx_load(nullptr, nullptr, &loaded) == ATTEST_BAD_INPUT);
  CHECK(attest_ptx_load(kDouble.c_str(), nullptr, nullptr) == ATTEST_BAD_INPUT);
}

TEST_CASE("tensor maps are written, others refused", "[python]") {
  alignas(16) float data[64] = {};
  unsigned char map[128] = {};
  const attest_ptx_tensor right = {sizeof(attest_ptx_tensor), data, 4, 2, {8, 8}, {32}, {8, 4}, 0};
  CHECK(attest_ptx_tensor_map(&right, map) == ATTEST_PASSED);
  CHECK(std::any_of(std::begin(map), std::end(map), [](unsigned char byte) { return byte != 0; }));
  const auto refused = [&](const std::function<void(attest_ptx_tensor&)>& spoil,
                           const char* words) {
    attest_ptx_tensor tensor = right;
    spoil(tensor);
    CHECK(attest_ptx_tensor_map(&tensor, map) == ATTEST_BAD_INPUT);
    CHECK_THAT(attest_text(), Catch::Contains(words));
  };
  refused([](attest_ptx_tensor& t) { t.struct_size = 8; }, "sizeof(attest_ptx_tensor)");
  refused([](attest_ptx_tensor& t) { t.element_bytes = 8; }, "elements of 8 bytes");
  refused([](attest_ptx_tensor& t) { t.dimensions = 6; }, "6 dimensions; it has 1 to 5");
  refused([](attest_ptx_tensor& t) { t.extents[1] = UINT64_MAX; }, "along y; it is 1 to");
  refused([](attest_ptx_tensor& t) { t.stride_bytes[0] = 24; }, "a stride of 24 bytes");
  refused([](attest_ptx_tensor& t) { t.box[0] = 257; }, "a box of 257 along x");
  refused([](attest_ptx_tensor& t) { t.swizzle_bytes = 16; }, "a swizzle of 16 bytes");
  refused([](attest_ptx_tensor& t) { t.swizzle_bytes = 64; }, "its swizzle spans 64");
  CHECK(attest_ptx_tensor_map(nullptr, map) == ATTEST_BAD_INPUT);
  CHECK(attest_ptx_tensor_map(&right, nullptr) == ATTEST_BAD_INPUT);
}

TEST_CASE("launches that make no sense are refused", "[python]") {
  const auto refused = [](const std::function<void(Call&)>& spoil, const char* words) {
    Call call(Call::kCount);
    spoil(call);
    CHECK(call.run() == ATTEST_BAD_INPUT);
    CHECK_THAT(attest_text(), Catch::Contains(words));
  };
  refused([](Call& call) { call.shape.struct_size = 8; }, "sizeof(attest_ptx_shape)");
  refused([](Call& call) { call.shape.parameters = nullptr; }, "parameters is NULL");
  refused([](Call& call) { call.shape.parameter_count = 2; }, "takes 3 parameters, got 2");
  refused([](Call& call) { call.values[2].bytes = 8; }, "'n' has 4 bytes, not 8");
  refused([](Call& call) { call.values[1].data = nullptr; }, "parameter 1 is NULL");
  refused([](Call& call) { call.shape.buffers = nullptr; }, "buffers is NULL");
  refused([](Call& call) { call.buffers[1].name = nullptr; }, "buffer 1 has no name");
  refused([](Call& call) { call.buffers[0].data = nullptr; }, "buffer 0 is NULL");
  refused([](Call& call) { call.buffers[0].bytes = SIZE_MAX; }, "buffer 0 has");
  refused([](Call& call) { call.shape.grid[0] = 0; }, "grid");
  refused([](Call& call) { call.shape.dynamic_shared_bytes = 1 << 20; }, "shared memory");
  Call call(1);
  CHECK(attest_ptx_launch(nullptr, &call.shape) == ATTEST_BAD_INPUT);
  attest_ptx_release(nullptr);
}

}  // namespace
}  // namespace attest::python
