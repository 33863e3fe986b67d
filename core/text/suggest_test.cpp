#include "core/text/suggest.hpp"

#include "core/testing/catch.hpp"

namespace attest {

TEST_CASE("the nearest name is suggested", "[suggest]") {
  const std::vector<std::string> names{"cpu/standard", "cpu/flash2", "gpu/flash2"};
  CHECK(nearest("cpu/flsh2", names) == "cpu/flash2");
  CHECK(nearest("CPU/Standard", names) == "cpu/standard");
  CHECK(did_you_mean("cpu/standrad", names) == "; did you mean 'cpu/standard'?");
}

TEST_CASE("a part of a name suggests the name", "[suggest]") {
  const std::vector<std::string> names{"reference_backward", "reference_forward", "ones"};
  CHECK(nearest("forward", names) == "reference_forward");
  CHECK(nearest("reference", names) == "reference_forward");
  CHECK(nearest("re", names).empty());
}

TEST_CASE("nothing near gives no suggestion", "[suggest]") {
  CHECK(nearest("zzzzzzzz", {"cpu/flash2"}).empty());
  CHECK(nearest("--bogus", {"--jobs"}).empty());
  CHECK(nearest("--jbos", {"--jobs"}) == "--jobs");
  CHECK(did_you_mean("zzzzzzzz", {"cpu/flash2"}).empty());
  CHECK(nearest("x", {}).empty());
}

}  // namespace attest
