#include "io/schedule.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::io {
namespace {

class Named : public ScheduleFamily {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string summary() const override { return "takes part in no count"; }
  KernelClass kernel_class() const override { return {}; }
  Direction direction() const override { return Direction::forward; }
  std::vector<ScheduleParameter> parameters() const override { return {}; }
  std::unique_ptr<Schedule> make(const ScheduleSpec&, const attest_problem&,
                                 FastMemory) const override {
    return nullptr;
  }

 private:
  std::string name_;
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

}  // namespace
}  // namespace attest::io
