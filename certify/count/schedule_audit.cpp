#include "certify/count/schedule_audit.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/workspace.hpp"
#include "fixtures/models.hpp"
#include "proptest/judge/compare.hpp"
#include "proptest/judge/loss.hpp"

namespace attest::certify {
namespace {

using proptest::Case;

// A schedule on the counting machine as a kernel that describes itself as another does.
class CountingKernel {
 public:
  CountingKernel(const io::ScheduleFamily& family, const io::ScheduleSpec& spec,
                 const attest_kernel& of, io::FastMemory capacity)
      : family_(family), spec_(spec), of_(of), capacity_(capacity), kernel_(of) {
    kernel_.self = this;
    kernel_.workspace_bytes = nullptr;
    // Schedules take patterns as boolean masks, those over lists make their own.
    kernel_.description.features |= ATTEST_BOOLEAN_MASK;
    kernel_.description.features &=
        ~std::uint32_t{ATTEST_BLOCK_MASK | ATTEST_CSR_MASK | ATTEST_NM_MASK};
    if (family.direction() == Direction::forward) {
      kernel_.forward = [](const void* self, const attest_forward_args* args) {
        return static_cast<const CountingKernel*>(self)->count(*args);
      };
    } else {
      kernel_.forward = [](const void* self, const attest_forward_args* args) {
        return static_cast<const CountingKernel*>(self)->forward_of_kernel(*args);
      };
    }
    kernel_.backward = [](const void* self, const attest_backward_args* args) {
      return static_cast<const CountingKernel*>(self)->count(*args);
    };
    kernel_.loss_gradient = [](const void* self, const attest_loss_args* args) {
      return static_cast<const CountingKernel*>(self)->count(*args);
    };
  }
  CountingKernel(const CountingKernel&) = delete;
  CountingKernel& operator=(const CountingKernel&) = delete;

  const attest_kernel& abi() const { return kernel_; }
  const std::string& fault() const { return fault_; }  // of the last call

 private:
  template <class Arguments>
  attest_status count(const Arguments& args) const {
    io::ScheduleSpec spec = spec_;
    if constexpr (requires { args.dLSE; }) {
      if (args.dLSE != nullptr) spec.parameters.emplace_back("dlse", "given");
    }
    const auto schedule = family_.make(spec, *args.problem, capacity_);
    const io::Traffic counted = schedule->count(capacity_, args).traffic();
    if (!(counted == schedule->closed_form())) {
      fault_ = schedule->spec().to_string() + ": " + std::to_string(counted.total_words().value()) +
               " words counted with data, " +
               std::to_string(schedule->closed_form().total_words().value()) +
               " by its closed form";
    }
    return ATTEST_OK;
  }

  // A backward schedule reads what the kernel's own forward stored.
  attest_status forward_of_kernel(const attest_forward_args& args) const {
    const std::size_t bytes = workspace_bytes_of(of_, *args.problem, ATTEST_FORWARD);
    std::vector<std::byte> workspace(bytes);
    attest_forward_args own = args;
    own.workspace = workspace.data();
    own.workspace_bytes = bytes;
    return of_.forward(of_.self, &own);
  }

  const io::ScheduleFamily& family_;
  const io::ScheduleSpec& spec_;
  const attest_kernel& of_;
  io::FastMemory capacity_;
  attest_kernel kernel_;
  mutable std::string fault_;
};

// The counted code of a kernel as a kernel that describes itself as that one does.
class CountedKernel {
 public:
  CountedKernel(const attest_kernel& of, const CountedCode& code)
      : of_(of), code_(code), kernel_(of) {
    kernel_.self = this;
    kernel_.workspace_bytes = [](const void* self, const attest_problem* problem,
                                 std::uint32_t direction) {
      return workspace_bytes_of(static_cast<const CountedKernel*>(self)->of_, *problem, direction);
    };
    if (code.forward != nullptr) {
      kernel_.forward = [](const void* self, const attest_forward_args* args) {
        const auto& counted = *static_cast<const CountedKernel*>(self);
        counted.code_.forward(*args, &counted.forward_);
        return ATTEST_OK;
      };
    }
    if (code.backward != nullptr) {
      kernel_.backward = [](const void* self, const attest_backward_args* args) {
        const auto& counted = *static_cast<const CountedKernel*>(self);
        counted.code_.backward(*args, &counted.backward_);
        return ATTEST_OK;
      };
    }
  }
  CountedKernel(const CountedKernel&) = delete;
  CountedKernel& operator=(const CountedKernel&) = delete;

  const attest_kernel& abi() const { return kernel_; }
  MovedWords words(Direction direction) const {
    return direction == Direction::forward ? forward_ : backward_;
  }

 private:
  const attest_kernel& of_;
  CountedCode code_;
  attest_kernel kernel_;
  mutable MovedWords forward_, backward_;
};

// The schedule that a kernel names, as it is counted on a problem.
struct Named {
  const io::ScheduleFamily* family;
  io::ScheduleSpec spec;

  std::unique_ptr<io::Schedule> make(const AbiProblem& form, io::FastMemory capacity) const {
    return family->make(spec, *form.get(), capacity);
  }
};

// Returns the schedule without lists for one over lists, whose tiles are all visited where a
// problem has no pattern: flash2 for block_flash2.
Named without_lists(const io::ScheduleRegistry& schedules, const Named& named) {
  const io::ScheduleSpec spec = io::spec_without_lists(schedules, named.spec);
  return {&schedules.find(spec.name), spec};
}

class Auditor {
 public:
  Auditor(Named named, Named without_pattern, const attest_kernel& kernel, const CountedCode& code,
          std::string field, ScheduleAudit& audit)
      : named_(std::move(named)),
        without_pattern_(std::move(without_pattern)),
        kernel_(kernel),
        code_(code),
        field_(std::move(field)),
        audit_(audit),
        direction_(named_.family->direction()) {}

  bool claimed(const Problem& problem) const {
    return proptest::unclaimed(kernel_.description, problem, direction_).empty();
  }

  // Notes a violation where the parameters are why the schedule takes no problem.
  void judge_parameters() const {
    if (!audit_.table.empty() || audit_.cases > 0 || !of_parameters_) return;
    audit_.violations.push_back("description." + field_ + ": '" + audit_.schedule +
                                "' takes no problem, '" + named_.spec.name +
                                "' does: " + audit_.not_counted.front());
    audit_.not_counted.clear();
  }

  // Counts dry and compares with closed form and bounds.
  void count_shape(const Problem& problem) {
    const auto known = [&](const CountedProblem& counted) {
      return counted.problem.to_string() == problem.to_string();
    };
    if (std::any_of(audit_.table.begin(), audit_.table.end(), known)) return;
    guarded(problem, [&] {
      const AbiProblem form(problem, 1);
      const Named& named = named_for(problem);
      const io::FastMemory capacity = capacity_for(named, form);
      const auto schedule = named.make(form, capacity);
      io::ScheduleCount count = io::count_schedule(*named.family, *schedule, problem, capacity);
      for (const std::string& fault : count.faults()) violated(fault, problem, capacity);
      CountedProblem counted{problem, std::move(count)};
      count_code(counted, form, capacity);
      audit_.table.push_back(std::move(counted));
    });
  }

  // Counts with data and compares the outputs with the kernel's own.
  void count_case(const Case& c) {
    guarded(c.problem, [&] {
      const AbiProblem form(c.problem, 1);
      const Named& named = named_for(c.problem);
      const io::FastMemory capacity = capacity_for(named, form);
      named.make(form, capacity);  // throws for what it does not take
      const CountingKernel counting(*named.family, named.spec, kernel_, capacity);
      const bool equal = direction_ == Direction::loss_gradient
                             ? equal_loss(c, counting.abi())
                             : equal_attention(c, counting.abi());
      if (!counting.fault().empty()) violated(counting.fault(), c.problem, capacity);
      ++audit_.cases;
      audit_.equal_bits += equal ? 1 : 0;
    });
  }

 private:
  // Runs the code on drawn values, beside the kernel.
  void count_code(CountedProblem& counted, const AbiProblem& form, io::FastMemory capacity) const {
    const auto counts =
        direction_ == Direction::forward ? code_.forward != nullptr : code_.backward != nullptr;
    if (direction_ == Direction::loss_gradient || !counts) return;
    const Problem& problem = counted.problem;
    Case c;
    c.problem = problem;
    while (proptest::uses_dlse(kernel_.description, c.seed)) ++c.seed;  // as schedules are counted
    const CountedKernel code(kernel_, code_);
    if (!equal_attention(c, code.abi())) {
      violated("the code that is counted gives other bits than the kernel", problem, capacity);
    }
    const auto bytes =
        static_cast<std::int64_t>(workspace_bytes_of(kernel_, *form.get(), abi(direction_)));
    const std::int64_t fast =
        std::max(bytes / counted.count.narrowest_bytes, counted.count.bound_words);
    const auto greatest = [&](const io::KernelClass& of) {
      return io::greatest(io::bounds_of(direction_, problem, of, fast));
    };
    counted.of_code = CodeCount{code.words(direction_), fast, greatest(counted.count.kernel)};
    const std::int64_t words = counted.of_code->words.total();
    const auto least = greatest(io::undeclared(counted.count.kernel));
    if (least && words < least->words) {
      violated("the code counts " + std::to_string(words) + " words, fewer than the " +
                   std::to_string(least->words) + " of " + least->name +
                   " that every kernel must move",
               problem, capacity);
    }
  }

  const Named& named_for(const Problem& problem) const {
    return problem.mask.boolean ? named_ : without_pattern_;
  }

  // Returns the fast memory that the kernel declares, else as much as the schedule takes.
  io::FastMemory capacity_for(const Named& named, const AbiProblem& form) const {
    if (audit_.fast_memory_bytes > 0) return io::FastMemory::of_bytes(audit_.fast_memory_bytes);
    const io::Amount peak = named.make(form, io::FastMemory{})->closed_form().peak;
    return io::FastMemory::of_words(std::max<std::int64_t>(peak.words.value(), 1));
  }

  template <class Count>
  void guarded(const Problem& problem, const Count& count) {
    try {
      count();
    } catch (const io::CapacityExceeded& error) {
      violated(std::string("beyond the declared fast memory: ") + error.what(), problem,
               io::FastMemory::of_bytes(std::max<std::int64_t>(audit_.fast_memory_bytes, 1)));
    } catch (const InvalidProblem& error) {
      const std::string reason = error.what();
      auto& known = audit_.not_counted;
      if (std::find(known.begin(), known.end(), reason) == known.end()) known.push_back(reason);
      of_parameters_ = of_parameters_ || takes_without_parameters(problem);
    }
  }

  bool takes_without_parameters(const Problem& problem) const {
    Named plain = named_for(problem);
    if (plain.spec.parameters.empty()) return false;
    plain.spec.parameters.clear();
    try {
      const AbiProblem form(problem, 1);
      plain.make(form, io::FastMemory{});
    } catch (const InvalidProblem&) {
      return false;
    }
    return true;
  }

  void violated(const std::string& message, const Problem& problem, io::FastMemory capacity) const {
    const bool bytes = capacity.words == io::FastMemory::kUnlimited;
    audit_.violations.push_back(message + "; attest count --schedule '" + audit_.schedule +
                                "' --problem '" + problem.to_string() + "' " +
                                (bytes ? "--fast-bytes " + std::to_string(capacity.bytes)
                                       : "--fast-words " + std::to_string(capacity.words)));
  }

  static bool same(const Tensor& a, const Tensor& b) {
    return proptest::compare_bits(a.view(), b.view()).verdict == Verdict::passed;
  }

  bool equal_attention(const Case& c, const attest_kernel& counting) const {
    const proptest::InputValues values = proptest::make_values(c.problem, c.values, c.seed);
    const auto run = [&](const attest_kernel& kernel) {
      return proptest::run(kernel, c.problem, values, direction_, c);
    };
    const proptest::KernelRun own = run(kernel_), counted = run(counting);
    if (!own.completed() || !counted.completed() || !same(own.O, counted.O)) return false;
    if (direction_ == Direction::forward) {
      const bool lse = (kernel_.description.features & ATTEST_LSE) != 0;
      return !lse || same(own.LSE, counted.LSE);
    }
    return same(own.dQ, counted.dQ) && same(own.dK, counted.dK) && same(own.dV, counted.dV);
  }

  bool equal_loss(const Case& c, const attest_kernel& counting) const {
    const proptest::LossValues values = proptest::make_loss_values(c.problem, c.values, c.seed);
    const proptest::LossRun own = proptest::run_loss(kernel_, c.problem, values, c),
                            counted = proptest::run_loss(counting, c.problem, values, c);
    return own.status == ATTEST_OK && counted.status == ATTEST_OK && same(own.dX, counted.dX);
  }

  Named named_, without_pattern_;
  const attest_kernel& kernel_;
  const CountedCode& code_;
  std::string field_;
  ScheduleAudit& audit_;
  Direction direction_;
  bool of_parameters_ = false;
};

std::uint64_t cases_of(proptest::Tier tier) {
  switch (tier) {
    case proptest::Tier::smoke:
      return 12;
    case proptest::Tier::fast:
      return 50;
    case proptest::Tier::full:
      break;
  }
  return 500;
}

}  // namespace

std::optional<double> CountedProblem::ratio() const {
  const std::optional<io::Bound>& lower = of_code ? of_code->lower : count.lower;
  if (!lower || lower->words == 0) return std::nullopt;
  return static_cast<double>(moved_words()) / static_cast<double>(lower->words);
}

std::optional<ScheduleAudit> audit_schedule(const io::ScheduleRegistry& schedules,
                                            const attest_kernel& kernel, NamedSchedule which,
                                            const AuditedProblems& problems,
                                            const CountedCode& code) {
  const attest_description& description = kernel.description;
  const bool of_backward = which == NamedSchedule::schedule_backward;
  const char* const text = of_backward ? description.schedule_backward : description.schedule;
  if (text == nullptr) return std::nullopt;
  ScheduleAudit audit;
  audit.schedule = text;
  audit.fast_memory_bytes = description.fast_memory_bytes;
  const std::string field = of_backward ? "schedule_backward" : "schedule";
  Named named{}, dense{};
  try {
    named.spec = io::ScheduleSpec::parse(audit.schedule);
  } catch (const InvalidProblem& error) {
    audit.violations.push_back("description." + field + " is no schedule: " + error.what());
    return audit;
  }
  try {
    named.family = &schedules.find(named.spec.name);
    dense = without_lists(schedules, named);
  } catch (const InvalidProblem& error) {
    audit.not_counted.push_back(error.what());
    return audit;
  }
  const Direction direction = named.family->direction();
  if (of_backward && direction != Direction::backward) {
    audit.violations.push_back("description.schedule_backward names '" + audit.schedule +
                               "', a schedule of " + std::string(name(direction)) +
                               "; name it in description.schedule");
    return audit;
  }
  if (!of_backward && direction == Direction::backward &&
      description.schedule_backward != nullptr) {
    audit.violations.push_back("description.schedule names '" + audit.schedule +
                               "', a schedule of backward, beside description.schedule_backward; "
                               "name that of forward");
    return audit;
  }
  if ((description.directions & abi(direction)) == 0) {
    audit.violations.push_back("names the " + std::string(name(direction)) + " schedule '" +
                               audit.schedule + "', but claims no " + std::string(name(direction)));
    return audit;
  }
  Auditor auditor(std::move(named), std::move(dense), kernel, code, field, audit);
  const bool loss = direction == Direction::loss_gradient;
  const auto masked = [&](const Problem& problem) {
    return problems.mask ? with_mask(problem, *problems.mask) : problem;
  };
  for (const fixtures::Model& model : fixtures::models()) {
    if (problems.shapes == Shapes::none) break;
    const Problem problem =
        masked(loss ? proptest::loss_problem_like(model.laptop, DType::f32) : model.laptop);
    if (auditor.claimed(problem)) auditor.count_shape(problem);
  }
  constexpr std::uint64_t kStream = 0x696fu;  // other cases than the laws'
  for (std::uint64_t index = 0; index < cases_of(problems.tier); ++index) {
    Case c = proptest::generate(description, problems.tier, mix(problems.seed, kStream), index);
    c.problem = masked(c.problem);
    c.problem
        .paged_kv = {};  // schedules move keys in their order; no word depends on where they lie
    if (auditor.claimed(c.problem)) auditor.count_case(c);
  }
  auditor.judge_parameters();
  return audit;
}

}  // namespace attest::certify
