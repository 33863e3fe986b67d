#include "schedules/walks/lists/nm_metadata.hpp"

#include <string>

#include "core/problem.hpp"
#include "core/testing/catch.hpp"
#include "io/schedule/schedule.hpp"

namespace attest::schedules {
namespace {

NmShape shape_of_mask(const std::string& mask) {
  const Problem problem = Problem::parse("sq=40,sk=50,d=1,mask=" + mask);
  return nm_shape_of(*AbiProblem(problem, 1).get());
}

// Shapes are what the pattern says, not what its pairs could be read as: 1 of every 2 is also 2 of
// every 4, and one group, whole or cut, is any shape with as many pairs.
TEST_CASE("shapes of N:M patterns", "[sparse][schedules]") {
  CHECK(shape_of_mask("nm_2_4_7") == NmShape{2, 4});  // 50 keys: the last group is cut
  CHECK(shape_of_mask("nm_1_2_7") == NmShape{1, 2});
  CHECK(shape_of_mask("nm_2_64_7") == NmShape{2, 64});
  CHECK(shape_of_mask("nm_2_256_7") == NmShape{2, 256});
  CHECK(shape_of_mask("nm_4_4_7") == NmShape{4, 4});
  CHECK(shape_of_mask("nm_1_1_7") == NmShape{1, 1});
  CHECK(shape_of_mask("nm_2_4_7+causal_br") == NmShape{2, 4});
  const Problem no_keys = Problem::parse("b=2,sq=20,sk=20,d=1,mask=nm_2_4_7+lengths_0_20");
  CHECK(nm_shape_of(*AbiProblem(no_keys, 1).get()) == NmShape{2, 4});
  for (const char* mask : {"pairs_50_7", "block_1x2_100_1", "block_4_0_1", "causal_br"}) {
    CHECK_THROWS_AS(shape_of_mask(mask), io::NotForProblem);
  }
  CHECK_THROWS_WITH(shape_of_mask("pairs_50_7"),
                    "mask: no N:M pattern, but N:M schedules read the offsets of one; give one, as "
                    "in mask=nm_2_4_7, or choose csr_gather, backward csr_two_pass");
}

}  // namespace
}  // namespace attest::schedules
