// K and V in pages: cpu/flash2 gathers them, and all else is as without.
#include <algorithm>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/paged_call.hpp"
#include "cpu/kernels/kernel.hpp"

namespace attest::cpu {
namespace {

using attest::testing::Call;
using attest::testing::Memory;
using attest::testing::take_values;
using attest::testing::without_pages;

const char* const kPaged[] = {
    "b=2,hq=4,hkv=2,sq=130,sk=200,d=8,dv=24,mask=causal_br,paged_kv=16_7",
    "b=3,hq=2,sq=3,sk=70,d=24,dv=8,mask=lengths_64_0_17,paged_kv=1_4",
    "hq=3,d=8,mask=cu_5x9_0x4_70x133+causal_br,sinks=drawn_3,paged_kv=5_3",
    "b=2,sq=1,sk=40,d=8,softcap=2,alibi=standard,paged_kv=256_2",
    "b=2,hq=2,sq=5,sk=66,d=5,mask=window_9_2,layout=bhsd,paged_kv=65_3_1",
    "sq=5,sk=0,d=8,paged_kv=4_1"};

// Tells whether O and LSE over pages are those of the keys in their order, to the bit.
bool same_as_in_order(Call& paged, const attest_paged_kv& pages) {
  const attest_kernel& kernel = flash2_kernel();
  Call in_order(without_pages(paged.problem), 1, paged.options);
  take_values(paged, in_order);
  attest_forward_args args = paged.forward_arguments(kernel);
  attest_problem problem = *args.problem;
  problem.paged_kv = &pages;
  args.problem = &problem;
  REQUIRE(kernel.forward(kernel.self, &args) == ATTEST_OK);
  REQUIRE(in_order.forward(kernel) == ATTEST_OK);
  CHECK(paged.gaps_intact());
  return paged.O.bits() == in_order.O.bits() && paged.LSE.bits() == in_order.LSE.bits();
}

TEST_CASE("pages change no bit of O and LSE", "[cpu][pages]") {
  for (const char* text : kPaged) {
    for (const char* dtype : {"f32", "bf16", "f16"}) {
      for (const Memory memory : {Memory::spelled, Memory::scattered}) {
        INFO(text << " " << dtype);
        Call call(Problem::parse(std::string(text) + ",dtype=" + dtype), 1,
                  {.memory = memory, .threads = 2});
        CHECK(same_as_in_order(call, *call.form.get()->paged_kv));
      }
    }
  }
}

TEST_CASE("another block table gives another result", "[cpu][pages]") {
  Call call(Problem::parse(kPaged[0]), 1, {});
  attest_paged_kv pages = *call.form.get()->paged_kv;
  std::vector<std::int32_t> table(pages.block_table,
                                  pages.block_table + call.problem.batch * pages.max_pages);
  std::rotate(table.begin(), table.begin() + 1, table.end());
  pages.block_table = table.data();
  CHECK_FALSE(same_as_in_order(call, pages));
}

TEST_CASE("backward with pages is refused", "[cpu][pages]") {
  Call call(Problem::parse(kPaged[0]), 1, {});
  CHECK(call.backward(flash2_kernel()) == ATTEST_UNSUPPORTED);
}

}  // namespace
}  // namespace attest::cpu
