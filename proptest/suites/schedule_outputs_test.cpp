// Outputs that a schedule computes with any tiles, counted, against the exact results and their
// derived bounds; and its words against its closed form in the same run.
#include <algorithm>
#include <cstdio>
#include <string>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/values/generator.hpp"
#include "schedules/register.hpp"

namespace attest::proptest {
namespace {

// The counting machine as a kernel: one schedule with the tiles of its spelling.
struct Counted {
  std::string schedule;
  const attest_kernel* forward = nullptr;  // whose O and LSE a backward schedule reads
  mutable std::int64_t counts = 0, wrong_counts = 0;

  template <class Arguments>
  attest_status count(const Arguments& args) const {
    try {
      std::string spelling = schedule;
      if constexpr (requires { args.dLSE; }) {
        if (args.dLSE != nullptr) spelling += ",dlse=given";
      }
      const auto made = all_schedules().make(spelling, *args.problem, io::FastMemory{});
      const io::Traffic expected = made->closed_form();
      const io::FastMemory exact{std::max<std::int64_t>(expected.peak.words.value(), 1),
                                 std::max<std::int64_t>(expected.peak.bytes.value(), 1)};
      ++counts;
      if (!(made->count(exact, args).traffic() == expected)) ++wrong_counts;
      return ATTEST_OK;
    } catch (const io::CapacityExceeded&) {
      ++wrong_counts;
      return ATTEST_FAILED;
    } catch (const InvalidProblem&) {
      return ATTEST_UNSUPPORTED;
    }
  }
};

// As the schedule's own kernel describes itself, but for the sizes that only its tiles limit.
attest_kernel counted_kernel(const attest_kernel& native, const Counted& self) {
  attest_kernel kernel = native;
  kernel.self = const_cast<Counted*>(&self);
  kernel.description.max_head_dim = 0;
  kernel.forward = [](const void* of, const attest_forward_args* args) {
    const auto& counted = *static_cast<const Counted*>(of);
    if (counted.forward == nullptr) return counted.count(*args);
    return counted.forward->forward(counted.forward->self, args);
  };
  kernel.backward = [](const void* of, const attest_backward_args* args) {
    return static_cast<const Counted*>(of)->count(*args);
  };
  kernel.loss_gradient = [](const void* of, const attest_loss_args* args) {
    return static_cast<const Counted*>(of)->count(*args);
  };
  return kernel;
}

// A spelling with every tile given, some larger than what they divide.
std::string random_tiles(Rng& rng, const io::ScheduleFamily& family, std::int64_t most_splits) {
  io::ScheduleSpec spec{family.name(), {}};
  for (const io::ScheduleParameter& parameter : family.parameters()) {
    // Rules choose tiles; the paper's exponentials without a maximum have no derived bound.
    if (parameter.name == "rule" || !parameter.choices.empty()) continue;
    const std::int64_t most = parameter.name == "splits" ? most_splits : 70;
    spec.parameters.emplace_back(parameter.name, std::to_string(rng.between(1, most)));
  }
  return spec.to_string();
}

const char* reference_law(const attest_description& description) {
  if ((description.directions & ATTEST_BACKWARD) != 0) return "reference_backward";
  return (description.directions & ATTEST_FORWARD) != 0 ? "reference_forward" : "reference_loss";
}

// A case that the family has a schedule for: with a mask of pairs where it reads lists of one.
Case case_for(Rng& rng, const io::ScheduleFamily& family, const attest_description& description) {
  constexpr int kMostDraws = 1000;
  for (int draw = 0; draw < kMostDraws; ++draw) {
    const Case c = generate(description, Tier::smoke, rng.bits64(), 0);
    if (family.without_lists().empty() || c.problem.mask.boolean) return c;
  }
  throw InternalError("no case with a mask of pairs");
}

void check_outputs(std::uint64_t seed, int cases) {
  Registry native;
  register_dense_schedule_kernels(native);
  register_list_schedule_kernels(native);
  Rng rng(seed);
  int judged = 0;
  for (const auto& family : all_schedules().families()) {
    const std::string room = family->without_lists().empty() ? "cpu" : "sparse";
    if (family->name().rfind("nm_", 0) == 0) continue;  // no kernel: held to naive attention
    ++judged;
    const attest_kernel& own = native.find(room + "/schedule/" + family->name());
    const Law& law = find_law(reference_law(own.description));
    int passed = 0;
    double worst = 0;
    for (int trial = 0; trial < cases; ++trial) {
      Counted self;
      self.schedule = random_tiles(rng, *family,
                                   std::max<std::int64_t>(own.description.numerics.lse_splits, 1));
      if (family->direction() == Direction::backward) {
        self.forward = &native.find("cpu/schedule/flash2");
      }
      attest_kernel kernel = counted_kernel(own, self);
      kernel.description.numerics.lse_split_keys = 0;  // tiles of any size, not the kernel's
      const Case c = case_for(rng, *family, kernel.description);
      const LawResult result = law.check(kernel, c);
      INFO(self.schedule << " on " << c.problem.to_string() << " values=" << name(c.values)
                         << " seed=" << c.seed << ": " << result.message);
      CHECK(graver(result.verdict, Verdict::passed) == Verdict::passed);
      CHECK(result.message.rfind("refused", 0) != 0);
      CHECK(self.wrong_counts == 0);
      if (result.verdict == Verdict::passed) {
        ++passed;
        CHECK(self.counts > 0);
      }
      for (const Comparison& comparison : result.comparisons) {
        worst = std::max(worst, comparison.ratio);
      }
    }
    std::printf("%-20s %2d of %d cases count, worst error / bound %.3f\n", family->name().c_str(),
                passed, cases, worst);
    INFO(family->name());
    CHECK(passed > cases / 3);
  }
  CHECK(judged == static_cast<int>(native.kernels().size()));
}

TEST_CASE("outputs of counted schedules lie within the derived bounds", "[schedules]") {
  check_outputs(20261121, attest::testing::is_nightly() ? 12 : 6);
}

TEST_CASE("outputs of counted schedules on many cases", "[.large]") { check_outputs(20261125, 48); }

}  // namespace
}  // namespace attest::proptest
