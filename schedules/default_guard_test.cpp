// Slow memory in a build with assertions: this program has io/machine/guarded_pages.cpp compiled
// with them, whatever the build is, so that nobody has to ask for the guard. The tests beside this
// one, every schedule with data on random problems, run behind it too.
#include "core/testing/catch.hpp"
#include "core/testing/kernel_call.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/bypassing.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

TEST_CASE("with assertions slow memory is closed unless asked otherwise", "[cpu][schedules]") {
  CHECK(io::default_guard() == io::SlowGuard::closed);
}

TEST_CASE("with assertions a schedule that bypasses the count dies", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1,sk=1,d=3");
  Call call(problem, 4, {Memory::spelled, 1, 1, Dlse::absent});
  const auto args = call.forward_arguments();
  const BoundSchedule<testing::BypassingLoad> load({}, *call.form.get());
  CHECK(testing::died(testing::status_of([&] { load.count({}, args); })));
  const BoundSchedule<testing::BypassingStore> store({}, *call.form.get());
  CHECK(testing::died(testing::status_of([&] { store.count({}, args); })));
  // One that does not lives, as it comes out of the registry.
  const auto flash2 =
      dense_schedules().make("flash2:bq=1,bk=1", *call.form.get(), io::FastMemory{});
  CHECK_FALSE(testing::died(testing::status_of([&] { flash2->count({}, args); })));
}

}  // namespace
}  // namespace attest::schedules
