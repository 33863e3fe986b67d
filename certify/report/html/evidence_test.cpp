#include "certify/report/html/evidence.hpp"

#include <cmath>

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"

namespace attest::certify {
namespace {

using fixtures::Defect;
using proptest::Case;

TEST_CASE("errors lie where the defect is", "[evidence]") {
  const Case c{Problem::parse("b=2,hq=2,sq=130,sk=200,d=8,mask=causal_br"),
               proptest::Values::normal, 3, 1};
  const auto grid = error_grid(fixtures::defective_kernel(Defect::nan_output), c);
  REQUIRE(grid);
  CHECK(grid->output == "O");
  CHECK(grid->rows == 130);
  CHECK(grid->columns == 8);
  CHECK(grid->row_step == 8);
  CHECK(grid->column_step == 1);
  CHECK(grid->row_axis == "seqlen_q");
  CHECK(grid->column_axis == "head_dim_v");
  REQUIRE(grid->cells.size() == 17 * 8);
  // One NaN per head, in the first row and column.
  CHECK(std::isinf(grid->cells[0]));
  for (std::size_t cell = 1; cell < grid->cells.size(); ++cell) CHECK(grid->cells[cell] <= 1);

  const auto lse = error_grid(fixtures::defective_kernel(Defect::lse_without_maximum), c);
  REQUIRE(lse);
  CHECK(lse->output == "LSE");
  CHECK(lse->columns == 2);
  CHECK(lse->cells.size() == 17 * 2);

  CHECK_FALSE(error_grid(fixtures::defective_kernel(Defect::none), c));
  CHECK_FALSE(error_grid(fixtures::defective_loss_kernel(fixtures::LossDefect::zero_dx), c));
  const Evidence evidence = examine(fixtures::defective_kernel(Defect::top_left_causal), c, c);
  REQUIRE(evidence.signatures.size() == 1);
  CHECK(evidence.signatures[0].statement == "the result with top-left causal alignment");
  CHECK(evidence.grid);
}

TEST_CASE("the bound's largest term is named", "[evidence]") {
  const Case c{Problem::parse("hq=2,sq=9,sk=20,d=64,mask=causal_br"), proptest::Values::normal, 3,
               1};
  CHECK(bound_term(fixtures::defective_kernel(Defect::last_key_dropped), c) == "O: accumulation");
  CHECK(bound_term(fixtures::defective_kernel(Defect::none), c).empty());
  CHECK(bound_term(fixtures::defective_kernel(Defect::nan_output), c).empty());
  CHECK(bound_term(fixtures::defective_loss_kernel(fixtures::LossDefect::zero_dx), c).empty());
  const Evidence evidence = examine(fixtures::defective_kernel(Defect::last_key_dropped), c, c);
  CHECK(evidence.bound_term == "O: accumulation");
}

}  // namespace
}  // namespace attest::certify
