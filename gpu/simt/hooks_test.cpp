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

// The lines of a kernels' file, counted from 1, below a comment that names a bug.
std::vector<int> lines_that_show(const std::string& bug, const std::string& in) {
  std::ifstream file(std::string(ATTEST_SEEDED_BUGS) + "/" + in);
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
  for (const SeededBug none : {SeededBug::none, SeededBug::none_of_groups,
                               SeededBug::none_of_copies, SeededBug::none_of_products}) {
    for (const Emulation& emulation : checked_orders()) {
      const SeededRun run = run_seeded(none, emulation);
      CHECK(run.report.to_string().empty());
      CHECK(run.right);
    }
  }
}

struct Expected {
  SeededBug bug;
  const char* name;
  std::vector<Fault> faults;  // by the order, one or the other
};

void check_found(const Expected& expected, const char* in) {
  const std::vector<int> lines = lines_that_show(expected.name, in);
  REQUIRE_FALSE(lines.empty());
  for (const Emulation& emulation : checked_orders()) {
    const SeededRun run = run_seeded(expected.bug, emulation);
    INFO(expected.name << " order " << static_cast<int>(emulation.order) << "\n"
                       << run.report.to_string());
    bool found = false;
    for (const Diagnosis& diagnosis : run.report.diagnoses) {
      if (std::count(expected.faults.begin(), expected.faults.end(), diagnosis.fault) == 0)
        continue;
      found = true;
      CHECK_THAT(std::string(diagnosis.where.file), Catch::EndsWith(std::string("testing/") + in));
      CHECK(std::count(lines.begin(), lines.end(), diagnosis.where.line) == 1);
    }
    CHECK(found);
  }
}

TEST_CASE("every seeded bug is found in every order, at its line", "[hooks]") {
  for (const Expected& expected :
       {Expected{SeededBug::no_barrier_after_load, "no_barrier_after_load", {Fault::race}},
        Expected{SeededBug::no_barrier_before_load, "no_barrier_before_load", {Fault::race}},
        Expected{
            SeededBug::no_warp_barrier_after_write, "no_warp_barrier_after_write", {Fault::race}},
        Expected{
            SeededBug::no_warp_barrier_before_write, "no_warp_barrier_before_write", {Fault::race}},
        Expected{SeededBug::uninitialised_rows, "uninitialised_rows", {Fault::uninitialised}},
        Expected{SeededBug::past_the_tile, "past_the_tile", {Fault::out_of_bounds}},
        Expected{SeededBug::before_the_tile, "before_the_tile", {Fault::out_of_bounds}},
        Expected{SeededBug::misaligned_row, "misaligned_row", {Fault::misaligned}},
        Expected{SeededBug::wide_past_the_strip, "wide_past_the_strip", {Fault::out_of_bounds}},
        Expected{SeededBug::past_the_policy, "past_the_policy", {Fault::uncounted}},
        Expected{SeededBug::plain_addition, "plain_addition", {Fault::race}},
        Expected{SeededBug::uninitialised_sum, "uninitialised_sum", {Fault::uninitialised}},
        Expected{SeededBug::early_sum, "early_sum", {Fault::race}},
        Expected{SeededBug::barrier_of_too_few, "barrier_of_too_few", {Fault::race}}}) {
    check_found(expected, "seeded_bugs.cpp");
  }
}

TEST_CASE("every mistake with asynchronous copies is found in every order", "[hooks]") {
  for (const Expected& expected :
       {Expected{SeededBug::no_wait, "no_wait", {Fault::async_pending}},
        Expected{SeededBug::wait_for_too_few, "wait_for_too_few", {Fault::async_pending}},
        Expected{SeededBug::no_commit, "no_commit", {Fault::async_pending}},
        Expected{SeededBug::no_barrier_after_wait,
                 "no_barrier_after_wait",
                 {Fault::async_pending, Fault::race, Fault::uninitialised}},
        Expected{
            SeededBug::copy_over_readers, "copy_over_readers", {Fault::async_pending, Fault::race}},
        Expected{
            SeededBug::copy_past_the_stages, "copy_past_the_stages", {Fault::out_of_bounds}}}) {
    check_found(expected, "seeded_copies.cpp");
  }
}

// With the accesses that their bits come from: the others leave no report, only wrong sums.
TEST_CASE("every mistake with matrix products is found in every order", "[hooks]") {
  for (const Expected& expected :
       {Expected{SeededBug::no_barrier_before_ldmatrix,
                 "no_barrier_before_ldmatrix",
                 {Fault::race, Fault::uninitialised}},
        Expected{SeededBug::odd_row_address, "odd_row_address", {Fault::misaligned}}}) {
    check_found(expected, "seeded_products.cpp");
  }
  for (const SeededBug bug : {SeededBug::swapped_fragments, SeededBug::not_transposed}) {
    for (const Emulation& emulation : checked_orders()) {
      const SeededRun run = run_seeded(bug, emulation);
      CHECK(run.report.to_string().empty());
      CHECK_FALSE(run.right);
    }
  }
}

}  // namespace
}  // namespace attest::simt
