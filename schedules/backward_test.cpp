// Every backward schedule on random problems: its words against its closed form, its outputs
// against the definition written out in cpu/testing/naive.
#include <cstdio>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/kernel_call.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/testing/judged_call.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;

constexpr int kCases = 60;  // for each schedule

bool takes_softcap(const io::ScheduleFamily& family) {
  const Problem problem = Problem::parse("sq=4,sk=4,d=2,softcap=2");
  const AbiProblem form(problem, 1);
  try {
    family.make({family.name(), {}}, *form.get(), io::FastMemory{});
    return true;
  } catch (const InvalidProblem&) {
    return false;
  }
}

TEST_CASE("closed forms of backward schedules", "[cpu][schedules]") {
  Rng rng(20261121);
  for (const auto& family : dense_schedules().families()) {
    if (family->direction() != Direction::backward) continue;
    const auto deltas = family->name() == "standard_bwd" ? cpu::testing::Deltas::from_probabilities
                                                         : cpu::testing::Deltas::from_outputs;
    double worst = 0;
    for (int round = 0; round < kCases; ++round) {
      Problem problem = testing::random_problem(rng, Direction::backward);
      if (takes_softcap(*family) && rng.between(0, 3) == 0) problem.softcap = 2;
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      Call call(problem, rng.bits64(), {Memory::scattered, 1, 1, testing::dlse_of(text)});
      REQUIRE(call.forward(cpu::flash2_kernel()) == ATTEST_OK);
      const auto schedule = dense_schedules().make(text, *call.form.get(), io::FastMemory{});
      CHECK(schedule->spec().to_string() == text);
      testing::check_counts(*schedule, call.backward_arguments());
      const cpu::testing::NaiveBackward expected = cpu::testing::naive_backward(call, deltas);
      worst = std::max(worst, cpu::testing::worst_ratio(call.dQ.view(), expected.dQ));
      worst = std::max(worst, cpu::testing::worst_ratio(call.dK.view(), expected.dK));
      worst = std::max(worst, cpu::testing::worst_ratio(call.dV.view(), expected.dV));
      REQUIRE(worst <= 1);
    }
    std::printf("%-18s worst error / bound %.3f\n", family->name().c_str(), worst);
  }
}

// Beyond the small cases above: blocks with gaps between them. Sixteen bits are compared in words
// alone.
TEST_CASE("closed form of keys on demand", "[cpu][schedules]") {
  Rng rng(20261125);
  std::int64_t fewer = 0;
  for (const char* text :
       {"sq=60,sk=90,d=2,mask=block_9_30_1", "sq=70,sk=132,d=3,dv=2,b=2,mask=block_11_40_2",
        "sq=40,sk=99,d=2,hq=4,hkv=2,mask=block_3x11_30_3", "sq=33,sk=140,d=2,mask=block_35_50_4",
        "sq=44,sk=70,d=2,dtype=bf16,mask=block_4x35_5_1"}) {
    const Problem problem = Problem::parse(text);
    Call call(problem, rng.bits64(), {Memory::scattered, 1, 1, Dlse::absent});
    REQUIRE(call.forward(cpu::flash2_kernel()) == ATTEST_OK);
    for (const std::int64_t keys : {32, 34, 35, 43}) {
      for (const std::int64_t queries : {1, 4}) {
        const auto made = [&](const char* order) {
          return dense_schedules().make("rolling_keys:bk=" + std::to_string(keys) +
                                            ",bq=" + std::to_string(queries) + ",order=" + order,
                                        *call.form.get(), io::FastMemory{});
        };
        const auto schedule = made("gapped");
        INFO(schedule->spec().to_string() << " on " << text);
        testing::check_counts(*schedule, call.backward_arguments());
        if (problem.dtype == DType::f32) {
          const cpu::testing::NaiveBackward expected = cpu::testing::naive_backward(call);
          CHECK(cpu::testing::worst_ratio(call.dQ.view(), expected.dQ) <= 1);
          CHECK(cpu::testing::worst_ratio(call.dK.view(), expected.dK) <= 1);
          CHECK(cpu::testing::worst_ratio(call.dV.view(), expected.dV) <= 1);
        }
        if (schedule->closed_form().total_words() < made("grouped")->closed_form().total_words()) {
          ++fewer;
        }
      }
    }
  }
  CHECK(fewer > 0);
}

TEST_CASE("sixteen-bit gradients count two bytes", "[cpu][schedules]") {
  Rng rng(5);
  for (const auto& family : dense_schedules().families()) {
    if (family->direction() != Direction::backward) continue;
    for (int round = 0; round < 10; ++round) {
      Problem problem = testing::random_problem(rng, Direction::backward);
      problem.dtype = round % 2 == 0 ? DType::bf16 : DType::f16;
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      Call call(problem, rng.bits64(), {Memory::spelled, 1, 1, testing::dlse_of(text)});
      REQUIRE(call.forward(cpu::flash2_kernel()) == ATTEST_OK);
      const auto schedule = dense_schedules().make(text, *call.form.get(), io::FastMemory{});
      testing::check_counts(*schedule, call.backward_arguments());
    }
  }
}

TEST_CASE("what backward schedules do not count is refused", "[cpu][schedules]") {
  const auto make = [&](const std::string& text) {
    const Problem problem = Problem::parse(text);
    const AbiProblem form(problem, 1);
    dense_schedules().make("two_pass", *form.get(), io::FastMemory::of_words(1000));
  };
  CHECK_NOTHROW(make("sq=4,sk=4,d=2"));
  CHECK_NOTHROW(make("sq=4,sk=4,d=2,softcap=2"));
  CHECK_NOTHROW(make("sq=4,sk=4,d=2,hq=4,hkv=2"));
  CHECK_THROWS_WITH(make("sq=4,sk=4,d=2,dtype=f64"), Catch::StartsWith("dtype: f64"));
  CHECK_NOTHROW(make("d=2,mask=cu_3x5_0x2_4x0"));
  const Problem capped = Problem::parse("sq=4,sk=4,d=2,softcap=2");
  const AbiProblem form(capped, 1);
  for (const char* name :
       {"standard_bwd", "rank1_tiled_bwd", "square_tiled_bwd", "query_stationary_p", "rolling_p"}) {
    CHECK_THROWS_WITH(dense_schedules().make(name, *form.get(), io::FastMemory{}),
                      Catch::StartsWith("softcap: 2, but a schedule that stores P"));
  }
}

}  // namespace
}  // namespace attest::schedules
