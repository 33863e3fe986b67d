// CUDA's functions as a library sees them.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/ptx/memory/tensor_map.hpp"
#include "gpu/runtime/calls/call_interface.hpp"
#include "gpu/runtime/cuda_types.hpp"
#include "gpu/runtime/testing/fat_binary.hpp"

using attest::gpu::runtime::CallBuffer;
using attest::gpu::runtime::CallInterface;
using attest::gpu::runtime::Dim3;
using attest::gpu::runtime::kCallStream;
using attest::gpu::runtime::Outcome;
using attest::gpu::runtime::Status;
using attest::gpu::runtime::Stream;

extern "C" {
const CallInterface* attest_cuda_call_interface();
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*,
                            void*, void*, void*, int*);
void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, std::size_t, int,
                       int);
unsigned __cudaPushCallConfiguration(Dim3, Dim3, std::size_t, Stream);
Status __cudaPopCallConfiguration(Dim3*, Dim3*, std::size_t*, Stream*);
Status __cudaGetKernel(const void** handle, const void* host);
Status __cudaLaunchKernel(const void*, Dim3, Dim3, void**, std::size_t, Stream);
Status cudaLaunchKernel(const void*, Dim3, Dim3, void**, std::size_t, Stream);
Status cudaFuncSetAttribute(const void*, int, int);
Status cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, std::size_t);
Status cudaMalloc(void**, std::size_t);
Status cudaFree(void*);
Status cudaMemcpy(void*, const void*, std::size_t, int);
Status cudaMemset(void*, int, std::size_t);
Status cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, int);
Status cudaMemcpyFromSymbol(void*, const void*, std::size_t, std::size_t, int);
Status cudaDeviceGetAttribute(int*, int, int);
Status cudaGetLastError();
Status cudaPeekAtLastError();
const char* cudaGetErrorName(Status);
Status cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, std::uint64_t, int*);
}

namespace {

constexpr int kToDevice = 1, kFromDevice = 2;

// Two kernels of one module: one counts, the other stores the count and an entry of a table.
const std::string kText = R"(.version 8.7
.target sm_80
.address_size 64
.global .u32 counter = 5;
.const .b32 table[2] = {7, 8};
.visible .entry _Z5countv()
{
  .reg .b32 %r;
  atom.global.add.u32 %r, [counter], 1;
  ret;
}
.visible .entry _Z5storePj(.param .u64 out)
{
  .reg .b64 %a; .reg .b32 %r<2>;
  ld.param.u64 %a, [out];
  ld.global.u32 %r0, [counter]; ld.const.u32 %r1, [table+4]; add.u32 %r0, %r0, %r1;
  st.global.u32 [%a], %r0;
  ret;
}
)";

char count_stub, store_stub, counter_stub, table_stub;

void register_once() {
  static const bool done = [] {
    static const std::string bytes =
        attest::gpu::runtime::testing::fat_binary({{1, 80, kText, 0, 0}});
    static attest::gpu::runtime::testing::Wrapper wrapper;
    wrapper.data = bytes.data();
    void** const handle = __cudaRegisterFatBinary(&wrapper);
    const auto add = [&](char* stub, const char* name) {
      __cudaRegisterFunction(handle, stub, stub, name, -1, nullptr, nullptr, nullptr, nullptr,
                             nullptr);
    };
    add(&count_stub, "_Z5countv");
    add(&store_stub, "_Z5storePj");
    __cudaRegisterVar(handle, &counter_stub, &counter_stub, "counter", 0, 4, 0, 0);
    __cudaRegisterVar(handle, &table_stub, &table_stub, "table", 0, 8, 1, 0);
    return true;
  }();
  static_cast<void>(done);
}

Stream call_stream() { return reinterpret_cast<Stream>(kCallStream); }

struct Call {
  explicit Call(std::vector<CallBuffer> buffers) {
    register_once();
    attest_cuda_call_interface()->begin_call(buffers.data(), buffers.size());
  }
  std::string end() {
    const char* text = nullptr;
    outcome = attest_cuda_call_interface()->end_call(&text);
    return text;
  }
  Outcome outcome = Outcome::clean;
};

std::uint32_t stored() {
  std::uint32_t out = 0;
  Call call({{"out", &out, sizeof out, true}});
  void* pointer = &out;
  void* arguments[] = {&pointer};
  CHECK(cudaLaunchKernel(&store_stub, {}, {}, arguments, 0, call_stream()) == Status::success);
  CHECK(call.end().empty());
  CHECK(call.outcome == Outcome::clean);
  return out;
}

}  // namespace

TEST_CASE("a module's variables are those of all its kernels", "[cudart]") {
  CHECK(stored() == 5 + 8);
  Call call({});
  const void* kernel = nullptr;
  CHECK(__cudaGetKernel(&kernel, &count_stub) == Status::success);
  CHECK(__cudaLaunchKernel(kernel, {3, 1, 1}, {2, 1, 1}, nullptr, 0, call_stream()) ==
        Status::success);
  CHECK(call.end().empty());
  CHECK(stored() == 11 + 8);
  const std::uint32_t changed = 100;
  CHECK(cudaMemcpyToSymbol(&table_stub, &changed, 4, 4, kToDevice) == Status::success);
  CHECK(stored() == 111);
  std::uint32_t counter = 0;
  CHECK(cudaMemcpyFromSymbol(&counter, &counter_stub, 4, 0, kFromDevice) == Status::success);
  CHECK(counter == 11);
}

TEST_CASE("what a launch does outside the call's memory is found", "[cudart]") {
  std::array<std::uint32_t, 2> out{};
  Call call({{"out", out.data(), 4, true}});
  void* pointer = &out[1];
  void* arguments[] = {&pointer};
  CHECK(cudaLaunchKernel(&store_stub, {}, {}, arguments, 0, call_stream()) ==
        Status::launch_failure);
  CHECK(cudaPeekAtLastError() == Status::launch_failure);
  CHECK(cudaGetLastError() == Status::launch_failure);
  CHECK(cudaGetLastError() == Status::success);
  const std::string text = call.end();
  CAPTURE(text);
  CHECK(text.find("kernel 'store': out of bounds: lane 0 writes 4 bytes at byte 4 of 'out', which "
                  "has 4 (PTX line 17)") == 0);
  CHECK(call.outcome == Outcome::found);
}

TEST_CASE("work on another stream than the call's is found", "[cudart]") {
  Call call({});
  CHECK(cudaLaunchKernel(&count_stub, {}, {}, nullptr, 0, nullptr) == Status::success);
  CHECK(call.end().find("kernel 'count' went to the default stream, not to the call's") == 0);
  CHECK(call.outcome == Outcome::found);
}

TEST_CASE("a launch that no device takes is the library's to see", "[cudart]") {
  Call call({});
  const auto launch = [](Dim3 grid, Dim3 block, std::size_t shared) {
    return cudaLaunchKernel(&count_stub, grid, block, nullptr, shared, call_stream());
  };
  constexpr int kDynamicSharedBytes = 8;
  CHECK(launch({0, 1, 1}, {1, 1, 1}, 0) == Status::invalid_configuration);
  CHECK(launch({1, 1, 1}, {1025, 1, 1}, 0) == Status::invalid_configuration);
  CHECK(launch({1, 1, 1}, {1, 1, 1}, 100 << 10) == Status::invalid_value);
  CHECK(cudaFuncSetAttribute(&count_stub, kDynamicSharedBytes, 164 << 10) == Status::invalid_value);
  CHECK(cudaFuncSetAttribute(&count_stub, kDynamicSharedBytes, 100 << 10) == Status::success);
  CHECK(launch({1, 1, 1}, {1, 1, 1}, 100 << 10) == Status::success);
  CHECK(cudaLaunchKernel("", {}, {}, nullptr, 0, call_stream()) == Status::invalid_device_function);
  CHECK(call.end().empty());
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &count_stub, 256, 50 << 10) ==
        Status::success);
  CHECK(blocks == 3);  // 164 KiB, of which each takes 50 and 1
}

TEST_CASE("copies keep within the device's memory", "[cudart]") {
  Call call({});
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, 8) == Status::success);
  const std::uint64_t value = 0x0807060504030201;
  std::uint64_t back = 0;
  CHECK(cudaMemcpy(device, &value, 8, kToDevice) == Status::success);
  CHECK(cudaMemset(static_cast<char*>(device) + 7, 0xAA, 1) == Status::success);
  CHECK(cudaMemcpy(&back, device, 8, kFromDevice) == Status::success);
  CHECK(back == 0xAA07060504030201);
  CHECK(call.end().empty());
  Call beyond({});
  CHECK(cudaMemcpy(static_cast<char*>(device) + 1, &value, 8, kToDevice) == Status::invalid_value);
  CHECK(beyond.end().find("a copy of 8 bytes leaves the device's memory") == 0);
  Call from_host({});
  CHECK(cudaMemset(&back, 0, 8) == Status::invalid_value);
  CHECK(from_host.end().find("a fill of 8 bytes") == 0);
  CHECK(cudaFree(device) == Status::success);
  CHECK(cudaFree(device) == Status::invalid_value);
}

TEST_CASE("configurations of nested launches", "[cudart]") {
  __cudaPushCallConfiguration({1, 2, 3}, {4, 5, 6}, 7, call_stream());
  __cudaPushCallConfiguration({8, 1, 1}, {9, 1, 1}, 0, nullptr);
  Dim3 grid, block;
  std::size_t shared = 0;
  Stream stream = nullptr;
  CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == Status::success);
  CHECK(grid.x == 8);
  CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == Status::success);
  CHECK((grid.z == 3 && block.y == 5 && shared == 7 && stream == call_stream()));
  CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) ==
        Status::invalid_configuration);
}

using Encode = Status(void*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,
                      const std::uint32_t*, const std::uint32_t*, int, int, int, int);

TEST_CASE("tensor maps are those of the driver", "[cudart]") {
  void* function = nullptr;
  int found = 7;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, 0, &found) ==
          Status::success);
  CHECK(found == 0);
  auto* const encode = reinterpret_cast<Encode*>(function);
  constexpr int kFloat64 = 8, kBfloat16 = 9, kSwizzle128 = 3;
  alignas(16) std::array<std::byte, 64 * 128> data{};
  const std::uint64_t extents[] = {64, 64};
  const std::uint32_t box[] = {64, 8}, steps[] = {1, 1};
  std::array<std::byte, 128> map{};
  const auto made = [&](int type, std::uint64_t stride, int interleave) {
    return encode(map.data(), type, 2, data.data(), extents, &stride, box, steps, interleave,
                  kSwizzle128, 2, 0);
  };
  Call call({});
  CHECK(made(kBfloat16, 128, 0) == Status::success);
  map[10] ^= std::byte{0x20};  // as CUTLASS does
  const auto decoded = attest::ptx::decode_tensor_map(map);
  REQUIRE(decoded.has_value());
  CHECK(decoded->data == data.data());
  CHECK((decoded->shape.extents[1] == 64 && decoded->shape.box[1] == 8));
  CHECK((decoded->shape.stride_bytes[0] == 128 &&
         decoded->shape.swizzle == attest::simt::Swizzle::bytes_128));
  CHECK(made(kBfloat16, 130, 0) == Status::invalid_value);  // as a driver has it
  CHECK(call.end().empty());
  const auto not_emulated = [&](const auto& body, const char* text) {
    Call with({});
    CHECK(body() == Status::not_supported);
    CHECK(with.end().find(text) != std::string::npos);
    CHECK(with.outcome == Outcome::not_emulated);
  };
  not_emulated([&] { return made(kFloat64, 128, 0); }, "tensors of CUtensorMapDataType 8");
  not_emulated([&] { return made(kBfloat16, 128, 1); }, "interleaved layouts are not emulated");
  not_emulated(
      [&] { return cudaGetDriverEntryPointByVersion("cuLaunchKernelEx", &function, 0, 0, &found); },
      "the driver's cuLaunchKernelEx is not emulated");
}

TEST_CASE("attributes that are not known end the campaign", "[cudart]") {
  Call call({});
  int value = 0;
  constexpr int kMajor = 75, kUnknown = 4711;
  CHECK(cudaDeviceGetAttribute(&value, kMajor, 0) == Status::success);
  CHECK(value == 8);
  CHECK(cudaDeviceGetAttribute(&value, kMajor, 1) == Status::invalid_device);
  CHECK(cudaDeviceGetAttribute(&value, kUnknown, 0) == Status::not_supported);
  CHECK(std::string(cudaGetErrorName(Status::not_supported)) == "cudaErrorNotSupported");
  CHECK(call.end().find("attribute 4711") != std::string::npos);
  CHECK(call.outcome == Outcome::not_emulated);
}
