#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/simt/testing/seeded_bugs.hpp"
#include "gpu/simt/testing/seeded_pipelines.hpp"

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
  std::string text, names;
  for (int line = 1; std::getline(file, text); ++line) {
    const std::size_t first = text.find("// shows: "), comment = text.find("// ");
    if (first != std::string::npos) {
      names = text.substr(first + 9) + ",";
    } else if (!names.empty() && comment == text.find_first_not_of(' ')) {
      names += text.substr(comment + 2) + ",";  // a list of several lines
    } else {
      if (names.find(" " + bug + ",") != std::string::npos) lines.push_back(line);
      names.clear();
    }
  }
  return lines;
}

TEST_CASE("a clean kernel has no report in any order", "[hooks]") {
  const auto check_clean = [](const SeededRun& run) {
    CHECK(run.report.to_string().empty());
    CHECK(run.right);
  };
  for (const Emulation& emulation : checked_orders()) {
    for (const SeededBug none :
         {SeededBug::none, SeededBug::none_of_groups, SeededBug::none_of_global_words,
          SeededBug::none_of_copies, SeededBug::none_of_products, SeededBug::none_of_tensor_copies,
          SeededBug::none_of_fragments}) {
      check_clean(run_seeded(none, emulation));
    }
    check_clean(run_pipeline(PipelineBug::none, emulation));
  }
}

SeededRun run_bug(SeededBug bug, const Emulation& emulation) { return run_seeded(bug, emulation); }
SeededRun run_bug(PipelineBug bug, const Emulation& emulation) {
  return run_pipeline(bug, emulation);
}

template <class Bug>
struct Expected {
  Bug bug;
  const char* name;
  std::vector<Fault> faults;  // by the order, one or the other
};

template <class Bug>
Expected(Bug, const char*, std::vector<Fault>) -> Expected<Bug>;  // clang 14 deduces none

template <class Bug>
void check_found(const Expected<Bug>& expected, const char* in) {
  const std::vector<int> lines = lines_that_show(expected.name, in);
  REQUIRE_FALSE(lines.empty());
  for (const Emulation& emulation : checked_orders()) {
    const SeededRun run = run_bug(expected.bug, emulation);
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
  for (const auto& expected :
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

TEST_CASE("every race in global memory is found in every order, at its line", "[hooks]") {
  for (const auto& expected :
       {Expected{SeededBug::no_barrier_between, "no_barrier_between", {Fault::race}},
        Expected{SeededBug::one_warp_barrier, "one_warp_barrier", {Fault::race}},
        Expected{SeededBug::next_block_word, "next_block_word", {Fault::race}},
        Expected{SeededBug::one_word_of_all, "one_word_of_all", {Fault::race}},
        Expected{SeededBug::store_for_add, "store_for_add", {Fault::race}},
        Expected{SeededBug::read_of_sum, "read_of_sum", {Fault::race}}}) {
    check_found(expected, "seeded_global_words.cpp");
  }
  Emulation unchecked;
  CHECK(run_seeded(SeededBug::one_word_of_all, unchecked).report.to_string().empty());
  Emulation blocks_at_a_time = checked_orders()[3];
  blocks_at_a_time.threads = 2;
  CHECK(run_seeded(SeededBug::none_of_global_words, blocks_at_a_time).report.clean());
  CHECK_THAT(run_seeded(SeededBug::one_word_of_all, blocks_at_a_time).report.to_string(),
             Catch::Contains("writes 4 bytes at byte 4 of 'sum', which lane 0 of block "));
}

TEST_CASE("every mistake with asynchronous copies is found in every order", "[hooks]") {
  for (const auto& expected :
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

TEST_CASE("every mistake with tensor copies is found in every order", "[hooks]") {
  for (const auto& expected :
       {Expected{SeededBug::no_tensor_wait,
                 "no_tensor_wait",
                 {Fault::async_pending, Fault::race, Fault::uninitialised}},
        Expected{SeededBug::one_warp_waits, "one_warp_waits", {Fault::async_pending, Fault::race}},
        Expected{
            SeededBug::copy_over_words, "copy_over_words", {Fault::async_pending, Fault::race}},
        Expected{SeededBug::unused_copy, "unused_copy", {Fault::async_pending}},
        Expected{SeededBug::no_fence_before_store, "no_fence_before_store", {Fault::missing_fence}},
        Expected{SeededBug::no_store_commit, "no_store_commit", {Fault::async_pending}}}) {
    check_found(expected, "seeded_tensor_copies.cpp");
  }
}

TEST_CASE("every mistake with fragments of a warpgroup is found in every order", "[hooks]") {
  for (const auto& expected :
       {Expected{
            SeededBug::no_fence_before_product, "no_fence_before_product", {Fault::missing_fence}},
        Expected{
            SeededBug::fragment_without_fence, "fragment_without_fence", {Fault::missing_fence}},
        Expected{SeededBug::fragment_under_way, "fragment_under_way", {Fault::async_pending}}}) {
    check_found(expected, "seeded_fragments.cpp");
  }
}

TEST_CASE("every mistake with mbarriers and products of warpgroups is found in every order",
          "[hooks]") {
  using Bug = PipelineBug;
  for (const auto& expected :
       {Expected{Bug::no_wait_for_tiles, "no_wait_for_tiles", {Fault::async_pending}},
        Expected{Bug::wrong_parity, "wrong_parity", {Fault::async_pending}},
        Expected{Bug::no_wait_for_readers, "no_wait_for_readers", {Fault::mbarrier}},
        Expected{Bug::early_release, "early_release", {Fault::async_pending, Fault::race}},
        Expected{Bug::expects_too_much, "expects_too_much", {Fault::transactions}},
        Expected{Bug::expects_too_little, "expects_too_little", {Fault::transactions}},
        Expected{Bug::no_init, "no_init", {Fault::mbarrier}},
        Expected{Bug::no_init_fence, "no_init_fence", {Fault::mbarrier}},
        Expected{Bug::no_barrier_after_init, "no_barrier_after_init", {Fault::mbarrier}},
        Expected{Bug::misaligned_box, "misaligned_box", {Fault::misaligned}},
        Expected{Bug::no_product_fence, "no_product_fence", {Fault::missing_fence}},
#ifndef __clang__  // calls no hook at a fixed place of a lane's own array
        Expected{Bug::scaled_without_fence, "scaled_without_fence", {Fault::missing_fence}},
        Expected{Bug::early_accumulators, "early_accumulators", {Fault::async_pending}},
#endif
        Expected{Bug::warps_apart, "warps_apart", {Fault::divergence}},
        Expected{Bug::warp_missing, "warp_missing", {Fault::divergence}},
        Expected{Bug::never_released, "never_released", {Fault::deadlock}},
        Expected{Bug::no_async_fence, "no_async_fence", {Fault::missing_fence}},
        Expected{Bug::overwritten_tile, "overwritten_tile", {Fault::async_pending}},
        Expected{Bug::overwritten_store, "overwritten_store", {Fault::async_pending}},
        Expected{Bug::no_wait_for_store, "no_wait_for_store", {Fault::async_pending}},
        Expected{Bug::plain_barrier, "plain_barrier", {Fault::mbarrier}}}) {
    check_found(expected, "pipelined_product.cuh");
  }
}

TEST_CASE("a deadlock lists what an mbarrier lacks", "[hooks]") {
  for (const Emulation& emulation : checked_orders()) {
    const SeededRun run = run_pipeline(PipelineBug::never_released, emulation);
    CHECK_THAT(run.report.to_string(),
               Catch::Contains("lanes 0-127 wait in mbarrier.try_wait (pipelined_product.cuh:") &&
                   Catch::Contains("the mbarrier at byte 0 of 'empty' in phase 0 lacks 128 of 128 "
                                   "arrivals and 0 bytes"));
  }
}

// With the accesses that their bits come from: the others leave no report, only wrong sums.
TEST_CASE("every mistake with matrix products is found in every order", "[hooks]") {
  for (const auto& expected :
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
