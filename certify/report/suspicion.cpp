#include "certify/report/suspicion.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "certify/worker/process/isolated_kernel.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/judge/buffer.hpp"
#include "proptest/laws/memory_laws.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::certify {
namespace {

using proptest::Case;
using proptest::InputValues;
using proptest::KernelRun;

constexpr std::string_view kStale = "stale_memory: ";

// Suspicion that a message tells by itself; the first whose words are in the message.
struct Told {
  std::string_view words, name, statement;
};
constexpr std::array<Told, 10> kTold{
    {{"by another thread", "left_to_a_thread", "left work to a thread after the return"},
     {"left_thread: ", "left_to_a_thread", "left work to a thread after the return"},
     {"input_written: the argument structs", "arguments_changed",
      "changed the description of its tensors"},
     {"its description was modified", "arguments_changed",
      "changed the description of its tensors"},
     {"input_written: ", "inputs_changed",
      "changed inputs before a reference in the same memory could see them"},
     {" was modified", "inputs_changed",
      "changed inputs before a reference in the same memory could see them"},
     {kStale, "earlier_memory", "used memory of an earlier call"},
     {"out_of_bounds: ", "outside_output", "touched memory beside its tensors"},
     {": written ", "outside_output", "touched memory beside its tensors"},
     {"gap between its elements", "outside_output", "touched memory beside its tensors"}}};

std::optional<Suspicion> told_in(const std::string& message) {
  for (const Told& told : kTold) {
    if (message.find(told.words) == std::string::npos) continue;
    return Suspicion{std::string(told.name), std::string(told.statement)};
  }
  return std::nullopt;
}

// A run and whether the reference accepts it.
struct Played {
  KernelRun run;
  bool right = false;
};

// Forward alone: the deeds that are known leave the gradients to themselves.
class Stage {
 public:
  Stage(const attest_kernel& kernel, const Case& c) : kernel_(kernel), case_(c) {
    // Elements that share their memory cannot change alone, and huge tensors are not kept.
    const Strides strides = case_.problem.strides;
    if (strides == Strides::broadcast || strides == Strides::huge) {
      case_.problem.strides = Strides::packed;
    }
  }

  const Problem& problem() const { return case_.problem; }
  InputValues values(std::uint64_t number) const {
    return proptest::make_values(case_.problem, proptest::Values::normal, mix(case_.seed, number));
  }
  InputValues one_changed(const InputValues& values, std::uint64_t number) const {
    return proptest::with_one_changed(case_.problem, values, mix(case_.seed, number));
  }
  bool claimed(const Problem& problem) const {
    return proptest::unclaimed(kernel_.description, problem, Direction::forward).empty();
  }
  Stage on(const Problem& problem) const {
    Case other = case_;
    other.problem = problem;
    return {kernel_, other};
  }

  std::shared_ptr<const proptest::Truth> truth(const InputValues& values) const {
    return proptest::truth_of(kernel_, case_.problem, values, Direction::forward, case_);
  }
  KernelRun run(const InputValues& values) const {
    return proptest::complete(kernel_, case_.problem, values, Direction::forward, case_);
  }
  Played play(const InputValues& values) const {
    const auto exact = truth(values);
    Played played{run(values), false};
    played.right = accepts(*exact, played.run);
    return played;
  }
  static bool accepts(const proptest::Truth& truth, const KernelRun& run) {
    return proptest::gravest(truth.judge(run)).verdict == Verdict::passed;
  }

 private:
  const attest_kernel& kernel_;
  Case case_;
};

template <class Visit>
void each_element(const TensorView& view, const Visit& visit) {
  const std::int64_t columns = view.rank() > 3 ? view.extent(3) : 1;
  for (std::int64_t a = 0; a < view.extent(0); ++a) {
    for (std::int64_t b = 0; b < view.extent(1); ++b) {
      for (std::int64_t c = 0; c < view.extent(2); ++c) {
        for (std::int64_t d = 0; d < columns; ++d) visit(a, b, c, d);
      }
    }
  }
}

// Tells whether an element still holds the bits that outputs alone hold on entry.
bool unwritten(const Tensor& output) {
  const std::uint64_t poison = proptest::unwritten_bits(output.view().dtype());
  bool found = false;
  each_element(output.view(), [&](auto a, auto b, auto c, auto d) {
    found = found || output.view().bits(a, b, c, d) == poison;
  });
  return found;
}

using Seen = std::optional<std::string>;  // the statement, where something was seen

Seen writes_nothing(const Stage& stage) {
  constexpr auto kMeanwhile = std::chrono::milliseconds(20);
  const InputValues values = stage.values(0);
  const auto repeats = [&] {
    const bool first = unwritten(stage.run(values).O);
    return unwritten(stage.run(values).O) || first;
  };
  bool seen = repeats();
  if (!seen) {
    const proptest::SameMemory kept;
    seen = repeats();
  }
  if (!seen) return std::nullopt;
  // A thread that still works meets memory that is no more: the next call says so.
  std::this_thread::sleep_for(kMeanwhile);
  stage.run(values);
  return "left its output as it was before the call";
}

Seen same_as_before(const Stage& stage, const InputValues& first, const InputValues& second,
                    const char* when) {
  const Played before = stage.play(first), after = stage.play(second);
  const bool kept = before.right && !after.right && proptest::identical(before.run.O, after.run.O);
  if (!kept) return std::nullopt;
  return std::string("returned the result of an earlier call ") + when;
}

Seen keeps_by_shape(const Stage& stage) {
  return same_as_before(stage, stage.values(0), stage.values(1), "with the same shapes");
}

Seen keeps_by_pointer(const Stage& stage) {
  const proptest::SameMemory kept;
  return same_as_before(stage, stage.values(0), stage.values(1), "with the same addresses");
}

Seen keeps_by_some_inputs(const Stage& stage) {
  constexpr std::uint64_t kTries = 8;
  for (std::uint64_t number = 0; number < kTries; ++number) {
    const InputValues first = stage.values(number);
    if (Seen seen = same_as_before(stage, first, stage.one_changed(first, number),
                                   "whose inputs differ where it did not look")) {
      return seen;
    }
  }
  return std::nullopt;
}

Seen wrong_in_the_same_memory(const Stage& stage) {
  const InputValues first = stage.values(0), second = stage.values(1);
  if (!stage.play(first).right || !stage.play(second).right) return std::nullopt;
  const proptest::SameMemory kept;
  if (!stage.play(first).right || stage.play(second).right) return std::nullopt;
  return "was wrong where addresses came again, as they do under a clock, and right elsewhere";
}

// Calls the kernel with equal values, so that no other cause explains what becomes wrong.
Seen first_calls_alone(const Stage& stage) {
  constexpr int kCalls = 64;
  const InputValues values = stage.values(0);
  const auto shared = stage.truth(values);
  const proptest::Truth& truth = *shared;
  for (int call = 0; call < kCalls; ++call) {
    if (Stage::accepts(truth, stage.run(values))) continue;
    if (call == 0) return std::nullopt;
    return "was right in the first calls of a process only, of equal values in " +
           std::to_string(call);
  }
  return std::nullopt;
}

// Tells whether so many elements are the smallest of all by chance in fewer than one of 2^14 draws:
// of few elements they often are.
bool beyond_chance(std::int64_t elements, std::int64_t of) {
  constexpr double kBits = 14;
  const auto log_factorial = [](std::int64_t n) { return std::lgamma(static_cast<double>(n) + 1); };
  const double ways = log_factorial(of) - log_factorial(elements) - log_factorial(of - elements);
  return ways > kBits * std::log(2.0);
}

// Every element of O that is refused is zero, and the exact ones there are smaller than all others.
Seen zero_where_small(const Stage& stage) {
  constexpr std::uint64_t kTries = 16;
  for (std::uint64_t number = 0; number < kTries; ++number) {
    const InputValues values = stage.values(number);
    const auto shared = stage.truth(values);
    const proptest::Truth& truth = *shared;
    const KernelRun run = stage.run(values);
    const Tensor& exact = truth.forward().O;
    Tensor filled = run.O;
    double largest_zero = 0, smallest_other = std::numeric_limits<double>::infinity();
    std::int64_t zeros = 0, elements = 0;
    each_element(run.O.view(), [&](auto a, auto b, auto c, auto d) {
      const double size = std::abs(exact(a, b, c, d));
      if (size == 0) return;
      ++elements;
      if (run.O(a, b, c, d) != 0) {
        smallest_other = std::min(smallest_other, size);
        return;
      }
      ++zeros;
      largest_zero = std::max(largest_zero, size);
      filled.set(exact(a, b, c, d), a, b, c, d);
    });
    const bool wrong = !Stage::accepts(truth, run);
    const bool explained = largest_zero > 0 && largest_zero < smallest_other &&
                           beyond_chance(zeros, elements) &&
                           proptest::passes(filled.view(), exact, truth.forward_bounds().O);
    if (wrong && explained) return "returned zero where the result is small";
  }
  return std::nullopt;
}

Seen powers_of_two_alone(const Stage& stage) {
  constexpr std::int64_t kBase = 8;
  struct Extent {
    const char* name;
    std::vector<std::int64_t Problem::*> members;
  };
  const Extent extents[] = {{"seqlen_q", {&Problem::seqlen_q}},
                            {"seqlen_k", {&Problem::seqlen_k}},
                            {"seqlen", {&Problem::seqlen_q, &Problem::seqlen_k}},
                            {"head_dim", {&Problem::head_dim_qk, &Problem::head_dim_v}}};
  Problem base = proptest::plain_problem(stage.problem());
  base.seqlen_q = base.seqlen_k = base.head_dim_qk = base.head_dim_v = kBase;
  const auto right_with = [&](const Extent& extent, std::int64_t size) {
    Problem problem = base;
    for (const auto member : extent.members) problem.*member = size;
    const Stage other = stage.on(problem);
    return other.play(other.values(static_cast<std::uint64_t>(size))).right;
  };
  for (const Extent& extent : extents) {
    Problem odd = base;
    for (const auto member : extent.members) odd.*member = 3;
    if (!stage.claimed(base) || !stage.claimed(odd)) continue;
    const std::initializer_list<std::int64_t> powers{2, 4, 8}, others{3, 5, 6, 7};
    const auto right = [&](std::int64_t size) { return right_with(extent, size); };
    if (std::all_of(powers.begin(), powers.end(), right) &&
        std::none_of(others.begin(), others.end(), right)) {
      return std::string("was right only where ") + extent.name + " is a power of two";
    }
  }
  return std::nullopt;
}

InputValues rounded(const InputValues& values, DType dtype) {
  InputValues result = values;
  for (Tensor* tensor : {&result.Q, &result.K, &result.V}) {
    double* const elements = tensor->doubles();
    for (std::int64_t e = 0; e < tensor->view().size(); ++e) {
      elements[e] = round_to(dtype, elements[e]);
    }
  }
  return result;
}

Seen of_lower_precision(const Stage& stage) {
  const InputValues values = stage.values(0);
  const Played played = stage.play(values);
  if (played.right) return std::nullopt;
  std::array coarsest_first = all_dtypes();
  std::sort(coarsest_first.begin(), coarsest_first.end(),
            [](DType a, DType b) { return unit_roundoff(a) > unit_roundoff(b); });
  for (const DType dtype : coarsest_first) {
    if (unit_roundoff(dtype) <= unit_roundoff(stage.problem().dtype)) continue;
    const InputValues fewer_digits = rounded(values, dtype);
    if (!Stage::accepts(*stage.truth(fewer_digits), played.run)) continue;
    return "computed with inputs rounded to " + std::string(name(dtype)) +
           ", a lower precision than it declares";
  }
  return std::nullopt;
}

// Checks whether every row of O is some row of V, bit by bit, where rows are sums of several.
Seen rows_of_values(const Stage& stage) {
  constexpr std::int64_t kRows = 7;
  Problem problem = proptest::plain_problem(stage.problem());
  problem.seqlen_q = problem.seqlen_k = kRows;
  if (!stage.claimed(problem)) return std::nullopt;
  const Stage other = stage.on(problem);
  const InputValues values = other.values(0);
  const Played played = other.play(values);
  const TensorView& O = played.run.O.view();
  if (played.right || O.size() == 0) return std::nullopt;
  const auto is_row = [&](std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t key) {
    for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
      if (O(b, i, h, c) != values.V(b, key, h / problem.group_size(), c)) return false;
    }
    return true;
  };
  bool all = true;
  each_element(O, [&](auto b, auto i, auto h, auto c) {
    if (c > 0 || !all) return;
    bool any = false;
    for (std::int64_t key = 0; key < kRows; ++key) any = any || is_row(b, i, h, key);
    all = any;
  });
  if (!all) return std::nullopt;
  return "returned rows of V, which is right where V is constant";
}

struct Experiment {
  const char* name;
  Seen (*look)(const Stage& stage);
};
constexpr std::array<Experiment, 10> kExperiments{{{"unwritten", writes_nothing},
                                                   {"result_by_shape", keeps_by_shape},
                                                   {"result_by_pointer", keeps_by_pointer},
                                                   {"result_by_some_inputs", keeps_by_some_inputs},
                                                   {"repeated_addresses", wrong_in_the_same_memory},
                                                   {"first_calls_only", first_calls_alone},
                                                   {"zeros_where_small", zero_where_small},
                                                   {"powers_of_two_only", powers_of_two_alone},
                                                   {"lower_precision", of_lower_precision},
                                                   {"row_of_values", rows_of_values}}};

// Checks whether equal calls in one process fail by memory of an earlier one, the first of them by
// none: an address that was computed wrongly may lie in such memory as well, and needs no call
// before it.
bool keeps_memory(const attest_kernel& kernel, const Case& c) {
  constexpr int kCalls = 4;
  proptest::Law law;
  law.check = [](const attest_kernel& tried, const Case& of) {
    return proptest::guarded([&] {
      const Stage stage(tried, of);
      stage.run(stage.values(0));
      return proptest::LawResult{};
    });
  };
  std::string message;
  worker::restart(kernel);
  for (int call = 0; call < kCalls && message.empty(); ++call) {
    message = worker::check(law, kernel, c).message;
    if (call == 0 && !message.empty()) message = "in the first call: " + message;
  }
  worker::restart(kernel);
  return message.rfind(kStale, 0) == 0;
}

std::optional<Suspicion> told_of(const attest_kernel& kernel, const Case& c,
                                 const std::string& message) {
  auto told = told_in(message);
  const bool in_a_call = told && told->name == "earlier_memory";
  if (in_a_call && !keeps_memory(kernel, c)) return std::nullopt;
  return told;
}

// One experiment in a process of its own; what stops it may tell more than what it looks for.
std::optional<Suspicion> look(const attest_kernel& kernel, const Case& c, const Experiment& one) {
  std::optional<Suspicion> seen;
  proptest::Law law;
  law.check = [&](const attest_kernel& tried, const Case& of) {
    return proptest::guarded([&] {
      if (const Seen statement = one.look(Stage(tried, of))) seen = {one.name, *statement};
      return proptest::LawResult{};
    });
  };
  worker::restart(kernel);
  const proptest::LawResult result = worker::check(law, kernel, c);
  worker::restart(kernel);
  return result.message.empty() ? seen : told_of(kernel, c, result.message);
}

// A state's failure does not shrink, and a few elements do not show everything.
Case small_case(const attest_kernel& kernel, const Case& found) {
  constexpr std::int64_t kRows = 16, kDim = 32, kHeads = 2;
  Problem small = proptest::plain_problem(found.problem);
  small.batch = std::min(small.batch, kHeads);
  small.num_heads_q = small.num_heads_kv = std::min(small.num_heads_kv, kHeads);
  small.seqlen_q = small.seqlen_k = kRows;
  small.head_dim_qk = small.head_dim_v = kDim;
  Case c = found;
  if (proptest::unclaimed(kernel.description, small, Direction::forward).empty()) {
    c.problem = small;
  }
  return c;
}

bool cheap_enough(const Problem& p) {
  constexpr double kMostProducts = 0x1p16;  // as many as the small case has
  return static_cast<double>(p.batch * p.num_heads_q) * static_cast<double>(p.seqlen_q) *
             static_cast<double>(p.seqlen_k) * static_cast<double>(p.head_dim_qk + p.head_dim_v) <=
         kMostProducts;
}

}  // namespace

std::vector<Suspicion> suspicions_of(const attest_kernel& kernel, const Case& shrunk,
                                     const Case& found, const std::string& message) {
  if (told_in(message)) {
    const auto told = told_of(kernel, shrunk, message);
    return told ? std::vector{*told} : std::vector<Suspicion>{};
  }
  if ((kernel.description.directions & ATTEST_FORWARD) == 0) return {};
  for (const Experiment& experiment : kExperiments) {
    for (const Case& c : {small_case(kernel, found), shrunk, found}) {
      if (!cheap_enough(c.problem)) continue;
      try {
        if (auto seen = look(kernel, c, experiment)) return {*seen};
      } catch (const InvalidProblem&) {  // values without an answer
        continue;
      }
    }
  }
  return {};
}

}  // namespace attest::certify
