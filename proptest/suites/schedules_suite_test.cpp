// Every law over every schedule as a kernel. The laws themselves are exercised by suite_test; here
// a few cases each show that the schedules claim nothing they do not do.
#include <cstdio>
#include <map>
#include <string>

#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "proptest/judge/loss.hpp"
#include "proptest/testing/law_count.hpp"
#include "schedules/register.hpp"

namespace attest::proptest {
namespace {

Registry schedule_kernels() {
  Registry registry;
  register_dense_schedule_kernels(registry);
  register_list_schedule_kernels(registry);
  return registry;
}

TEST_CASE("every law holds for every schedule", "[laws][schedules]") {
  const Registry registry = schedule_kernels();
  constexpr std::uint64_t kSeed = 3;
  const std::uint64_t cases = testing::is_nightly() ? 20 : 4;
  // Outside nightly a schedule meets the reference law and every sixth other, the next one the next
  // sixth.
  const std::uint64_t laws_apart = testing::is_nightly() ? 1 : 6;
  std::uint64_t first = 0;
  for (const attest_kernel* kernel : registry.kernels()) {
    const std::uint32_t directions = kernel->description.directions;
    const char* reference = (directions & ATTEST_BACKWARD) != 0  ? "reference_backward"
                            : (directions & ATTEST_FORWARD) != 0 ? "reference_forward"
                                                                 : "reference_loss";
    std::map<std::string_view, LawCount> counts;
    std::uint64_t turn = ++first;
    for (const Law& law : laws()) {
      if (!concerns(law, kernel->description)) continue;
      if (++turn % laws_apart != 0 && law.name != reference) continue;
      counts[law.name] += count_law(law, *kernel, kSeed, cases);
    }
    LawCount all;
    for (const auto& [law, count] : counts) all += count;
    std::printf("%-34s %4d checks passed of %2d laws\n", kernel->description.name, all.passed,
                static_cast<int>(counts.size()));
    INFO(kernel->description.name << " " << reference);
    CHECK(counts[reference].passed > 1);
  }
}

// A few keys of several lengths: the tiles that move the fewest words had key blocks shorter than
// flash1 declares, and it refused what it claims.
TEST_CASE("flash1 takes a few keys", "[schedules]") {
  const Registry registry = schedule_kernels();
  const attest_kernel& flash1 = registry.find("cpu/schedule/flash1");
  for (const char* text :
       {"b=3,hq=2,hkv=2,sq=2,sk=8,d=64,mask=lengths_0_2_8,layout=bhsd,scale=0.125",
        "sq=2,sk=7,d=64", "sq=2,sk=9,d=128", "b=2,sq=40,sk=17,d=128,mask=lengths_3_17"}) {
    Case c;
    c.problem = Problem::parse(text);
    INFO(text);
    const LawResult result = find_law("reference_forward").check(flash1, c);
    CHECK(result.verdict == Verdict::passed);
  }
}

// Schedules over lists walk the lists of every mask of pairs, whatever the mask leaves; its tiles
// are its own.
TEST_CASE("schedules over lists take every mask of pairs", "[schedules]") {
  Registry registry;
  register_list_schedule_kernels(registry);
  for (const attest_kernel* kernel : registry.kernels()) {
    const bool backward = (kernel->description.directions & ATTEST_BACKWARD) != 0;
    const Law& law = find_law(backward ? "reference_backward" : "reference_forward");
    for (const char* mask :
         {"block_16x8_30_1", "block_7x5_30_2", "block_64_50_3", "pairs_4_1", "random_20_1",
          "nm_1_4_1", "columns_20_1", "rows_30_2", "documents_9_30_31", "random_30_1+causal_br"}) {
      Case c;
      c.problem = Problem::parse(std::string("hq=2,hkv=1,sq=70,d=8,dv=12,mask=") + mask);
      INFO(kernel->description.name << " " << mask);
      const LawResult result = law.check(*kernel, c);
      INFO(result.message);
      CHECK(result.verdict == Verdict::passed);
    }
    // Nothing is visible: zeros are right, and nothing is proved of them.
    Case empty;
    empty.problem = Problem::parse("sq=70,d=8,mask=block_16x8_0_1");
    CHECK(law.check(*kernel, empty).verdict == Verdict::vacuous);
  }
}

// Sums that go through slow memory on their way are rounded there: with 16 bit each time, which no
// declaration allows. Claimed all the same, they are found out.
TEST_CASE("16 bit sums in slow memory are refused", "[schedules]") {
  const Registry registry = schedule_kernels();
  for (const char* name : {"cpu/schedule/key_stationary", "cpu/schedule/held_pairs",
                           "sparse/schedule/block_key_stationary",
                           "sparse/schedule/block_held_pairs", "sparse/schedule/block_held_keys"}) {
    attest_kernel kernel = registry.find(name);
    kernel.description.dtypes |= 1u << ATTEST_BF16;
    Case c;
    c.problem = Problem::parse("sq=200,sk=300,d=16,mask=block_8x8_50_1,dtype=bf16");
    INFO(name);
    CHECK(find_law("reference_backward").check(kernel, c).verdict == Verdict::violated);
    c.problem.dtype = DType::f32;
    CHECK(find_law("reference_backward").check(kernel, c).verdict == Verdict::passed);
  }
}

// Returns the kernel's status for as many queries and keys as the longest fixed tile, of this head
// dimension. A query sees one key: a schedule that computes S again for every column of V would
// take minutes for all of them.
attest_status status_of(const attest_kernel& kernel, std::int64_t head_dim) {
  Case c;
  c.problem = Problem::parse("sq=64,d=" + std::to_string(head_dim) + ",mask=window_0_0");
  if (kernel.description.directions == ATTEST_LOSS_GRADIENT) {
    return run_loss(kernel, c.problem, make_loss_values(c.problem, c.values, c.seed), c).status;
  }
  const bool backward = (kernel.description.directions & ATTEST_BACKWARD) != 0;
  return run(kernel, c.problem, make_values(c.problem, c.values, c.seed),
             backward ? Direction::backward : Direction::forward, c)
      .status;
}

// Claims are those of the schedule, not of the kernels beside it.
TEST_CASE("schedules claim what they do and no more", "[schedules]") {
  const Registry registry = schedule_kernels();
  CHECK(registry.kernels().size() == 28 + 14);
  const auto features = [&](const char* name) { return registry.find(name).description.features; };
  CHECK((features("cpu/schedule/flash2") & ATTEST_LSE) != 0);
  CHECK((features("cpu/schedule/flash1") & ATTEST_LSE) == 0);
  const auto delta_from_p = [&](const char* name) {
    return registry.find(name).description.numerics.delta_from_p;
  };
  CHECK(delta_from_p("cpu/schedule/standard_bwd") == 1);
  CHECK(delta_from_p("cpu/schedule/square_tiled_bwd") == 0);
  CHECK((features("cpu/schedule/loss_small") & ATTEST_LOSS_DY) == 0);
  for (const attest_kernel* kernel : registry.kernels()) {
    const attest_description& description = kernel->description;
    INFO(description.name);
    CHECK(description.fast_memory_bytes > 0);
    REQUIRE(description.schedule != nullptr);
    CHECK(std::string(description.name)
              .find(std::string(description.schedule)
                        .substr(0, std::string(description.schedule).find(':'))) !=
          std::string::npos);
    // The largest head dimension that is claimed fits, the next does not; 0 is any.
    const std::int64_t most = description.max_head_dim;
    const bool loss = description.directions == ATTEST_LOSS_GRADIENT;
    CHECK((most == 0 || most >= (loss ? 32 : 128)));
    if (most == 0) continue;
    CHECK(status_of(*kernel, most) == ATTEST_OK);
    CHECK(status_of(*kernel, most + 1) == ATTEST_UNSUPPORTED);
  }
}

}  // namespace
}  // namespace attest::proptest
