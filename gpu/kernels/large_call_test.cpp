#include <sys/mman.h>

#include <array>

#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/simt/memory/traffic.hpp"
#include "gpu/testing/call.hpp"

/// Calls that are large in what a small one cannot show: blocks and offsets.
namespace attest::gpu {
namespace {

// Elements of a tensor whose last one lies far behind its first: pages that nothing touches take
// no memory.
class FarTensor {
 public:
  static constexpr std::int64_t kColumns = 4, kBatchStride = (std::int64_t{1} << 31) + 64;

  FarTensor() {
    void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(mapped != MAP_FAILED);
    data_ = static_cast<float*>(mapped);
    form_.data = data_;
    form_.device = {ATTEST_CPU, 0};
    form_.ndim = 4;
    form_.dtype = {2, 32, 1};
    form_.shape = shape_.data();
    form_.strides = strides_.data();
  }
  ~FarTensor() { munmap(data_, kBytes); }
  FarTensor(const FarTensor&) = delete;
  FarTensor& operator=(const FarTensor&) = delete;

  const attest_tensor* abi() const { return &form_; }
  float& at(std::int64_t batch, std::int64_t column) {
    return data_[batch * kBatchStride + column];
  }

 private:
  static constexpr std::size_t kBytes = (kBatchStride + kColumns) * sizeof(float);
  float* data_ = nullptr;
  std::array<std::int64_t, 4> shape_{2, 1, 1, kColumns}, strides_{kBatchStride, 4, 4, 1};
  attest_tensor form_{};
};

TEST_CASE("more than 65535 heads and batch entries, each with a block of its own", "[gpu][large]") {
  constexpr std::int64_t kBatch = 257, kHeads = 256;
  static_assert(kBatch * kHeads > 65535);
  testing::Call call("b=257,hq=256,sq=1,sk=1,d=1");
  EmulatedForward forward(call.forward_arguments());
  // The one with the fewest lanes.
  const auto& run = flash2_held_kernel<4>().directions().forward.run;
  CHECK(run(forward, {}).to_string().empty());
  // With one key, the weight is 1: O is V, which is another for each head and batch entry.
  CHECK(call.O.bits() == call.V.bits());
}

TEST_CASE("elements more than 2^31 behind the first", "[gpu][large]") {
  const testing::Call call("b=2,sq=1,sk=1,d=4");
  FarTensor V, O;
  for (std::int64_t column = 0; column < FarTensor::kColumns; ++column) {
    V.at(0, column) = static_cast<float>(column);
    V.at(1, column) = static_cast<float>(100 + column);
    O.at(0, column) = O.at(1, column) = -1;
  }
  attest_forward_args args = call.forward_arguments();
  args.V = V.abi();
  args.O = O.abi();
  EmulatedForward forward(args);
  CHECK(flash2_forward_emulated(forward, {}).to_string().empty());
  for (std::int64_t column = 0; column < FarTensor::kColumns; ++column) {
    CHECK(O.at(0, column) == static_cast<float>(column));
    CHECK(O.at(1, column) == static_cast<float>(100 + column));
  }
}

// Such an element as a kernel finds it whose offsets have 32 bits: before the first.
void writes_by_32_bits(simt::GlobalPointer<float> O, std::int64_t batch_stride) {
  simt::Counted mem(simt::Counted::Sink{});
  mem.store(O, static_cast<std::int32_t>(batch_stride), 1.0F);
}

TEST_CASE("offsets of 32 bits are found out", "[gpu][large]") {
  FarTensor O;
  simt::GlobalMemory memory;
  const auto pointer = memory.add("O", &O.at(0, 0), FarTensor::kBatchStride + FarTensor::kColumns);
  CHECK_THAT(
      simt::launch({}, {}, memory, writes_by_32_bits, pointer, FarTensor::kBatchStride).to_string(),
      Catch::Contains("lane 0 writes 4 bytes at byte -8589934336 of 'O', which has"));
}

}  // namespace
}  // namespace attest::gpu
