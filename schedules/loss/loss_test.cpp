// The schedules of the loss gradient: words against closed forms, dX against the closed form of the
// gradient.
#include "cpu/testing/loss.hpp"

#include <cstdio>
#include <string>

#include "core/testing/catch.hpp"
#include "cpu/testing/judged_call.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using attest::testing::loss_problem;
using attest::testing::LossCall;
using attest::testing::Memory;

TEST_CASE("closed forms of loss schedules", "[cpu][schedules]") {
  Rng rng(20261121);
  for (const auto& family : dense_schedules().families()) {
    if (family->direction() != Direction::loss_gradient) continue;
    const auto product = family->name() == "loss_large_direct"
                             ? cpu::testing::ScoreProduct::keys_first
                             : cpu::testing::ScoreProduct::rows_first;
    double worst = 0;
    for (int round = 0; round < 40; ++round) {
      const std::int64_t n = rng.between(1, 23), d = rng.between(1, 9);
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " n " << n << " d " << d);
      LossCall call(loss_problem(n, d), rng.bits64(), Memory::scattered, 0.5);
      const auto schedule = dense_schedules().make(text, *call.form.get(), io::FastMemory{});
      CHECK(schedule->spec().to_string() == text);
      testing::check_counts(*schedule, call.arguments());
      const cpu::testing::LossExpected expected = cpu::testing::loss_closed_form(call, product);
      worst = std::max(worst, cpu::testing::worst_ratio(call.dX.view(), expected.dX));
      REQUIRE(worst <= 1);
    }
    CHECK(worst > 0);
    std::printf("%-17s worst error / bound %.3f\n", family->name().c_str(), worst);
  }
}

// n = 2^20, d = 64: words times M / (n d)^2, of which the leading terms are 10 for loss_large and
// 4 + 4 / (1 - 2 d^2 / M) for loss_large_direct.
TEST_CASE("without W fewer words", "[cpu][schedules]") {
  const std::int64_t n = std::int64_t{1} << 20, d = 64;
  const Problem problem = loss_problem(n, d);
  const AbiProblem form(problem, 1);
  const auto coefficient = [&](const std::string& name, std::int64_t theta) {
    const auto capacity = io::FastMemory::of_words(theta * d * d);
    const auto schedule = dense_schedules().make(name, *form.get(), capacity);
    const io::Traffic traffic = schedule->closed_form();
    CHECK(schedule->dry_count(capacity).traffic() == traffic);
    const auto words = static_cast<double>(traffic.total_words().value());
    return words / (static_cast<double>(n) * static_cast<double>(n)) * static_cast<double>(theta);
  };
  for (const std::int64_t theta : {8, 16, 64}) {
    const double direct = coefficient("loss_large_direct", theta),
                 large = coefficient("loss_large", theta);
    std::printf("M = %2ld d^2: loss_large %.2f, loss_large_direct %.2f\n", static_cast<long>(theta),
                large, direct);
    CHECK(direct < large);
  }
  // At 4 d^2 it is the other way round: the resident X and dX take half of fast memory.
  CHECK(coefficient("loss_large_direct", 4) > coefficient("loss_large", 4));
}

TEST_CASE("loss problems that are not counted are refused", "[cpu][schedules]") {
  for (const char* text : {"sq=4,d=3,dtype=bf16", "b=2,sq=4,d=3", "hq=2,sq=4,d=3", "sq=4,sk=5,d=3",
                           "sq=4,d=3,dv=2", "sq=0,sk=0,d=3"}) {
    INFO(text);
    const Problem problem = Problem::parse(text);
    const AbiProblem form(problem, 1);
    CHECK_THROWS_AS(dense_schedules().make("loss_small", *form.get(), io::FastMemory{}),
                    InvalidProblem);
  }
}

}  // namespace
}  // namespace attest::schedules
