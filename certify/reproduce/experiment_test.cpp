#include "certify/reproduce/experiment.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "certify/reproduce/counted.hpp"
#include "certify/reproduce/testing/altered_schedules.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

using testing::laboratory;

// Runs an experiment on the schedules as they are, once for all cases.
const Findings& own_findings(const std::string& experiment) {
  static std::map<std::string, Findings> known;
  const auto found = known.find(experiment);
  if (found != known.end()) return found->second;
  return known.emplace(experiment, find_experiment(experiment).run(laboratory(all_schedules())))
      .first->second;
}

// The dearest ones, which ci/certify runs; their claims have tests of their own.
bool has_time_for(const std::string& experiment) {
  static const std::set<std::string> dear{"capped_blocks", "fast_multiplication", "triton_io"};
  return dear.count(experiment) == 0 || attest::testing::is_nightly();
}

TEST_CASE("unknown names have a suggestion, known ones a title and sizes", "[reproduce]") {
  std::set<std::string> names;
  for (const Experiment& experiment : experiments()) {
    CHECK(names.insert(experiment.name).second);
    CHECK_FALSE(experiment.title.empty());
    CHECK(&find_experiment(experiment.name) == &experiment);
  }
  CHECK_THROWS_WITH(find_experiment("forward_oi"),
                    Catch::Contains("did you mean 'forward_io'?") && Catch::Contains("caches"));
}

TEST_CASE("every experiment finds something, with points in order", "[reproduce]") {
  std::set<std::string> files;
  for (std::size_t place = 0; place < experiments().size(); ++place) {
    const Experiment& experiment = experiments()[place];
    if (!has_time_for(experiment.name) || !attest::testing::is_turn(place, 9)) continue;
    INFO(experiment.name);
    const Findings& findings = own_findings(experiment.name);
    CHECK_FALSE(findings.claims.empty());
    CHECK(findings.plots.size() + findings.tables.size() > 0);
    for (const Claim& claim : findings.claims) {
      CHECK_FALSE(claim.source.empty());
      CHECK_FALSE(claim.measured.empty());
    }
    for (const Plot& plot : findings.plots) {
      CHECK(files.insert(plot.name).second);  // a plot and a table have a .csv each
      for (const Curve& curve : plot.curves) {
        CHECK(std::is_sorted(curve.points.begin(), curve.points.end()));
      }
    }
    for (const Table& table : findings.tables) {
      CHECK(files.insert(table.name).second);
      for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
    }
  }
}

TEST_CASE("the papers' cases are seen, and the corrections too", "[reproduce]") {
  const Findings& forward = own_findings("forward_io");
  REQUIRE(forward.claims.size() == 4);
  CHECK(forward.claims[0].outcome == Outcome::reproduced);      // -1
  CHECK(forward.claims[1].outcome == Outcome::reproduced);      // -1/2
  CHECK(forward.claims[2].outcome != Outcome::not_reproduced);  // the crossing
  CHECK(forward.claims[3].outcome == Outcome::reproduced);      // the bound
  const Findings& rules = own_findings("tile_rules");
  for (const Claim& claim : rules.claims) CHECK(claim.outcome == Outcome::corrected);
}

std::vector<Outcome> outcomes(const Findings& findings) {
  std::vector<Outcome> list;
  for (const Claim& claim : findings.claims) list.push_back(claim.outcome);
  return list;
}

std::vector<Outcome> outcomes(const io::ScheduleRegistry& schedules, const char* experiment) {
  return outcomes(find_experiment(experiment).run(laboratory(schedules)));
}

TEST_CASE("schedules that do not follow the claims are seen not to", "[reproduce]") {
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  const io::ScheduleRegistry many = testing::flat_schedules({kMany}),
                             one = testing::flat_schedules({1});
  for (const char* experiment : {"forward_io", "backward_io", "loss_io"}) {
    INFO(experiment);
    const std::vector<Outcome> above = outcomes(many, experiment),
                               below = outcomes(one, experiment);
    REQUIRE(above.size() == 4);
    for (std::size_t claim = 0; claim < 3; ++claim) {
      CHECK(above[claim] == Outcome::not_reproduced);
      CHECK(below[claim] == Outcome::not_reproduced);
    }
    CHECK(above[3] == Outcome::reproduced);  // above the bound
    CHECK(below[3] == Outcome::not_reproduced);
  }
  for (const Outcome outcome : outcomes(many, "size_io")) CHECK(outcome == Outcome::not_reproduced);
  for (const Outcome outcome : outcomes(many, "constants")) {
    CHECK(outcome == Outcome::not_reproduced);
  }
  CHECK(outcomes(many, "gpt2_traffic")[1] == Outcome::not_reproduced);
  CHECK(outcomes(one, "pebble_minima")[0] == Outcome::not_reproduced);
  const io::ScheduleRegistry large = testing::flat_schedules({1, kMany});
  CHECK(outcomes(large, "tile_rules")[0] == Outcome::not_reproduced);  // no rule fits
  CHECK(outcomes(one, "tile_rules")[0] == Outcome::reproduced);        // every rule fits
}

TEST_CASE("results that do not follow the claims are seen not to", "[reproduce]") {
  const io::ScheduleRegistry unbounded =
      testing::altered_schedules({.forward = testing::ForwardResult::infinite});
  CHECK(outcomes(unbounded, "tile_rules")[1] == Outcome::not_reproduced);  // nor a running maximum
  const io::ScheduleRegistry understated = testing::altered_schedules({.understated = true});
  CHECK_THROWS_AS(outcomes(understated, "caches"), InternalError);  // the recorded run holds more
  // No cache of that size reads as little as a schedule says that forgets reads.
  const std::vector<Outcome> caches =
      outcomes(testing::altered_schedules({.forgets_reads = true}), "caches");
  CHECK(caches[0] == Outcome::not_reproduced);
  CHECK(caches[1] == Outcome::not_reproduced);
  // Whatever moves fewer words than flash2 is slower than it, on every machine.
  const io::ScheduleRegistry slow = testing::altered_schedules({.slow = true});
  for (const Outcome outcome : outcomes(slow, "clock")) CHECK(outcome == Outcome::not_reproduced);
}

TEST_CASE("schedules that take masks otherwise are seen to", "[reproduce]") {
  const std::vector<Outcome> own = outcomes(own_findings("density_io"));
  for (std::size_t claim = 0; claim < 3; ++claim) CHECK(own[claim] == Outcome::reproduced);
  const std::vector<Outcome> blind =
      outcomes(testing::all_altered_schedules({.blind = true}), "density_io");
  CHECK(blind[0] == Outcome::not_reproduced);  // words of block_flash1, of block_flash2
  CHECK(blind[1] == Outcome::not_reproduced);
  if (!attest::testing::is_nightly()) return;
  CHECK(outcomes(testing::all_altered_schedules({.pays_for_masks = true}), "density_io")[2] ==
        Outcome::not_reproduced);
  CHECK(outcomes(dense_schedules(), "structure_io") ==
        std::vector{Outcome::not_reproduced, Outcome::reproduced});
  CHECK(outcomes(testing::flat_schedules({1}), "structure_io") ==
        std::vector{Outcome::reproduced, Outcome::not_reproduced});
}

TEST_CASE("kernels whose time does not follow density are seen not to", "[reproduce]") {
  const auto outcomes_with = [](const attest_kernel& kernel) {
    Registry kernels;
    kernels.add(&testing::all_kernels().find("cpu/flash2"));
    attest_kernel named = kernel;
    named.description.name = "sparse/block_flash2";
    kernels.add(&named);
    std::vector<Outcome> found;
    for (const Claim& claim :
         find_experiment("density_time").run(laboratory(all_schedules(), kernels)).claims) {
      found.push_back(claim.outcome);
    }
    return found;
  };
  // Reads a boolean mask, pair by pair.
  const std::vector<Outcome> dense = outcomes_with(testing::all_kernels().find("cpu/standard"));
  REQUIRE(dense.size() == 2);
  CHECK(dense[0] != Outcome::reproduced);
  CHECK(dense[1] == Outcome::not_reproduced);
  // A kernel that is not right is not timed.
  attest_kernel silent = testing::all_kernels().find("sparse/block_flash2");
  silent.forward = [](const void*, const attest_forward_args*) { return ATTEST_OK; };
  CHECK(outcomes_with(silent) == std::vector{Outcome::not_compared});
}

TEST_CASE("dense schedules that sparse ones do not follow are seen not to be", "[reproduce]") {
  const auto run = [](const io::ScheduleRegistry& schedules) {
    Laboratory lab = laboratory(schedules);
    lab.seqlen = 64;  // of the product alone
    std::vector<Outcome> dense;
    for (const Claim& claim : find_experiment("sparse_inputs_io").run(lab).claims) {
      if (claim.text.find("with every entry") != std::string::npos) dense.push_back(claim.outcome);
    }
    return dense;
  };
  if (attest::testing::is_nightly()) {
    CHECK(run(dense_schedules()) == std::vector{Outcome::reproduced, Outcome::reproduced});
  }
  CHECK(run(testing::flat_schedules({1})) ==
        std::vector{Outcome::not_reproduced, Outcome::not_reproduced});
}

TEST_CASE("every file is an experiment of its name", "[reproduce]") {
  std::set<std::string> files, names;
  for (const auto& file : std::filesystem::directory_iterator(ATTEST_EXPERIMENTS)) {
    files.insert(file.path().stem().string());
  }
  int place = 0;
  for (const Experiment& experiment : experiments()) {
    names.insert(experiment.name);
    CHECK(experiment.place > place);
    place = experiment.place;
  }
  CHECK(files == names);
}

TEST_CASE("arithmetic is counted from the recorded run", "[reproduce]") {
  constexpr std::int64_t kRows = 12, kDim = 4, kPairs = kRows * kRows;
  const auto count = [&](const char* text) {
    return count_arithmetic(dense_schedules(), text, square_problem(kRows, kDim));
  };
  const Arithmetic standard = count("standard:bm=3,bn=3,bl=2");
  CHECK(standard.multiply_adds == 2 * kPairs * kDim);
  // For each pair: maximum, exponential, sum, quotient; scores are scaled in place.
  CHECK(standard.others >= 4 * kPairs);
  CHECK(standard.flops() == 2 * standard.multiply_adds + standard.others);
  const Arithmetic flash = count("flash1:bq=3,bk=4");
  CHECK(flash.multiply_adds == standard.multiply_adds);
  CHECK(flash.others > standard.others);  // the rescaling of O
  // Scores are formed again, and the products of rows of O and dO are sums of d each.
  CHECK(count("flash1_bwd:bq=3,bk=4").multiply_adds >= 5 * kPairs * kDim);
}

TEST_CASE("a walk that differs from its closed form is an error", "[reproduce]") {
  const io::ScheduleRegistry& schedules = dense_schedules();
  CHECK(count_words(schedules, "flash2:bq=4,bk=4", square_problem(16, 4), 1000));
  CHECK_FALSE(count_words(schedules, "flash2:bq=4,bk=4", square_problem(16, 4), 10));
  CHECK_THROWS_AS(count_words(schedules, "no_such", square_problem(16, 4), 10), InvalidProblem);
  io::ScheduleRegistry lists;
  register_list_schedules(lists);
  CHECK_FALSE(count_words(lists, "block_flash2:bq=4,bk=4", square_problem(16, 4), 1000));
  CHECK(count_words(lists, "block_flash2:bq=4,bk=4", Problem::parse("sq=16,d=4,mask=block_4_50_1"),
                    1000));
}

TEST_CASE("a crossing is where a curve falls below another, at first and for good", "[reproduce]") {
  const std::vector<std::int64_t> grid{1, 2, 3, 4, 5};
  const auto curve = [](std::vector<std::int64_t> words) -> WordsAt {
    return [words = std::move(words)](std::int64_t at) -> std::optional<std::int64_t> {
      const std::int64_t value = words[static_cast<std::size_t>(at - 1)];
      return value < 0 ? std::nullopt : std::optional(value);
    };
  };
  const WordsAt level = curve({5, 5, 5, 5, 5});
  const auto met = crossing(grid, level, curve({9, 5, 6, 4, 3}));
  REQUIRE(met);
  CHECK(met->first == 2);
  CHECK(met->last == 4);
  CHECK(crossing(grid, level, curve({-1, 4, 4, 4, 4}))->first == 2);  // nothing fits at first
  CHECK_FALSE(crossing(grid, level, curve({4, 4, 4, 4, 4})));
  CHECK_FALSE(crossing(grid, level, curve({9, 4, 4, 4, 9})));
}

TEST_CASE("the papers' tiles", "[reproduce]") {
  CHECK(paper_tiles("flash1", 98304, 64) == "flash1:bq=64,bk=384");
  CHECK(paper_tiles("flash1_bwd", 257, 64) == "flash1_bwd:bq=2,bk=2");
  CHECK(paper_tiles("square_tiled", 4096, 64) == "square_tiled:b=32");
  CHECK(paper_tiles("square_tiled_bwd", 3, 64) == "square_tiled_bwd:b=1");
}

}  // namespace
}  // namespace attest::certify
