// Every law over every registered kernel.
#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "cpu/register.hpp"
#include "proptest/testing/every_law.hpp"
#include "sparse/register.hpp"

namespace attest::proptest {
namespace {

TEST_CASE("every law holds for every registered kernel", "[laws]") {
  const std::uint64_t cases = attest::testing::is_nightly() ? 40 : 8;
  Registry registry;
  register_cpu(registry);
  check_every_law(registry, cases);
}

TEST_CASE("every law holds for every kernel that reads the lists of a pattern", "[laws]") {
  const std::uint64_t cases = attest::testing::is_nightly() ? 20 : 6;
  Registry registry;
  register_sparse(registry);
  check_every_law(registry, cases);
}

TEST_CASE("split_merge refuses no correct kernel whose LSE has an infinite bound", "[laws]") {
  Registry registry;
  register_cpu(registry);
  Case c;
  c.problem = Problem::parse("sq=64,sk=40,d=64,dtype=bf16,scale=1e7");
  const LawResult result = find_law("split_merge").check(registry.find("cpu/flash2"), c);
  INFO(result.message);
  CHECK(graver(result.verdict, Verdict::passed) == Verdict::passed);
}

}  // namespace
}  // namespace attest::proptest
