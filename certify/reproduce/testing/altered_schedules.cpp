#include "certify/reproduce/testing/altered_schedules.hpp"

#include <limits>
#include <memory>

#include "core/error.hpp"
#include "cpu/register.hpp"
#include "schedules/register.hpp"
#include "sparse/register.hpp"

namespace attest::certify::testing {
namespace {

// A family under another's name.
class Renamed : public io::ScheduleFamily {
 public:
  explicit Renamed(const io::ScheduleFamily& of) : of_(of) {}

  std::string name() const override { return of_.name(); }
  std::string summary() const override { return of_.summary(); }
  io::KernelClass kernel_class() const override { return of_.kernel_class(); }
  Direction direction() const override { return of_.direction(); }
  std::vector<io::ScheduleParameter> parameters() const override { return of_.parameters(); }

 protected:
  const io::ScheduleFamily& of_;
};

class Constant : public io::Schedule {
 public:
  Constant(io::ScheduleSpec spec, FlatWords words) : spec_(std::move(spec)), words_(words) {}

  io::ScheduleSpec spec() const override { return spec_; }
  io::Traffic closed_form() const override { return meter({}).traffic(); }
  io::Meter dry_count(io::FastMemory capacity) const override { return meter(capacity); }
  io::Meter record(io::FastMemory capacity, io::WordMoveSink&) const override {
    return meter(capacity);
  }
  io::Meter count(io::FastMemory capacity, const attest_forward_args&) const override {
    return meter(capacity);
  }

 private:
  io::Meter meter(io::FastMemory capacity) const {
    io::Meter meter(capacity);
    meter.read(words_.moved, sizeof(float));
    meter.release(meter.take("everything", words_.held, 1, sizeof(float)));
    return meter;
  }

  io::ScheduleSpec spec_;
  FlatWords words_;
};

class Flat : public Renamed {
 public:
  Flat(const io::ScheduleFamily& of, FlatWords words) : Renamed(of), words_(words) {}

  std::unique_ptr<io::Schedule> make(const io::ScheduleSpec& spec, const attest_problem&,
                                     io::FastMemory) const override {
    return std::make_unique<Constant>(spec, words_);
  }

 private:
  FlatWords words_;
};

attest_problem without_boolean(attest_problem problem) {
  problem.mask.boolean = nullptr;
  return problem;
}

class AlteredSchedule : public io::Schedule {
 public:
  AlteredSchedule(const io::ScheduleFamily& family, const io::ScheduleSpec& spec,
                  const attest_problem& problem, io::FastMemory capacity, Alteration alteration)
      : problem_(alteration.blind ? without_boolean(problem) : problem),
        of_(family.make(spec, problem_, capacity)),
        alteration_(alteration) {}

  io::ScheduleSpec spec() const override { return of_->spec(); }
  bool moves_whole_rows() const override { return of_->moves_whole_rows(); }
  io::Traffic closed_form() const override {
    io::Traffic traffic = of_->closed_form();
    if (alteration_.forgets_reads) traffic = meter_of(traffic).traffic();
    if (pays()) traffic.reads += io::Amount{1, sizeof(float)};
    if (alteration_.understated) traffic.peak.words = traffic.peak.words.value() / 4;
    return traffic;
  }
  io::Meter dry_count(io::FastMemory capacity) const override {
    io::Meter meter = of_->dry_count(capacity);
    if (pays()) meter.read(1, sizeof(float));
    return meter;
  }
  io::Meter record(io::FastMemory, io::WordMoveSink& sink) const override {
    const io::Meter meter = of_->record({}, sink);
    return alteration_.forgets_reads ? meter_of(meter.traffic()) : meter;
  }
  io::Meter count(io::FastMemory capacity, const attest_forward_args& args) const override {
    io::Meter meter = of_->count(capacity, args);
    if (alteration_.forward == ForwardResult::infinite) {
      *static_cast<float*>(args.O->data) = std::numeric_limits<float>::infinity();
    }
    return meter;
  }
  void run(const attest_forward_args& given) const override {
    attest_forward_args args = given;
    if (alteration_.blind) args.problem = &problem_;
    constexpr int kTimes = 8;
    const bool slow = alteration_.slow && of_->spec().name != "flash2";
    for (int time = 0; time < (slow ? kTimes : 1); ++time) of_->run(args);
  }

 private:
  bool pays() const { return alteration_.pays_for_masks && problem_.mask.boolean != nullptr; }

  // Half the reads, all else as it was.
  static io::Meter meter_of(const io::Traffic& traffic) {
    io::Meter meter({});
    meter.read(traffic.reads.words.value() / 2, sizeof(float));
    meter.write(traffic.writes.words.value(), sizeof(float));
    meter.release(meter.take("everything", traffic.peak.words.value(), 1, sizeof(float)));
    return meter;
  }

  attest_problem problem_;  // before the schedule, which refers to it
  std::unique_ptr<io::Schedule> of_;
  Alteration alteration_;
};

class AlteredFamily : public Renamed {
 public:
  AlteredFamily(const io::ScheduleFamily& of, Alteration alteration)
      : Renamed(of), alteration_(alteration) {}

  std::unique_ptr<io::Schedule> make(const io::ScheduleSpec& spec, const attest_problem& problem,
                                     io::FastMemory capacity) const override {
    return std::make_unique<AlteredSchedule>(of_, spec, problem, capacity, alteration_);
  }

 private:
  Alteration alteration_;
};

template <class Family, class How>
io::ScheduleRegistry registry_of(How how, const io::ScheduleRegistry& of = dense_schedules()) {
  io::ScheduleRegistry registry;
  for (const auto& family : of.families()) {
    registry.add(std::make_unique<Family>(*family, how));
  }
  return registry;
}

}  // namespace

const Registry& all_kernels() {
  static const Registry all = [] {
    Registry registry;
    register_cpu(registry);
    register_sparse(registry);
    return registry;
  }();
  return all;
}

Laboratory laboratory(const io::ScheduleRegistry& schedules, const Registry& kernels) {
  return {schedules, kernels, Effort::smoke, {}, {}, {}};
}

io::ScheduleRegistry flat_schedules(FlatWords words) { return registry_of<Flat>(words); }

io::ScheduleRegistry altered_schedules(Alteration alteration) {
  return registry_of<AlteredFamily>(alteration);
}

io::ScheduleRegistry all_altered_schedules(Alteration alteration) {
  return registry_of<AlteredFamily>(alteration, all_schedules());
}

}  // namespace attest::certify::testing
