// The bounds of gradients whose kernel keeps its LSE to itself: they leave alone whoever stays
// within forward's bound of LSE, and refuse wrong gradients (docs/theory/error-bounds/backward.md,
// "An LSE that nobody saw").
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/testing/validation.hpp"

namespace attest::proptest {
namespace {

using fixtures::Defect;
using fixtures::Emulation;
using reference::BackwardBounds;
using reference::ErrorBound;

// Says where the LSE of every row lies: the kernel's own, or at an end of its bound.
enum class Push : std::uint8_t { none, up, down, alternating };

struct Pushed {
  attest_kernel kernel;
  Tensor LSE;  // in the place of the kernel's own where it is finite
};

attest_status pushed_forward(const void* self, const attest_forward_args* args) {
  const auto& [kernel, LSE] = *static_cast<const Pushed*>(self);
  const attest_status status = kernel.forward(kernel.self, args);
  const TensorView stored = view_of(*args->LSE, "LSE", {"batch", "num_heads_q", "seqlen_q"});
  for (std::int64_t b = 0; b < LSE.view().extent(0); ++b) {
    for (std::int64_t h = 0; h < LSE.view().extent(1); ++h) {
      for (std::int64_t i = 0; i < LSE.view().extent(2); ++i) {
        if (std::isfinite(LSE(b, h, i))) stored.set(LSE(b, h, i), b, h, i);
      }
    }
  }
  return status;
}

attest_status pushed_backward(const void* self, const attest_backward_args* args) {
  const attest_kernel& kernel = static_cast<const Pushed*>(self)->kernel;
  return kernel.backward(kernel.self, args);
}

// Moves a value by `distance` and rounds it to float32, towards where it came from.
double moved(double from, double distance) {
  const auto to = static_cast<float>(from + distance);
  if (std::abs(to - from) <= std::abs(distance)) return to;
  return std::nextafter(to, static_cast<float>(from));
}

// One kernel on one problem, and gradients that it forms with an LSE as far off as may be.
class PushedCase {
 public:
  PushedCase(const attest_kernel& kernel, const Case& of)
      : case_(of),
        in_(make_values(of.problem, of.values, of.seed)),
        kernel_(kernel),
        truth_(kernel.description, of.problem, in_, Direction::backward, of.seed) {}
  PushedCase(const PushedCase&) = delete;
  PushedCase& operator=(const PushedCase&) = delete;

  const Truth& truth() const { return truth_; }

  KernelRun run(Push push = Push::none,
                Tensor ErrorBound::*end = &ErrorBound::probabilistic) const {
    Pushed pushed{kernel_, truth_.forward().LSE};
    const Tensor& bound = truth_.forward_bounds().LSE.*end;
    for (std::int64_t e = 0; e < bound.view().size(); ++e) {
      double& LSE = pushed.LSE.doubles()[e];
      const bool down = push == Push::down || (push == Push::alternating && e % 2 == 1);
      const double distance = std::min(bound.doubles()[e], room());
      LSE = push == Push::none ? std::numeric_limits<double>::infinity()
                               : moved(LSE, down ? -distance : distance);
    }
    attest_kernel changed = kernel_;
    changed.self = &pushed;
    changed.forward = pushed_forward;
    changed.backward = pushed_backward;
    return proptest::run(changed, case_.problem, in_, Direction::backward, case_);
  }

 private:
  // Results in f16 may double, any may grow by e^10, before they leave their range.
  double room() const { return case_.problem.dtype == DType::f16 ? std::numbers::ln2 : 10; }

  Case case_;
  InputValues in_;
  attest_kernel kernel_;
  Truth truth_;
};

KernelRun without_lse(KernelRun run) {
  run.LSE = Tensor();
  return run;
}

BackwardBounds proved_alone(BackwardBounds bounds) {
  for (ErrorBound* one : {&bounds.dQ, &bounds.dK, &bounds.dV, &bounds.dSinks, &bounds.dBias}) {
    one->probabilistic = one->deterministic;
  }
  return bounds;
}

struct Found {
  std::map<std::string, Statistics> of;

  void add(const KernelRun& got, const Problem& of_problem, const reference::Backward& exact,
           const BackwardBounds& bounds, const std::string& what, Tight tight) {
    of["dQ"].add(got.dQ, exact.dQ, bounds.dQ, what, tight);
    of["dK"].add(got.dK, exact.dK, bounds.dK, what, tight);
    of["dV"].add(got.dV, exact.dV, bounds.dV, what, tight);
    if (of_problem.sinks != Sinks::none) {
      of["dSinks"].add(got.dSinks, exact.dSinks, bounds.dSinks, what, tight);
    }
    if (of_problem.bias.kind != Bias::Kind::none) {
      of["dBias"].add(got.dBias, exact.dBias, bounds.dBias, what, tight);
    }
  }

  std::int64_t outside() const {
    std::int64_t sum = 0;
    for (const auto& [output, one] : of) sum += one.outside;
    return sum;
  }
};

// Statistics of kernels of a dtype: at the ends of the bounds of LSE, and with their own LSE.
struct Measured {
  Found probable, proved, taken_as_exact;  // at the ends
  Found seen, unseen;                      // their own
  std::int64_t cases = 0, beyond_lse = 0;

  void add(const Emulation& emulation, DType dtype, Values values, std::uint64_t index,
           const Shape& of) {
    const Case c{Problem::parse(of.text + ",dtype=" + std::string(name(dtype))), values,
                 mix(19, index), 1};
    const PushedCase subject(fixtures::emulated_kernel(emulation, dtype), c);
    const Truth& truth = subject.truth();
    if (!truth.in_domain()) return;
    ++cases;
    const reference::Backward& exact = truth.backward();
    const Push push = index % 3 == 0 ? Push::up : index % 3 == 1 ? Push::down : Push::alternating;
    const std::string what = emulation.name + " " + std::string(name(values)) + " " + of.text;
    const KernelRun likely = subject.run(push),
                    extreme = subject.run(push, &ErrorBound::deterministic), own = subject.run();
    const Comparison lse =
        compare(likely.LSE.view(), truth.forward().LSE, truth.forward_bounds().LSE);
    beyond_lse += lse.ratio > 1 ? 1 : 0;
    KernelRun exact_lse = likely;
    exact_lse.LSE = truth.forward().LSE;
    const Tight no = Tight::not_measured,
                tight = of.tight == Tight::measured ? adds_key_after_key(emulation) : of.tight;
    probable.add(likely, c.problem, exact, truth.backward_bounds(without_lse(likely)), what, no);
    proved.add(extreme, c.problem, exact, proved_alone(truth.backward_bounds(without_lse(extreme))),
               what, no);
    taken_as_exact.add(likely, c.problem, exact, truth.backward_bounds(exact_lse), what, no);
    seen.add(own, c.problem, exact, truth.backward_bounds(own), what, tight);
    unseen.add(own, c.problem, exact, truth.backward_bounds(without_lse(own)), what, tight);
  }
};

void check_passed(Measured& measured, DType dtype) {
  CHECK(measured.cases > 0);
  CHECK(measured.beyond_lse == 0);
  for (auto* found : {&measured.probable, &measured.proved, &measured.unseen}) {
    for (auto& [output, one] : found->of) {
      INFO(name(dtype) << " " << output << " " << one.worst_case);
      CHECK(one.outside == 0);
      INFO("worst aggregate: " << one.aggregate_case);
      CHECK((found == &measured.proved || one.worst_aggregate <= reference::kAggregateLimit));
    }
  }
}

void print_measured(Measured& measured, DType dtype, const char* output) {
  Statistics &seen = measured.seen.of[output], &unseen = measured.unseen.of[output];
  seen.find_median();
  unseen.find_median();
  std::printf(
      "LSE unseen %-4s %s %4lld cases: pushed %.2f, as exact %.2f, median %.1f, with LSE %.1f\n",
      std::string(name(dtype)).c_str(), output, static_cast<long long>(measured.cases),
      measured.probable.of[output].worst_probable,
      measured.taken_as_exact.of[output].worst_probable, unseen.median, seen.median);
}

using Shapes = const Shape& (*)(std::uint64_t);

// Emulations of a dtype over families and shapes in turn; the first of every `share` outside
// nightly.
Measured measured_over(DType dtype, Shapes shapes, std::size_t share) {
  std::vector<Emulation> emulations = fixtures::legitimate_emulations(dtype);
  for (const auto& more :
       {fixtures::emulations_with_delta_from_p(dtype), fixtures::loosest_emulations(dtype)}) {
    emulations.insert(emulations.end(), more.begin(), more.end());
  }
  Measured measured;
  std::uint64_t index = 0;
  const std::uint64_t rounds = attest::testing::is_nightly() ? 70 : 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t k = 0; k < emulations.size(); ++k) {
      if (!attest::testing::is_turn(k, share)) continue;
      const auto& values = all_values();
      measured.add(emulations[k], dtype, values[(index + round) % values.size()], index,
                   shapes(index));
      ++index;
    }
  }
  return measured;
}

TEST_CASE("kernels whose LSE lies anywhere within its bound pass without showing it",
          "[validation]") {
  std::int64_t refused_as_exact = 0;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Measured measured = measured_over(dtype, shape, 1);
    check_passed(measured, dtype);
    refused_as_exact += measured.taken_as_exact.outside();
    for (const char* output : {"dQ", "dK", "dV"}) print_measured(measured, dtype, output);
  }
  CHECK(refused_as_exact > 0);
}

TEST_CASE("dSinks and dBias pass where LSE lies anywhere within its bound", "[validation]") {
  const std::pair<const char*, Shapes> gradients[] = {{"dSinks", shape_of_sinks},
                                                      {"dBias", shape_of_bias}};
  for (const auto& [output, shapes] : gradients) {
    std::int64_t refused_as_exact = 0;
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      Measured measured = measured_over(dtype, shapes, 4);
      check_passed(measured, dtype);
      refused_as_exact += measured.taken_as_exact.of[output].outside;
      print_measured(measured, dtype, output);
    }
    INFO(output);
    CHECK(refused_as_exact > 0);
  }
}

// Tells whether any gradient of the run is refused.
bool refused(const Truth& truth, const KernelRun& run) {
  const BackwardBounds& bounds = truth.backward_bounds(run);
  const reference::Backward& exact = truth.backward();
  return !passes(run.dQ.view(), exact.dQ, bounds.dQ) ||
         !passes(run.dK.view(), exact.dK, bounds.dK) || !passes(run.dV.view(), exact.dV, bounds.dV);
}

// Gradients of a wrong LSE are right for what is stored, and refused where that is not seen.
TEST_CASE("defects in gradients are refused without their LSE", "[validation]") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    std::string only_with, only_without;
    int with_lse = 0, without = 0;
    const auto judge = [&](const attest_kernel& kernel, const std::string& text) {
      const Case c{Problem::parse(text + ",dtype=" + std::string(name(dtype))), Values::normal, 3,
                   1};
      const PushedCase subject(kernel, c);
      const KernelRun run = subject.run();
      if (!run.completed()) return std::pair{false, false};
      return std::pair{refused(subject.truth(), run), refused(subject.truth(), without_lse(run))};
    };
    const std::string features = "hq=4,hkv=2,sq=24,sk=40,d=16,softcap=2,mask=causal_br";
    for (const fixtures::DefectRecord& record : fixtures::defects()) {
      if (fixtures::in_long_problems_alone(record.defect)) continue;
      const attest_kernel& kernel = fixtures::defective_kernel(record.defect);
      const auto [seen, unseen] = judge(kernel, features);
      with_lse += seen ? 1 : 0;
      without += unseen ? 1 : 0;
      if (seen && !unseen) only_with += " " + std::string(record.name);
      if (!seen && unseen) only_without += " " + std::string(record.name);
    }
    std::printf("gradients refused, %s: %d with LSE, %d without; only with:%s; only without:%s\n",
                std::string(name(dtype)).c_str(), with_lse, without, only_with.c_str(),
                only_without.c_str());
    const auto [seen, unseen] = judge(fixtures::defective_kernel(Defect::none), features);
    CHECK_FALSE(seen);
    CHECK_FALSE(unseen);
    CHECK(without > with_lse);
    CHECK(only_with.empty());
    CHECK(only_without ==
          " padded_keys_counted row_sum_off lse_shifted lse_without_maximum lse_base_two");
  }
}

}  // namespace
}  // namespace attest::proptest
