#include "core/testing/catch.hpp"
#include "gpu/device/buffer.hpp"
#include "gpu/device/counted_run.hpp"
#include "gpu/device/device_kernels.hpp"
#include "gpu/device/testing/small_blocks.hpp"
#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/two_pass.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu::cuda {
namespace {

simt::GlobalTraffic sum_of(const simt::LaunchReport& report) {
  simt::GlobalTraffic sum;
  for (const simt::GlobalTraffic& traffic : report.traffic) sum += traffic;
  return sum;
}

TEST_CASE("device counts equal emulated counts, byte for byte", "[gpu][device]") {
  for (const char* text : gpu::testing::problems()) {
    INFO(text);
    gpu::testing::Call call(text);
    const EmulatedForward forward(call.forward_arguments());
    CHECK(counted_forward(call.forward_arguments()) ==
          sum_of(flash2_forward_emulated(forward, {})));
    const attest_backward_args args = call.backward_arguments();
    const EmulatedBackward backward(args);
    CHECK(counted_backward(args) == sum_of(two_pass_emulated(backward, {})));
  }
}

TEST_CASE("with and without counters a kernel gives the same bits", "[gpu][device]") {
  const attest_kernel& kernel = flash2_on_device();
  for (const char* text : gpu::testing::problems()) {
    INFO(text);
    const gpu::testing::Call counted(text), plain(text);
    counted_forward(counted.forward_arguments());
    const attest_forward_args args = plain.forward_arguments();
    CHECK(kernel.forward(kernel.self, &args) == ATTEST_OK);
    CHECK(gpu::testing::bits_of({&counted.O, &counted.LSE}) ==
          gpu::testing::bits_of({&plain.O, &plain.LSE}));
  }
}

TEST_CASE("a block of any size adds its counts once", "[gpu][device]") {
  for (const int threads : {1, 2, 31, 32, 33, 1024}) {
    INFO(threads);
    const auto read = static_cast<std::uint64_t>(3 * threads) * sizeof(float);
    CHECK(bytes_counted_by(3, threads) == CountedBytes{read, 3 * sizeof(float)});
  }
}

TEST_CASE("static shared memory counts towards a block's limit", "[gpu][device]") {
  const std::int64_t limit = shared_bytes_limit();
  CHECK(fits_beside_static(limit / 2));
  CHECK_FALSE(fits_beside_static(limit));
  for (const std::int64_t less : {0, 1, 16, 1023, 1024, 1025, 2048}) {
    INFO(limit << " - " << less);
    CHECK(fits_beside_static(limit - less) == launches_beside_static(limit - less));
  }
}

TEST_CASE("a write beside a buffer is found", "[gpu][device]") {
  const Buffer buffer("Q", 5);
  const auto clear = [&](std::ptrdiff_t at) { clear_byte(static_cast<char*>(buffer.data()) + at); };
  CHECK_FALSE(buffer.overrun());
  clear(4);
  CHECK_FALSE(buffer.overrun());
  clear(5);
  CHECK(*buffer.overrun() == "Q: 1 bytes written behind the buffer on the device");
  clear(-1);
  CHECK(*buffer.overrun() == "Q: 1 bytes written before the buffer on the device");
}

}  // namespace
}  // namespace attest::gpu::cuda
