#include <array>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/simt/testing/seeded_bugs.hpp"

namespace attest::simt {
namespace {

std::vector<Emulation> checked_orders() {
  std::vector<Emulation> all(4);
  for (Emulation& emulation : all) emulation.shared_checks = SharedChecks::on;
  all[1].order = Order::descending;
  all[2].order = all[3].order = Order::shuffled;
  all[3].seed = 2;
  return all;
}

TEST_CASE("a clean kernel has no report in any order", "[hooks]") {
  for (const Emulation& emulation : checked_orders()) {
    const SeededRun run = run_seeded(SeededBug::none, emulation);
    CHECK(run.report.to_string().empty());
    CHECK(run.right);
  }
}

TEST_CASE("every seeded bug is found in every order, with its line", "[hooks]") {
  struct Expected {
    SeededBug bug;
    Fault fault;
  };
  for (const Expected& expected : {Expected{SeededBug::no_barrier_after_load, Fault::race},
                                   Expected{SeededBug::no_barrier_before_load, Fault::race},
                                   Expected{SeededBug::no_warp_barrier_after_write, Fault::race},
                                   Expected{SeededBug::no_warp_barrier_before_write, Fault::race},
                                   Expected{SeededBug::uninitialised_rows, Fault::uninitialised},
                                   Expected{SeededBug::past_the_tile, Fault::out_of_bounds},
                                   Expected{SeededBug::misaligned_row, Fault::misaligned},
                                   Expected{SeededBug::past_the_policy, Fault::uncounted},
                                   Expected{SeededBug::plain_addition, Fault::race}}) {
    for (const Emulation& emulation : checked_orders()) {
      const SeededRun run = run_seeded(expected.bug, emulation);
      INFO(static_cast<int>(expected.bug) << " order " << static_cast<int>(emulation.order) << "\n"
                                          << run.report.to_string());
      REQUIRE_FALSE(run.report.diagnoses.empty());
      bool found = false;
      for (const Diagnosis& diagnosis : run.report.diagnoses) {
        found |= diagnosis.fault == expected.fault &&
                 std::string(diagnosis.where.file).find("seeded_bugs.cpp") != std::string::npos &&
                 diagnosis.where.line > 0;
      }
      CHECK(found);
    }
  }
}

}  // namespace
}  // namespace attest::simt
