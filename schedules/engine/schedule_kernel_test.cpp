#include "schedules/engine/schedule_kernel.hpp"

#include "core/testing/catch.hpp"
#include "core/testing/kernel_call.hpp"
#include "schedules/register.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;

std::vector<std::uint64_t> bits_of_run(const attest_kernel& kernel, const char* mask) {
  const Problem problem = Problem::parse(std::string("sq=256,d=64,mask=") + mask);
  Call call(problem, 3, {});
  REQUIRE(call.forward(kernel) == ATTEST_OK);
  return call.output_bits();
}

// Returns the bits that the schedule itself gives, with tiles chosen for this problem alone.
std::vector<std::uint64_t> bits_of_schedule(const std::string& spelling,
                                            const attest_kernel& kernel, const char* mask) {
  const Problem problem = Problem::parse(std::string("sq=256,d=64,mask=") + mask);
  Call call(problem, 3, {});
  dense_schedules()
      .make(spelling, *call.form.get(),
            io::FastMemory::of_bytes(kernel.description.fast_memory_bytes))
      ->run(call.forward_arguments());
  return call.output_bits();
}

TEST_CASE("tiles are of the mask at hand, not of one before with the same sizes",
          "[cpu][schedules]") {
  const ScheduleEntry entry{"rolling_queries", "queries roll"};
  const ScheduleKernel kernel("test/", entry, dense_schedules(), nullptr);
  const char* const masks[] = {"block_16_10_1", "random_1_1",   "none", "causal_br",
                               "random_60_2",   "window_20_20", "none", "block_16_10_1"};
  for (const char* mask : masks) {
    INFO(mask);
    CHECK(bits_of_run(kernel.abi(), mask) ==
          bits_of_schedule("rolling_queries", kernel.abi(), mask));
  }
}

TEST_CASE("what does not fit is refused", "[cpu][schedules]") {
  const ScheduleEntry entry{"flash2:bk=16", "query blocks stay"};
  const ScheduleKernel kernel("test/", entry, dense_schedules(), nullptr);
  const std::int64_t most = kernel.abi().description.max_head_dim;
  REQUIRE(most > 0);
  const auto status = [&](std::int64_t head_dim) {
    const Problem problem = Problem::parse("sq=64,d=" + std::to_string(head_dim));
    return Call(problem, 1, {}).forward(kernel.abi());
  };
  CHECK(status(most) == ATTEST_OK);
  CHECK(status(most + 1) == ATTEST_UNSUPPORTED);
}

TEST_CASE("a row of scores that does not fit is not claimed", "[cpu][schedules]") {
  const ScheduleEntry entry{"standard", "scores in slow memory"};
  const ScheduleKernel kernel("test/", entry, dense_schedules(), nullptr);
  REQUIRE(kernel.abi().description.limits != nullptr);
  const std::int64_t most = kernel.abi().description.limits->seqlen_k.most;
  REQUIRE(most > 0);
  const auto status = [&](std::int64_t keys) {
    const Problem problem = Problem::parse("sq=1,d=8,sk=" + std::to_string(keys));
    return Call(problem, 1, {}).forward(kernel.abi());
  };
  CHECK(status(most) == ATTEST_OK);
  CHECK(status(8 * most) == ATTEST_UNSUPPORTED);
}

}  // namespace
}  // namespace attest::schedules
