#include "proptest/laws/trials/field_changes.hpp"

#include <set>
#include <string>

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"

namespace attest::proptest {
namespace {

constexpr std::uint64_t kSeeds = 300;

const attest_kernel& sound() { return fixtures::defective_kernel(fixtures::Defect::none); }

bool same_shape(const Problem& a, const Problem& b) {
  return a.batch == b.batch && a.num_heads_q == b.num_heads_q && a.num_heads_kv == b.num_heads_kv &&
         a.seqlen_q == b.seqlen_q && a.seqlen_k == b.seqlen_k && a.head_dim_qk == b.head_dim_qk &&
         a.head_dim_v == b.head_dim_v && a.dtype == b.dtype &&
         a.tensor_seqlen_q() == b.tensor_seqlen_q() && a.tensor_seqlen_k() == b.tensor_seqlen_k();
}

std::set<std::string> fields_of(const attest_description& description, const Problem& problem) {
  std::set<std::string> fields;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case c{problem, Values::normal, seed, 1};
    const auto change = field_change(description, c);
    REQUIRE(change);
    INFO(change->field << ": " << change->problem.to_string());
    CHECK(same_shape(problem, change->problem));
    CHECK(unclaimed(description, change->problem, Direction::forward).empty());
    // Its line is a problem, so that a finding can be told from it.
    CHECK(Problem::parse(change->problem.to_string()).to_string() == change->problem.to_string());
    CHECK((change->problem.to_string() == problem.to_string()) == (change->field == "LSE"));
    fields.insert(change->field);
  }
  return fields;
}

TEST_CASE("every field of a problem is changed in its turn", "[field_changes]") {
  const std::set<std::string> dense = fields_of(
      sound().description, Problem::parse("b=2,hq=2,sq=5,sk=7,d=4,scale=0.3,softcap=3,alibi="
                                          "standard,mask=lengths_7_3+causal_br+random_60_3"));
  CHECK(dense == std::set<std::string>{"scale", "softcap", "slopes", "sinks", "bias",
                                       "memory of K and V", "mask of heads", "query lengths",
                                       "window", "alignment", "key lengths", "bits of the mask",
                                       "strides", "LSE"});
  const std::set<std::string> packed =
      fields_of(sound().description, Problem::parse("d=4,mask=cu_3x5_0x7_4x2"));
  CHECK(packed.count("packed lengths") == 1);
  CHECK(packed.count("key lengths") == 0);
}

TEST_CASE("only what is claimed is changed", "[field_changes]") {
  attest_description plain = sound().description;
  plain.features = 0;
  CHECK(fields_of(plain, Problem::parse("sq=5,d=4")) == std::set<std::string>{"scale", "strides"});
}

TEST_CASE("a plan kept for a shape is refused, whichever field it keeps", "[field_changes]") {
  using fixtures::Defect;
  for (auto defect = static_cast<int>(Defect::plan_keeps_scale);
       defect <= static_cast<int>(Defect::plan_keeps_lse); ++defect) {
    const attest_kernel& kernel = fixtures::defective_kernel(static_cast<Defect>(defect));
    INFO(kernel.description.name);
    const bool of_pages = static_cast<Defect>(defect) == Defect::plan_keeps_pages;
    const std::string rest = of_pages ? ",sk=7,d=4,paged_kv=2_1" : ",sk=7,d=4,alibi=standard";
    const Case first{Problem::parse("b=2,hq=2,sq=6" + rest), Values::normal, 1, 1};
    CHECK(find_law("reference_forward").check(kernel, first).verdict == Verdict::passed);
    bool refused = false;
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      const Case c{Problem::parse("b=2,hq=2,sq=5" + rest), Values::normal, seed, 1};
      refused = refused || find_law("changed_field").check(kernel, c).verdict == Verdict::violated;
      CHECK(find_law("changed_field").check(sound(), c).verdict != Verdict::violated);
    }
    CHECK(refused);
  }
}

// Such a kernel's calls are judged one by one, those without LSE too.
TEST_CASE("a kernel whose equal calls differ in bits is judged by its bounds", "[field_changes]") {
  const auto first_refused = [](attest_kernel kernel) {
    kernel.description.numerics.nondeterministic = 1;
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      const Case c{Problem::parse("b=2,hq=2,sq=5,sk=7,d=4"), Values::normal, seed, 1};
      const LawResult result = find_law("changed_field").check(kernel, c);
      if (result.verdict != Verdict::passed && result.verdict != Verdict::vacuous) {
        return result.message;
      }
    }
    return std::string();
  };
  CHECK(first_refused(sound()).empty());
  CHECK_FALSE(
      first_refused(fixtures::defective_kernel(fixtures::Defect::plan_keeps_scale)).empty());
}

}  // namespace
}  // namespace attest::proptest
