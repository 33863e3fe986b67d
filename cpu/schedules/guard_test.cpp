// A schedule that takes words from slow memory without a load is counted too low; on guarded pages
// it dies of it.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "core/testing/catch.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/register.hpp"
#include "cpu/schedules/family.hpp"
#include "cpu/schedules/flash2.hpp"
#include "cpu/schedules/stored_gradients.hpp"
#include "cpu/schedules/testing/random_cases.hpp"
#include "cpu/testing/call.hpp"

namespace attest::cpu {
namespace {

using testing::Call;

// Where a matrix lies, taken out of its handle behind the back of the types.
const float* stolen_address(const io::SlowMatrix& matrix) {
  const float* data = nullptr;
  std::memcpy(&data, reinterpret_cast<const std::byte*>(&matrix) + sizeof(const char*),
              sizeof data);
  return data;
}

// Copies a row of V into a tile.
struct TakeRow {
  const float* row;
  void operator()(io::TileView tile) const { std::copy_n(row, tile.columns, tile.row(0)); }
};

template <class R, class Tile>
void trace(R& recorder, const TakeRow&, const Tile& tile) {
  trace(recorder, Fill{0}, tile);
}

// O = V for one query and one key, V not loaded.
struct Bypassing {
  using Head = ForwardHead;
  static constexpr const char* kName = "bypassing";
  static std::vector<Parameter<Bypassing>> parameters() { return {}; }

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    auto O = machine.scratch(1, head.V.columns(), "O");
    machine.compute(TakeRow{stolen_address(head.V)}, O);
    machine.store(O, head.O);
  }
  io::Traffic cost(const ForwardHead& head) const { return Flash2{1, 1}.cost(head); }
};

// How a process ends that does this.
template <class Body>
int status_of(const Body& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGBUS, SIG_DFL);
    body();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

bool died(int status) { return WIFSIGNALED(status) || WEXITSTATUS(status) != 0; }

TEST_CASE("a schedule that bypasses the count dies on guarded pages", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=1,sk=1,d=3");
  Call call(problem, 4, {testing::Memory::packed, 1, 1, testing::Dlse::absent});
  const auto args = call.forward_arguments();
  const BoundSchedule<Bypassing> unguarded({}, *call.form.get(), io::SlowGuard::open);
  const io::Traffic counted = unguarded.count({}, args).traffic();
  CHECK(counted.reads.words == 0);  // O is right, and nothing was read
  for (std::int64_t c = 0; c < 3; ++c)
    CHECK(call.O.view()(0, 0, 0, c) == call.V.view()(0, 0, 0, c));
  const BoundSchedule<Bypassing> guarded({}, *call.form.get(), io::SlowGuard::closed);
  CHECK(died(status_of([&] { guarded.count({}, args); })));
  CHECK_FALSE(died(status_of([&] { unguarded.count({}, args); })));
}

// What the forward saved, and workspaces, lie on guarded pages too.
TEST_CASE("guarded pages are closed between loads", "[cpu][schedules]") {
  io::SlowFloats floats(5, 2.0f, io::SlowGuard::closed);
  CHECK(died(status_of([&] { *const_cast<volatile float*>(floats.data()) = 1; })));
  {
    const io::OpenPages opened(floats.data() + 3);
    CHECK(floats.data()[4] == 2.0f);
  }
  CHECK(died(status_of([&] { *const_cast<volatile float*>(floats.data()) = 1; })));
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
    Call call(problem, 5, {testing::Memory::scattered, 1, 1, testing::Dlse::absent});
    check_guarded(Flash2{4, 3}, call, call.forward_arguments());
    REQUIRE(call.forward(flash2_kernel()) == ATTEST_OK);
    check_guarded(StandardBackward{4, 3, 2}, call, call.backward_arguments());
  }
}

}  // namespace
}  // namespace attest::cpu
