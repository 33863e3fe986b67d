#include "certify/count/schedule_audit.hpp"

#include <iterator>
#include <memory>

#include "certify/campaign/campaign.hpp"
#include "core/error.hpp"
#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "cpu/register.hpp"
#include "gpu/watch.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

// flash2 with a closed form that leaves the reads of a part of K and V out.
class Understated : public io::Schedule {
 public:
  explicit Understated(std::unique_ptr<io::Schedule> flash2) : flash2_(std::move(flash2)) {}

  io::ScheduleSpec spec() const override { return {"understated", flash2_->spec().parameters}; }
  io::Traffic closed_form() const override {
    io::Traffic traffic = flash2_->closed_form();
    traffic.reads.words = traffic.reads.words - 1;
    return traffic;
  }
  io::Meter dry_count(io::FastMemory capacity) const override {
    return flash2_->dry_count(capacity);
  }
  using io::Schedule::count;
  io::Meter count(io::FastMemory capacity, const attest_forward_args& args) const override {
    return flash2_->count(capacity, args);
  }

 private:
  std::unique_ptr<io::Schedule> flash2_;
};

class UnderstatedFamily : public io::ScheduleFamily {
 public:
  explicit UnderstatedFamily(const io::ScheduleRegistry& schedules)
      : flash2_(schedules.find("flash2")) {}

  std::string name() const override { return "understated"; }
  std::string summary() const override { return "a closed form that is one word too small"; }
  io::KernelClass kernel_class() const override { return flash2_.kernel_class(); }
  Direction direction() const override { return Direction::forward; }
  std::vector<io::ScheduleParameter> parameters() const override { return flash2_.parameters(); }
  std::unique_ptr<io::Schedule> make(const io::ScheduleSpec& spec, const attest_problem& problem,
                                     io::FastMemory capacity) const override {
    return std::make_unique<Understated>(
        flash2_.make({"flash2", spec.parameters}, problem, capacity));
  }

 private:
  const io::ScheduleFamily& flash2_;
};

struct Registries {
  Registry kernels;
  io::ScheduleRegistry schedules;

  Registries() {
    register_cpu(kernels);
    register_dense_schedule_kernels(kernels);
    register_dense_schedules(schedules);
    register_list_schedule_kernels(kernels);
    register_list_schedules(schedules);
    schedules.add(std::make_unique<UnderstatedFamily>(schedules));
  }

  std::optional<ScheduleAudit> audit(const attest_kernel& kernel,
                                     std::optional<CampaignMask> mask = std::nullopt) const {
    return audit_schedule(schedules, kernel, NamedSchedule::schedule,
                          {proptest::Tier::smoke, 1, std::move(mask)});
  }
  std::optional<ScheduleAudit> audit_backward(const attest_kernel& kernel) const {
    return audit_schedule(schedules, kernel, NamedSchedule::schedule_backward, {});
  }

  // cpu/flash2 in everything but what it says of its I/O.
  ScheduleAudit audit_named(const char* schedule, std::int64_t fast_memory_bytes) const {
    attest_kernel kernel = kernels.find("cpu/schedule/flash2");
    kernel.description.schedule = schedule;
    kernel.description.fast_memory_bytes = fast_memory_bytes;
    return audit(kernel).value();
  }
};

TEST_CASE("kernels that are schedules move the words of their closed forms", "[schedule_audit]") {
  const Registries all;
  std::size_t trial = 0;
  for (const char* name : {"cpu/schedule/flash2", "cpu/schedule/square_tiled",
                           "cpu/schedule/two_pass", "cpu/schedule/loss_small",
                           "sparse/schedule/block_flash2", "sparse/schedule/csr_two_pass"}) {
    if (!attest::testing::is_turn(trial++, 6)) continue;
    INFO(name);
    const ScheduleAudit audit = all.audit(all.kernels.find(name)).value();
    CHECK(audit.violations.empty());
    CHECK(audit.cases > 5);
    CHECK(audit.equal_bits == audit.cases);  // what is counted is what runs
    REQUIRE_FALSE(audit.table.empty());
    for (const CountedProblem& counted : audit.table) {
      INFO(counted.problem.to_string());
      CHECK(counted.count.closed_form_equal());
      CHECK(counted.count.counted.peak.bytes <= audit.fast_memory_bytes);
      CHECK(counted.count.ratio().value_or(1) >= 1);
    }
  }
}

TEST_CASE("a kernel that declares no fast memory is counted in its schedule's peak",
          "[schedule_audit]") {
  const Registries all;
  const ScheduleAudit audit = all.audit(all.kernels.find("cpu/flash2")).value();
  CHECK(audit.fast_memory_bytes == 0);
  CHECK(audit.violations.empty());
  REQUIRE_FALSE(audit.table.empty());
  const io::ScheduleCount& count = audit.table.front().count;
  CHECK(count.bound_words == count.counted.peak.words);
  CHECK_FALSE(all.audit(all.kernels.find("cpu/standard")).has_value());
}

TEST_CASE("code that counts its words is told with them", "[schedule_audit]") {
  const Registries all;
  const attest_kernel& kernel = all.kernels.find("cpu/flash2");
  const CountedCode code = all.kernels.counted_code("cpu/flash2");
  const auto audited = [&](NamedSchedule which, const CountedCode& counted) {
    return audit_schedule(all.schedules, kernel, which, {}, counted).value();
  };
  bool fewer = false;
  for (const NamedSchedule which : {NamedSchedule::schedule, NamedSchedule::schedule_backward}) {
    const ScheduleAudit audit = audited(which, code);
    CHECK(audit.violations.empty());
    REQUIRE_FALSE(audit.table.empty());
    for (const CountedProblem& counted : audit.table) {
      INFO(counted.problem.to_string());
      REQUIRE(counted.of_code);
      const std::int64_t words = counted.of_code->words.total(),
                         of_schedule = counted.count.counted.total_words().value();
      CHECK(words <= of_schedule);
      CHECK(counted.ratio().value() >= 1);
      // Heads without a group, lengths that are those of the tensors: word for word the schedule's.
      const Problem& p = counted.problem;
      if (p.num_heads_q == p.num_heads_kv && p.batch == 1) CHECK(words == of_schedule);
      fewer = fewer || words < of_schedule;
    }
  }
  CHECK(fewer);
  CHECK_FALSE(audited(NamedSchedule::schedule, {}).table.front().of_code);

  // A counter that leaves most of its moves out, and the outputs.
  const CountedCode careless{
      [](const attest_forward_args&, MovedWords* words) { words->writes += 2; }, nullptr};
  const ScheduleAudit audit = audited(NamedSchedule::schedule, careless);
  REQUIRE(audit.violations.size() == 2 * audit.table.size());
  CHECK_THAT(
      audit.violations[0],
      Catch::StartsWith("the code that is counted gives other bits than the kernel; attest"));
  CHECK_THAT(audit.violations[1], Catch::StartsWith("the code counts 2 words, fewer than the "));
}

TEST_CASE("a schedule over lists is counted on patterns, the one without lists on other problems",
          "[schedule_audit]") {
  Registries all;
  register_emulated(all.kernels);
  const attest_kernel& kernel = all.kernels.find("gpu/block_flash2");
  const ScheduleAudit audit = all.audit(kernel).value();
  CHECK(audit.violations.empty());
  CHECK(audit.not_counted.empty());
  CHECK(audit.cases > 5);
  CHECK_FALSE(audit.table.empty());
  // Without the dense schedules, what is claimed is not all counted.
  io::ScheduleRegistry lists;
  register_list_schedules(lists);
  const ScheduleAudit alone = audit_schedule(lists, kernel, NamedSchedule::schedule, {}).value();
  REQUIRE(alone.not_counted.size() == 1);
  CHECK_THAT(alone.not_counted.front(), Catch::StartsWith("schedule: 'flash2' is unknown"));
}

TEST_CASE("with a mask all that is counted has the mask", "[schedule_audit]") {
  const Registries all;
  const CampaignMask mask = parse_campaign_mask("block_32x16_30_1");
  const char* const names[] = {"sparse/schedule/block_flash2", "cpu/schedule/rolling_queries",
                               "sparse/schedule/block_two_pass"};
  for (std::size_t k = 0; k < std::size(names); ++k) {
    if (!attest::testing::is_turn(k, std::size(names))) continue;
    INFO(names[k]);
    const ScheduleAudit audit = all.audit(all.kernels.find(names[k]), mask).value();
    CHECK(audit.violations.empty());
    CHECK(audit.cases > 5);
    CHECK(audit.equal_bits == audit.cases);
    REQUIRE_FALSE(audit.table.empty());
    for (const CountedProblem& counted : audit.table) {
      CHECK(counted.problem.mask.to_string() == mask.spelling);
    }
  }
  attest_kernel kernel = all.kernels.find("cpu/schedule/flash2");
  kernel.description.schedule = "understated:bk=16";
  CHECK_FALSE(all.audit(kernel, mask).value().violations.empty());
}

TEST_CASE("false statements about I/O are violations", "[schedule_audit]") {
  const Registries all;
  constexpr std::int64_t kBytes = 32768;
  const ScheduleAudit understated = all.audit_named("understated", kBytes);
  REQUIRE_FALSE(understated.violations.empty());
  CHECK_THAT(understated.violations.front(), Catch::Contains("but its closed form is"));
  CHECK_THAT(understated.violations.back(), Catch::Contains("counted with data"));
  CHECK_THAT(understated.violations.back(),
             Catch::Contains("attest count --schedule 'understated' --problem 'b="));

  const ScheduleAudit beyond = all.audit_named("flash2:bq=256,bk=256", kBytes);
  REQUIRE_FALSE(beyond.violations.empty());
  CHECK_THAT(beyond.violations.front(),
             Catch::StartsWith("beyond the declared fast memory: fast_bytes: 32768, but "
                               "flash2:bq=256,bk=256 needs"));

  const ScheduleAudit other =
      all.audit_named("two_pass", kBytes);  // cpu/schedule/flash2 is forward
  CHECK(other.violations == std::vector<std::string>{"names the backward schedule 'two_pass', but "
                                                     "claims no backward"});
}

TEST_CASE("the backward schedule has one field", "[schedule_audit]") {
  const Registries all;
  attest_kernel kernel = all.kernels.find("cpu/flash2");
  kernel.description.schedule = "two_pass";
  kernel.description.schedule_backward = nullptr;
  // As before there was a field of its own.
  if (attest::testing::is_nightly()) CHECK(all.audit(kernel)->violations.empty());
  kernel.description.schedule_backward = "two_pass";
  if (attest::testing::is_nightly()) CHECK(all.audit_backward(kernel)->violations.empty());
  const ScheduleAudit both = all.audit(kernel).value();
  REQUIRE(both.violations.size() == 1);
  CHECK_THAT(both.violations.front(),
             Catch::Contains("a schedule of backward, beside description.schedule_backward"));
}

TEST_CASE("a backward schedule is judged as the forward one", "[schedule_audit]") {
  const Registries all;
  attest_kernel kernel = all.kernels.find("cpu/flash2");
  const ScheduleAudit own = all.audit_backward(kernel).value();
  CHECK(own.violations.empty());
  CHECK(own.not_counted.empty());
  kernel.description.schedule_backward = nullptr;
  CHECK_FALSE(all.audit_backward(kernel).has_value());
  kernel.description.schedule_backward = "two_pass:bq=32,bk=32,cq=32,ck=32";
  const ScheduleAudit audit = all.audit_backward(kernel).value();
  CHECK(audit.schedule == kernel.description.schedule_backward);
  CHECK(audit.violations.empty());
  CHECK(audit.cases > 5);
  REQUIRE_FALSE(audit.table.empty());
  CHECK(audit.table.front().count.direction == Direction::backward);

  kernel.description.fast_memory_bytes = 4096;
  const ScheduleAudit beyond = all.audit_backward(kernel).value();
  REQUIRE_FALSE(beyond.violations.empty());
  CHECK_THAT(beyond.violations.front(), Catch::StartsWith("beyond the declared fast memory: "));

  kernel.description.schedule_backward = "flash2:bq=32,bk=32";
  CHECK(all.audit_backward(kernel).value().violations ==
        std::vector<std::string>{
            "description.schedule_backward names 'flash2:bq=32,bk=32', a schedule of forward; name "
            "it in description.schedule"});
  kernel.description.schedule_backward = "two_pass";
  kernel.description.directions = ATTEST_FORWARD;
  CHECK(all.audit_backward(kernel).value().violations ==
        std::vector<std::string>{"names the backward schedule 'two_pass', but claims no backward"});
}

TEST_CASE("a schedule that is none is a violation", "[schedule_audit]") {
  const Registries all;
  for (const char* text : {"flash2:bq", ":bq=1", "flash2:bq=1,bq=2"}) {
    const ScheduleAudit audit = all.audit_named(text, 32768);
    REQUIRE(audit.violations.size() == 1);
    CHECK_THAT(audit.violations.front(),
               Catch::StartsWith("description.schedule is no schedule: schedule: "));
  }
  for (const char* text : {"flash2:tiles=3", "flash2:bq=-4,bk=8", "flash2:bq=many,bk=8"}) {
    const ScheduleAudit audit = all.audit_named(text, 32768);
    INFO(text);
    REQUIRE(audit.violations.size() == 1);
    CHECK_THAT(audit.violations.front(),
               Catch::StartsWith("description.schedule: '" + std::string(text) +
                                 "' takes no problem, 'flash2' does: "));
    CHECK(audit.not_counted.empty());
  }
}

TEST_CASE("a schedule that is not known here is not counted", "[schedule_audit]") {
  const Registries all;
  const ScheduleAudit audit = all.audit_named("flash3", 32768);
  CHECK(audit.violations.empty());
  CHECK(audit.table.empty());
  REQUIRE(audit.not_counted.size() == 1);
  CHECK_THAT(audit.not_counted.front(), Catch::StartsWith("schedule: 'flash3' is unknown"));
}

TEST_CASE("a violation of I/O is one of the kernel", "[schedule_audit]") {
  const Registries all;
  CampaignResult result;
  result.verdict = Verdict::passed;
  attach(result, all.audit(all.kernels.find("cpu/schedule/flash2")));
  CHECK(exit_code({result}) == 0);
  attach(result, all.audit_named("flash2:bq=256,bk=256", 32768));
  CHECK(result.verdict == Verdict::violated);
  CHECK(exit_code({result}) == 1);
  CampaignResult unknown;
  unknown.verdict = Verdict::passed;
  attach(unknown, all.audit_named("flash3", 32768));
  CHECK(outcome(unknown) == "incomplete");
  CHECK(exit_code({unknown}) == 3);
}

// Outputs of other arithmetic are reported.
TEST_CASE("outputs that differ from the counted ones are reported", "[schedule_audit]") {
  const Registries all;
  attest_kernel kernel = all.kernels.find("cpu/schedule/standard");
  kernel.description.schedule = "flash2";
  const ScheduleAudit audit = all.audit(kernel).value();
  CHECK(audit.violations.empty());
  CHECK(audit.equal_bits < audit.cases);
}

}  // namespace
}  // namespace attest::certify
