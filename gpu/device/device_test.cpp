#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/device/buffer.hpp"
#include "gpu/device/device_kernels.hpp"
#include "gpu/device/measure/counted_run.hpp"
#include "gpu/device/testing/small_blocks.hpp"
#include "gpu/kernels/emulated/emulated_kernel.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/forward_kernels.hpp"

namespace attest::gpu::cuda {
namespace {

simt::GlobalTraffic sum_of(const simt::LaunchReport& report) {
  simt::GlobalTraffic sum;
  for (const simt::GlobalTraffic& traffic : report.traffic) sum += traffic;
  return sum;
}

TEST_CASE("device counts equal emulated counts, byte for byte", "[gpu][device]") {
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    const EmulatedDirections& directions = kernel->directions();
    const std::uint32_t features = kernel->description().features;
    for (const std::string& spelled :
         gpu::testing::spellings_taken(*kernel, gpu::testing::problems_of(features))) {
      INFO(kernel->description().name << " " << spelled);
      gpu::testing::Call call(spelled, features);
      if (directions.forward.exists()) {
        const attest_forward_args args = call.forward_arguments(kernel->abi());
        const simt::GlobalTraffic on_device = counted(kernel->description().name, args);
        EmulatedForward emulated(args);
        CHECK(on_device == sum_of(directions.forward.run(emulated, {})));
      }
      if (directions.backward.exists()) {
        const attest_backward_args args = call.backward_arguments(kernel->abi());
        if (!kernel->accepts(args)) continue;
        const simt::GlobalTraffic on_device = counted(kernel->description().name, args);
        EmulatedBackward emulated(args);
        CHECK(on_device == sum_of(directions.backward.run(emulated, {})));
      }
    }
    if (!directions.loss_gradient.exists()) continue;
    INFO(kernel->description().name);
    gpu::testing::LossCall call(gpu::testing::loss_problem(70, 33));
    const attest_loss_args args = call.arguments(kernel->abi());
    const simt::GlobalTraffic on_device = counted(kernel->description().name, args);
    EmulatedLoss emulated(args);
    CHECK(on_device == sum_of(directions.loss_gradient.run(emulated, {})));
  }
}

TEST_CASE("with and without counters a kernel gives the same bits", "[gpu][device]") {
  for (const EmulatedKernel* emulated : emulated_kernels()) {
    if (!emulated->directions().forward.exists()) continue;
    const attest_kernel& kernel = on_device(*emulated);
    const std::uint32_t features = emulated->description().features;
    for (const std::string& spelled :
         gpu::testing::spellings_taken(*emulated, gpu::testing::problems_of(features))) {
      INFO(kernel.description.name << " " << spelled);
      gpu::testing::Call with(spelled, features), plain(spelled, features);
      counted(emulated->description().name, with.forward_arguments(emulated->abi()));
      const attest_forward_args args = plain.forward_arguments(emulated->abi());
      CHECK(kernel.forward(kernel.self, &args) == ATTEST_OK);
      CHECK(with.forward_bits(emulated->abi()) == plain.forward_bits(emulated->abi()));
    }
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

TEST_CASE("threads launch a kernel with more and less shared memory at once",
          "[gpu][device][delay]") {
  CHECK(refused_among_threads(Asking::as_all) == 0);
  CHECK(refused_among_threads(Asking::its_own) > 0);
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
