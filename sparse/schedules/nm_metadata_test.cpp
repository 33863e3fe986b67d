#include "sparse/schedules/nm_metadata.hpp"

#include <string>

#include "core/problem.hpp"
#include "core/testing/catch.hpp"
#include "io/schedule.hpp"

namespace attest::sparse {
namespace {

NmShape shape_of_mask(const std::string& mask) {
  const Problem problem = Problem::parse("sq=40,sk=50,d=1,mask=" + mask);
  return nm_shape_of(*AbiProblem(problem, 1).get());
}

TEST_CASE("shapes of N:M patterns", "[sparse][schedules]") {
  CHECK(shape_of_mask("nm_2_4_7") == NmShape{2, 4});  // 50 keys: the last group is cut
  CHECK(shape_of_mask("nm_1_2_7") == NmShape{1, 2});
  CHECK(shape_of_mask("nm_5_16_7") == NmShape{5, 16});
  CHECK(shape_of_mask("nm_1_7_7") == NmShape{1, 7});
  // Read from an entry that has keys.
  const Problem short_first = Problem::parse("b=2,sq=20,sk=20,d=1,mask=nm_2_4_7+lengths_0_20");
  CHECK(nm_shape_of(*AbiProblem(short_first, 1).get()) == NmShape{2, 4});
  for (const char* mask : {"pairs_50_7", "nm_4_4_7", "block_4_0_1", "nm_2_4_7+causal_br"}) {
    CHECK_THROWS_AS(shape_of_mask(mask), io::NotForProblem);
  }
  CHECK_THROWS_WITH(
      shape_of_mask("pairs_50_7"),
      "mask: not N of every M keys for all queries, M from 2 to 256, but N:M schedules read the "
      "offsets of such a pattern; give one, as in mask=nm_2_4_7, or choose csr_gather, backward "
      "csr_two_pass");
}

}  // namespace
}  // namespace attest::sparse
