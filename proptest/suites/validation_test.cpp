// The error bounds against kernels that keep their contract: no element outside, and not too loose.
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/testing/tightness.hpp"
#include "reference/bounds/steps/roundoff.hpp"

namespace attest::proptest {
namespace {

// Medians of a table; most of them must be compared.
std::size_t known_medians(const std::vector<Tightness>& table) {
  std::size_t known = 0;
  for (const Tightness& row : table) {
    for (const double median : {row.of.O, row.of.LSE, row.of.dQ, row.of.dK, row.of.dV}) {
      known += median > 0 ? 1 : 0;
    }
  }
  return known;
}

std::vector<Cell> every_family_and_dtype() {
  std::vector<Cell> cells;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Values values : all_values()) {
      cells.push_back({dtype, values, fixtures::legitimate_emulations(dtype), {}, 0, 0, ""});
    }
  }
  return cells;
}

void check_none_outside(const Cell& cell, std::size_t outputs = 5) {
  CHECK(cell.incomplete.empty());
  CHECK(cell.statistics.size() == outputs);
  for (const auto& [output, found] : cell.statistics) {
    INFO(name(cell.values) << " " << name(cell.dtype) << " " << output << " " << found.worst_case);
    CHECK(found.elements > 0);
    CHECK(found.outside == 0);
    INFO("worst aggregate: " << found.aggregate_case);
    CHECK(found.worst_aggregate <= reference::kAggregateLimit);
  }
}

TEST_CASE("kernels that keep their contract lie within both bounds", "[validation]") {
  std::vector<Cell> cells = every_family_and_dtype();
  measure_all(cells, "elements");
  std::size_t by_document = 0, by_first = 0;
  std::int64_t cases = 0, with_lse_gradient = 0;
  for (const Cell& cell : cells) {
    cases += cell.cases;
    with_lse_gradient += cell.with_lse_gradient;
    check_none_outside(cell);
    constexpr double kWhole = 0.5;  // the document rounds medians of gradients
    const Looseness document = looseness(cell, medians_of_document(), kWhole);
    CHECK(document.looser == std::vector<std::string>{});
    by_document += document.compared;
    if (attest::testing::is_nightly()) continue;
    const Looseness first = looseness(cell, first_medians(), 0);
    CHECK(first.looser == std::vector<std::string>{});
    by_first += first.compared;
  }
  CHECK(8 * by_document >= 7 * known_medians(medians_of_document()));
  if (!attest::testing::is_nightly()) CHECK(by_first == known_medians(first_medians()));
  std::printf("%lld cases, %lld of them with a gradient of LSE\n", static_cast<long long>(cases),
              static_cast<long long>(with_lse_gradient));
  CHECK(with_lse_gradient > cases / 4);
}

TEST_CASE("the LSE of kernels that keep their contract lies within both bounds in as many rows",
          "[validation]") {
  std::vector<Cell> cells = every_family_and_dtype();
  measure_rows_of_all(cells);
  for (const Cell& cell : cells) {
    CHECK(cell.incomplete.empty());
    const Statistics& found = cell.statistics.at("LSE");
    INFO(name(cell.values) << " " << name(cell.dtype) << " " << found.worst_case);
    CHECK(found.elements >= wanted_elements());
    CHECK(found.outside == 0);
    INFO("worst aggregate: " << found.aggregate_case);
    CHECK(found.worst_aggregate <= reference::kAggregateLimit);
  }
}

TEST_CASE("gradients of sinks and biases lie within both bounds, as near as they first did",
          "[validation]") {
  std::vector<Cell> cells;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Values values :
         {Values::normal, Values::x4, Values::all_positive, Values::uniform, Values::cancelling}) {
      cells.push_back({dtype, values, fixtures::legitimate_emulations(dtype), {}, 0, 0, ""});
    }
  }
  measure_features_of_all(cells);
  std::size_t compared = 0;
  for (const Cell& cell : cells) {
    check_none_outside(cell, 7);
    if (attest::testing::is_nightly()) continue;
    const Looseness first = looseness(cell, first_medians_of_features(), 0);
    CHECK(first.looser == std::vector<std::string>{});
    compared += first.compared;
  }
  if (!attest::testing::is_nightly()) CHECK(compared == 2 * cells.size());
}

// Without medians: what a row sees differs from row to row, and with it what its bound allows.
TEST_CASE("kernels that keep their contract lie within both bounds on sparsity patterns",
          "[validation]") {
  std::int64_t cases = 0;
  std::vector<Cell> cells = every_family_and_dtype();
  for (Cell& cell : cells) {
    const std::uint64_t rounds = attest::testing::is_nightly() ? 20 : 1;
    for (std::uint64_t index = 0; index < rounds * cell.emulations.size(); ++index) {
      const std::uint64_t round = index / cell.emulations.size();
      cell.add(cell.emulations[index % cell.emulations.size()], index,
               shape_of_patterns(index + 5 * round + static_cast<std::uint64_t>(cell.values)));
    }
    cases += cell.cases;
    check_none_outside(cell);
  }
  std::printf("%lld cases on sparsity patterns\n", static_cast<long long>(cases));
  CHECK(cases > 100);
}

TEST_CASE("a kernel that takes a transposed pattern is outside", "[validation]") {
  Cell cell{DType::f32, Values::uniform, {}, {}, 0, 0, ""};
  const attest_kernel& wrong = fixtures::defective_kernel(fixtures::Defect::pattern_transposed);
  const Case c{Problem::parse("sq=30,sk=30,d=8,mask=pairs_20_1"), cell.values, 5, 1};
  const InputValues in = make_values(c.problem, c.values, c.seed);
  const Truth truth(wrong.description, c.problem, in, Direction::backward, c.seed);
  const KernelRun got = run(wrong, c.problem, in, Direction::backward, c);
  REQUIRE(got.completed());
  cell.statistics["dV"].add(got.dV, truth.backward().dV, truth.backward_bounds(got).dV, "wrong",
                            Tight::not_measured);
  CHECK(cell.statistics["dV"].outside > 0);
}

TEST_CASE("a kernel whose LSE is off by 2^-10 is outside in every row", "[validation]") {
  Cell cell{DType::f32, Values::uniform, {}, {}, 0, 0, ""};
  const attest_kernel& shifted = fixtures::defective_kernel(fixtures::Defect::lse_shifted);
  for (std::uint64_t index = 0; index < 6; ++index) {
    cell.add_rows(shifted, Tight::not_measured, index, shape_of_rows(index));
  }
  CHECK(cell.cases == 6);
  const Statistics& found = cell.statistics.at("LSE");
  CHECK(found.elements > 1000);
  CHECK(found.outside == found.elements);
}

TEST_CASE("a bound twice as loose is noticed", "[validation]") {
  Cell cell{DType::bf16, Values::uniform, {}, {}, 0, 0, ""};
  const Medians known{4.5, 130, 5, 5, 4};  // about those of the family
  for (const auto& [output, median] : std::map<std::string, double>{{"O", known.O},
                                                                    {"LSE", known.LSE},
                                                                    {"dQ", known.dQ},
                                                                    {"dK", known.dK},
                                                                    {"dV", known.dV}}) {
    cell.statistics[output].median = median;
    cell.statistics[output].has_typical_error = true;
  }
  CHECK(looseness(cell, first_medians(), 0).looser == std::vector<std::string>{});
  for (auto& [output, found] : cell.statistics) found.median *= 2;
  CHECK(looseness(cell, first_medians(), 0).looser.size() == 5);
}

}  // namespace
}  // namespace attest::proptest
