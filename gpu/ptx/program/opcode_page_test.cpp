#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/testing/catch.hpp"
#include "gpu/ptx/program/opcodes.hpp"

namespace attest::ptx {
namespace {

// ATTEST_APPROVE=1 writes the page.
TEST_CASE("the page of opcodes is the table", "[ptx]") {
  if (std::getenv("ATTEST_APPROVE") != nullptr) std::ofstream(ATTEST_PTX_PAGE) << opcode_page();
  std::ifstream file(ATTEST_PTX_PAGE);
  std::ostringstream page;
  page << file.rdbuf();
  INFO("ATTEST_APPROVE=1 ptx_test writes " << ATTEST_PTX_PAGE);
  CHECK(page.str() == opcode_page());
}

}  // namespace
}  // namespace attest::ptx
