#include "io/schedule/schedule.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::io {
namespace {

class Named : public ScheduleFamily {
 public:
  explicit Named(std::string name, std::vector<ScheduleParameter> parameters = {},
                 std::string without_lists = "")
      : name_(std::move(name)),
        parameters_(std::move(parameters)),
        without_lists_(std::move(without_lists)) {}
  std::string name() const override { return name_; }
  std::string summary() const override { return "takes part in no count"; }
  KernelClass kernel_class() const override { return {}; }
  Direction direction() const override { return Direction::forward; }
  std::vector<ScheduleParameter> parameters() const override { return parameters_; }
  std::string without_lists() const override { return without_lists_; }
  std::unique_ptr<Schedule> make(const ScheduleSpec&, const attest_problem&,
                                 FastMemory) const override {
    return nullptr;
  }

 private:
  std::string name_;
  std::vector<ScheduleParameter> parameters_;
  std::string without_lists_;
};

TEST_CASE("schedule spelling", "[io]") {
  for (const std::string text :
       {"flash2", "flash2:bq=64,bk=32", "square_tiled:b=8,variant=paper"}) {
    CHECK(ScheduleSpec::parse(text).to_string() == text);
  }
  const ScheduleSpec spec = ScheduleSpec::parse("flash2:bq=64,bk=32");
  CHECK(spec.name == "flash2");
  CHECK(spec.parameters.at(1) == std::pair<std::string, std::string>("bk", "32"));
  CHECK_THROWS_WITH(ScheduleSpec::parse("flash2:bq"),
                    "schedule: 'bq' in 'flash2:bq' is not key=value");
  CHECK_THROWS_WITH(ScheduleSpec::parse("flash2:bq=1,bq=2"), "schedule: 'bq' is given twice");
  for (const char* text : {"", ":bq=1", "flash2:", "flash2:bq=1,", "flash2:=1", "flash2:bq="}) {
    INFO(text);
    CHECK_THROWS_AS(ScheduleSpec::parse(text), InvalidProblem);
  }
}

TEST_CASE("unknown schedule names get the nearest", "[io]") {
  ScheduleRegistry registry;
  registry.add(std::make_unique<Named>("flash2"));
  registry.add(std::make_unique<Named>("standard"));
  CHECK(registry.find("standard").name() == "standard");
  CHECK_THROWS_WITH(registry.find("flsh2"),
                    "schedule: 'flsh2' is unknown; did you mean 'flash2'? (schedules: flash2 "
                    "standard)");
  CHECK_THROWS_WITH(registry.add(std::make_unique<Named>("flash2")),
                    "schedule: the name 'flash2' is taken");
}

TEST_CASE("without lists", "[io]") {
  ScheduleRegistry registry;
  const ScheduleParameter bq{"bq", {}, {}}, bk{"bk", {}, {}}, order{"order", {"natural"}, {}};
  registry.add(std::make_unique<Named>("flash2", std::vector{bq, bk}));
  registry.add(std::make_unique<Named>("block_flash2", std::vector{bq, bk, order}, "flash2"));
  registry.add(std::make_unique<Named>("block_lost", std::vector{bq}, "lost"));
  const auto other = [&](const char* text) {
    return spec_without_lists(registry, ScheduleSpec::parse(text)).to_string();
  };
  CHECK(other("block_flash2:bq=4,order=natural,bk=2") == "flash2:bq=4,bk=2");
  CHECK(other("block_flash2") == "flash2");
  CHECK(other("flash2:bq=3") == "flash2:bq=3");
  CHECK_THROWS_WITH(other("block_lost"), Catch::Contains("'lost' is unknown"));
  CHECK_THROWS_WITH(other("flsh2"), Catch::Contains("did you mean 'flash2'"));
}

}  // namespace
}  // namespace attest::io
