#include "core/text/thousands.hpp"

#include <cstdint>
#include <limits>

#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("thousands are set apart", "[core]") {
  CHECK(thousands(0) == "0");
  CHECK(thousands(999) == "999");
  CHECK(thousands(1000) == "1,000");
  CHECK(thousands(1052672) == "1,052,672");
  CHECK(thousands(-999) == "-999");
  CHECK(thousands(-1000) == "-1,000");
  CHECK(thousands(std::numeric_limits<std::int64_t>::min()) == "-9,223,372,036,854,775,808");
  CHECK(thousands(std::numeric_limits<std::uint64_t>::max()) == "18,446,744,073,709,551,615");
}

TEST_CASE("one is counted without s", "[core]") {
  CHECK(counted(0, "case") == "0 cases");
  CHECK(counted(1, "case") == "1 case");
  CHECK(counted(std::uint64_t{2000}, "case") == "2,000 cases");
}

}  // namespace
}  // namespace attest
