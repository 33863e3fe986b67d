// A schedule that takes words from slow memory without a load is counted too low; on guarded pages
// it dies of it.
#include "core/testing/catch.hpp"
#include "core/testing/kernel_call.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/register.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/dense/stored_gradients.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/testing/bypassing.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

template <class S>
void check_dies(const Problem& problem) {
  Call call(problem, 4, {Memory::spelled, 1, 1, Dlse::absent});
  const auto args = call.forward_arguments();
  const BoundSchedule<S> unguarded({}, *call.form.get(), io::SlowGuard::open);
  const io::Traffic counted = unguarded.count({}, args).traffic();
  const bool complete =
      counted.reads.words == problem.head_dim_v && counted.writes.words == problem.head_dim_v;
  CHECK_FALSE(complete);  // O is right, and not every word of V and O was counted
  for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
    CHECK(call.O.view()(0, 0, 0, c) == call.V.view()(0, 0, 0, c));
  }
  const BoundSchedule<S> guarded({}, *call.form.get(), io::SlowGuard::closed);
  CHECK(testing::died(testing::status_of([&] { guarded.count({}, args); })));
  CHECK_FALSE(testing::died(testing::status_of([&] { unguarded.count({}, args); })));
}

TEST_CASE("a schedule that bypasses the count dies on guarded pages", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1,sk=1,d=3");
  check_dies<testing::BypassingLoad>(problem);
  check_dies<testing::BypassingStore>(problem);
}

// Words that the forward saved, and workspaces, lie on guarded pages too.
TEST_CASE("guarded pages are closed between loads", "[cpu][schedules]") {
  io::SlowFloats floats(5, 2.0f, io::SlowGuard::closed);
  CHECK(
      testing::died(testing::status_of([&] { *const_cast<volatile float*>(floats.data()) = 1; })));
  {
    const io::OpenPages opened(floats.data() + 3);
    CHECK(floats.data()[4] == 2.0f);
  }
  CHECK(
      testing::died(testing::status_of([&] { *const_cast<volatile float*>(floats.data()) = 1; })));
}

template <class S>
void check_guarded(const S& schedule, Call& call,
                   const typename BoundSchedule<S>::Arguments& args) {
  const BoundSchedule<S> open(schedule, *call.form.get(), io::SlowGuard::open),
      closed(schedule, *call.form.get(), io::SlowGuard::closed);
  const io::Traffic expected = open.count({}, args).traffic();
  const auto bits = call.output_bits();
  CHECK(closed.count({}, args).traffic() == expected);
  CHECK(call.output_bits() == bits);
}

TEST_CASE("guarded and plain counts give equal words and bits", "[cpu][schedules]") {
  for (const char* text : {"b=2,hq=2,sq=9,sk=7,d=4,dv=3,mask=causal_br", "sq=0,sk=4,d=2"}) {
    const Problem problem = Problem::parse(text);
    Call call(problem, 5, {Memory::scattered, 1, 1, Dlse::absent});
    check_guarded(Flash2{4, 3}, call, call.forward_arguments());
    REQUIRE(call.forward(cpu::flash2_kernel()) == ATTEST_OK);
    check_guarded(StandardBackward{4, 3, 2}, call, call.backward_arguments());
  }
}

}  // namespace
}  // namespace attest::schedules
