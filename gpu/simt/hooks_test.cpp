#include <algorithm>
#include <fstream>
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

// The lines of the kernels' file, counted from 1, below a comment that names a bug.
std::vector<int> lines_that_show(const std::string& bug) {
  std::ifstream file(ATTEST_SEEDED_BUGS);
  REQUIRE(file.good());
  std::vector<int> lines;
  std::string text;
  bool shows = false;
  for (int line = 1; std::getline(file, text); ++line) {
    if (shows) lines.push_back(line);
    const std::size_t names = text.find("// shows: ");
    shows = names != std::string::npos &&
            (text.substr(names + 9) + ",").find(" " + bug + ",") != std::string::npos;
  }
  return lines;
}

TEST_CASE("a clean kernel has no report in any order", "[hooks]") {
  for (const SeededBug none : {SeededBug::none, SeededBug::none_of_groups}) {
    for (const Emulation& emulation : checked_orders()) {
      const SeededRun run = run_seeded(none, emulation);
      CHECK(run.report.to_string().empty());
      CHECK(run.right);
    }
  }
}

TEST_CASE("every seeded bug is found in every order, at its line", "[hooks]") {
  struct Expected {
    SeededBug bug;
    Fault fault;
    const char* name;
  };
  for (const Expected& expected :
       {Expected{SeededBug::no_barrier_after_load, Fault::race, "no_barrier_after_load"},
        Expected{SeededBug::no_barrier_before_load, Fault::race, "no_barrier_before_load"},
        Expected{SeededBug::no_warp_barrier_after_write, Fault::race,
                 "no_warp_barrier_after_write"},
        Expected{SeededBug::no_warp_barrier_before_write, Fault::race,
                 "no_warp_barrier_before_write"},
        Expected{SeededBug::uninitialised_rows, Fault::uninitialised, "uninitialised_rows"},
        Expected{SeededBug::past_the_tile, Fault::out_of_bounds, "past_the_tile"},
        Expected{SeededBug::before_the_tile, Fault::out_of_bounds, "before_the_tile"},
        Expected{SeededBug::misaligned_row, Fault::misaligned, "misaligned_row"},
        Expected{SeededBug::wide_past_the_strip, Fault::out_of_bounds, "wide_past_the_strip"},
        Expected{SeededBug::past_the_policy, Fault::uncounted, "past_the_policy"},
        Expected{SeededBug::plain_addition, Fault::race, "plain_addition"},
        Expected{SeededBug::uninitialised_sum, Fault::uninitialised, "uninitialised_sum"},
        Expected{SeededBug::early_sum, Fault::race, "early_sum"},
        Expected{SeededBug::barrier_of_too_few, Fault::race, "barrier_of_too_few"}}) {
    const std::vector<int> lines = lines_that_show(expected.name);
    REQUIRE_FALSE(lines.empty());
    for (const Emulation& emulation : checked_orders()) {
      const SeededRun run = run_seeded(expected.bug, emulation);
      INFO(expected.name << " order " << static_cast<int>(emulation.order) << "\n"
                         << run.report.to_string());
      bool found = false;
      for (const Diagnosis& diagnosis : run.report.diagnoses) {
        if (diagnosis.fault != expected.fault) continue;
        found = true;
        CHECK_THAT(std::string(diagnosis.where.file), Catch::EndsWith("testing/seeded_bugs.cpp"));
        CHECK(std::count(lines.begin(), lines.end(), diagnosis.where.line) == 1);
      }
      CHECK(found);
    }
  }
}

}  // namespace
}  // namespace attest::simt
