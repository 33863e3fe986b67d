#include "io/schedule/schedule_count.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::io {
namespace {

// A schedule that says what it is told to say.
class Told : public Schedule {
 public:
  Told(Words counted, Words formula, bool whole_rows = false)
      : counted_(counted), formula_(formula), whole_rows_(whole_rows) {}
  ScheduleSpec spec() const override { return {"told", {}}; }
  bool moves_whole_rows() const override { return whole_rows_; }
  Traffic closed_form() const override { return {{formula_, 4 * formula_}, {}, {1, 4}}; }
  Meter dry_count(FastMemory capacity) const override {
    Meter meter(capacity);
    meter.release(meter.take("word", 1, 1, sizeof(float)));
    meter.read(counted_.value(), sizeof(float));
    return meter;
  }

 private:
  Words counted_, formula_;
  bool whole_rows_;
};

class ToldFamily : public ScheduleFamily {
 public:
  explicit ToldFamily(KernelClass kernel = {}, Direction direction = Direction::forward)
      : kernel_(kernel), direction_(direction) {}
  std::string name() const override { return "told"; }
  std::string summary() const override { return "says what it is told to say"; }
  KernelClass kernel_class() const override { return kernel_; }
  Direction direction() const override { return direction_; }
  std::vector<ScheduleParameter> parameters() const override { return {}; }
  std::unique_ptr<Schedule> make(const ScheduleSpec&, const attest_problem&,
                                 FastMemory) const override {
    return nullptr;
  }

 private:
  KernelClass kernel_;
  Direction direction_;
};

const Problem kProblem = Problem::parse("sq=256,sk=256,d=16");
const FastMemory kCapacity = FastMemory::of_words(64);

ScheduleCount count(const ToldFamily& family, Words counted, Words formula,
                    const Problem& problem = kProblem) {
  return count_schedule(family, Told(counted, formula), problem, kCapacity);
}

TEST_CASE("a count stands beside its bounds", "[io][count]") {
  const ScheduleCount good = count(ToldFamily(), 10000000, 10000000);
  CHECK(good.faults().empty());
  CHECK(good.closed_form_equal());
  CHECK(good.bound_words == 64);
  REQUIRE(good.lower);
  CHECK(good.lower->name == "theorem_b");
  REQUIRE(good.ratio());
  CHECK(*good.ratio() == 10000000.0 / static_cast<double>(good.lower->words));
}

TEST_CASE("faults of a count are named", "[io][count]") {
  const std::vector<std::string> formula = count(ToldFamily(), 10000000, 10000001).faults();
  REQUIRE(formula.size() == 1);
  CHECK(formula[0] ==
        "told: counted 10000000 + 0 words, peak 1, but its closed form is 10000001 + 0 words, "
        "peak 1");
  const ScheduleCount too_few = count(ToldFamily(), 1, 1);
  CHECK(too_few.faults().size() >= 2);  // every lower bound that it is below
  CHECK_THAT(too_few.faults()[0],
             Catch::StartsWith("told: 1 words, fewer than the lower bound compulsory_forward"));
  const ScheduleCount equal = count(ToldFamily(), too_few.lower->words, too_few.lower->words);
  CHECK(equal.faults().empty());
}

TEST_CASE("the class of a schedule", "[io][count]") {
  const ToldFamily once({.evaluation = Evaluation::once});
  const Told told(1, 1), whole(1, 1, true);
  CHECK(class_of(once, told, kProblem).evaluation == Evaluation::once);
  CHECK(class_of(once, told, kProblem).movement == RowMovement::by_word);
  CHECK(class_of(once, told, kProblem).products == Products::standard);
  CHECK(class_of(once, whole, kProblem).movement == RowMovement::whole_index);
  const ToldFamily all_whole({.movement = RowMovement::whole_index});
  CHECK(class_of(all_whole, told, kProblem).movement == RowMovement::whole_index);
  const Problem zero = Problem::parse("sq=256,sk=256,d=16,scale=0");
  CHECK(class_of(once, told, zero).products == Products::shortcut);
  CHECK(undeclared(class_of(once, told, zero)).products == Products::shortcut);
  CHECK(undeclared(class_of(once, told, zero)).evaluation == Evaluation::may_recompute);

  // A declaration adds bounds for its class and none for every kernel.
  const ToldFamily reads({.saved = SavedOutputs::read}, Direction::backward);
  const ScheduleCount plain = count(ToldFamily({}, Direction::backward), 10000000, 10000000);
  const ScheduleCount declared = count(reads, 10000000, 10000000);
  CHECK(declared.lower->words > plain.lower->words);
  CHECK(declared.lower->name == "backward_saved_outputs");
  CHECK(declared.lower_of_every->words == plain.lower->words);

  const ScheduleCount without = count(once, 10000000, 10000000, zero);
  CHECK_FALSE(without.lower);
  CHECK_FALSE(without.lower_of_every);
  CHECK_FALSE(without.ratio());
  const ToldFamily given({.products = Products::scores_given}, Direction::backward);
  CHECK_FALSE(count(given, 1, 1).lower);
  CHECK_THAT(count(given, 1, 1).bounds[0].why_not(), Catch::Contains("no score is formed"));
}

TEST_CASE("bounds of a capacity in bytes", "[io][count]") {
  const ToldFamily family;
  const Told schedule(10000000, 10000000);
  const Problem half = Problem::parse("sq=256,sk=256,d=16,dtype=bf16");
  const ScheduleCount bytes = count_schedule(family, schedule, half, FastMemory::of_bytes(129));
  CHECK(bytes.narrowest_bytes == 2);
  CHECK(bytes.bound_words == 64);
  const ScheduleCount full = count_schedule(family, schedule, kProblem, FastMemory::of_bytes(129));
  CHECK(full.narrowest_bytes == 4);
  CHECK(full.bound_words == 32);
  CHECK_THROWS_WITH(count_schedule(family, schedule, kProblem, FastMemory{}),
                    Catch::Contains("no bound holds there"));
}

TEST_CASE("bounds of each direction", "[io][count]") {
  const auto first = [](Direction direction) {
    return bounds_of(direction, kProblem, KernelClass{}, 64).at(0).name;
  };
  CHECK(first(Direction::forward) == "compulsory_forward");
  CHECK(first(Direction::backward) == "compulsory_backward");
  CHECK(first(Direction::loss_gradient) == "compulsory_loss");
}

}  // namespace
}  // namespace attest::io
