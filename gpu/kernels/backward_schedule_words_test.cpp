#include <string>

#include "core/testing/catch.hpp"
#include "gpu/kernels/emulated/emulated_kernel.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/words.hpp"

/// The law that ties the backward of each kernel to the schedule that it names for it.
namespace attest::gpu {
namespace {

std::string dense(const std::string& schedule) {
  const std::string over_lists = "block_";
  return schedule.rfind(over_lists, 0) == 0 ? schedule.substr(over_lists.size()) : schedule;
}

// Zeros in dQ before atomic additions: the schedule makes dQ on the first tile that queries meet,
// of blocks of 32 queries and any number of keys here. Sums that are not dQ itself are rounded
// last.
MovedWords zeros(const std::string& schedule, const Problem& p) {
  if (schedule.rfind("key_stationary", 0) != 0) return {};
  std::int64_t rows = testing::visited_tiles(p, 32, 32).queries;
  if (p.dtype != DType::f32) rows += p.batch * p.seqlen_q;
  const std::int64_t words = p.num_heads_q * rows * p.head_dim_qk;
  return {words, words};
}

// Tells whether the emulated backward moves nothing but zeros() beyond the words of a schedule.
bool holds(const EmulatedKernel& kernel, const std::string& schedule, const char* text) {
  testing::Call call(testing::spelled_for(kernel.abi(), text));
  EmulatedForward forward(call.forward_arguments(kernel.abi()));
  CHECK(kernel.directions().forward.run(forward, {}).clean());
  attest_backward_args args = call.backward_arguments(kernel.abi());
  args.dLSE = nullptr;
  EmulatedBackward backward(args);
  const simt::LaunchReport report = kernel.directions().backward.run(backward, {});
  CHECK(report.clean());
  const MovedWords moved =
      total(moved_by_tensor(backward.memory, report.traffic, call.problem.dtype));
  return moved ==
         testing::counted_words(dense(schedule), call.problem) + zeros(schedule, call.problem);
}

// Heads of their own, for a group's are read once (gpu/kernels/two_pass/two_pass_test); more rows
// than a tile has, so that others move other words.
constexpr const char* kProblems[] = {"sq=140,sk=150,d=8", "hq=2,sq=70,sk=130,d=40,dv=24",
                                     "b=2,sq=100,sk=70,d=64,mask=causal_tl"};

TEST_CASE("backward moves the words of the schedule that a kernel names for it",
          "[gpu][schedule_words]") {
  int named = 0;
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    const attest_description& d = kernel->description();
    INFO(d.name);
    REQUIRE((d.schedule_backward != nullptr) == ((d.directions & ATTEST_BACKWARD) != 0));
    if (d.schedule_backward == nullptr) continue;
    ++named;
    for (const char* text : kProblems) {
      INFO(d.schedule_backward << " " << text);
      CHECK(holds(*kernel, d.schedule_backward, text));
    }
  }
  CHECK(named == 7);
}

// The deliberately wrong subjects: the same kernels with another backward schedule in its place.
TEST_CASE("the law refuses a backward schedule with other tiles, and another one",
          "[gpu][schedule_words]") {
  for (const EmulatedKernel* kernel : emulated_kernels()) {
    if (kernel->description().schedule_backward == nullptr) continue;
    const std::string right = kernel->description().schedule_backward;
    for (const std::string wrong :
         {"two_pass:bq=16,bk=32,cq=32,ck=32", "two_pass:bq=32,bk=32,cq=32,ck=16",
          "key_stationary:bq=32,bk=16", "square_tiled_bwd:b=16"}) {
      INFO(kernel->description().name << " as " << wrong);
      attest_description lying = kernel->description();
      lying.schedule_backward = wrong.c_str();
      const EmulatedKernel broken(lying, kernel->directions());
      CHECK_FALSE(holds(broken, broken.description().schedule_backward, kProblems[2]));
    }
    CHECK(holds(*kernel, right, kProblems[2]));
  }
}

}  // namespace
}  // namespace attest::gpu
