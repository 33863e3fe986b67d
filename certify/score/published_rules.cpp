#include "certify/score/published_rules.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/dtype/dtype.hpp"
#include "proptest/judge/loss.hpp"
#include "proptest/judge/truth/truth.hpp"

namespace attest::certify {
namespace {

struct Tolerances {
  double relative, absolute;
};

// Calls visit(got, exact) for every element.
template <class Visit>
void for_each_element(const TensorView& got, const TensorView& exact, const Visit& visit) {
  const auto extent = [&](std::size_t axis) {
    return axis < got.rank() ? got.extent(axis) : std::int64_t{1};
  };
  for (std::int64_t b = 0; b < extent(0); ++b) {
    for (std::int64_t s = 0; s < extent(1); ++s) {
      for (std::int64_t h = 0; h < extent(2); ++h) {
        for (std::int64_t c = 0; c < extent(3); ++c) visit(got(b, s, h, c), exact(b, s, h, c));
      }
    }
  }
}

// Tells whether |got - exact| <= absolute + relative |exact| everywhere; NaN is not close.
bool close(const JudgedOutput& output, const Tolerances& allowed) {
  bool all = true;
  for_each_element(output.got.view(), output.exact.view(), [&](double got, double exact) {
    const double limit = allowed.absolute + allowed.relative * std::abs(exact);
    all = all && std::abs(got - exact) <= limit;
  });
  return all;
}

// NaN when an element is.
double worst_error(const TensorView& got, const TensorView& exact) {
  double worst = 0;
  for_each_element(got, exact, [&](double value, double want) {
    const double error = std::abs(value - want);
    if (!(error <= worst) && !std::isnan(worst)) worst = error;
  });
  return worst;
}

bool allclose_hundredth(const JudgedOutput& output) {
  constexpr Tolerances kHundredth{1e-2, 1e-2};
  return close(output, kHundredth);
}

bool flash_attention(const JudgedOutput& output) {
  constexpr double kForward = 2, kGradients = 3;
  const double factor = output.name == "O" ? kForward : kGradients;
  const double plain = worst_error(output.plain.view(), output.exact.view());
  return worst_error(output.got.view(), output.exact.view()) <= factor * plain;
}

bool pytorch(const JudgedOutput& output) {
  static const std::map<DType, Tolerances> allowed{
      {DType::f16, {1e-3, 1e-3}}, {DType::bf16, {1.6e-2, 1e-3}}, {DType::f32, {1.3e-6, 1e-5}}};
  return close(output, allowed.at(output.got.view().dtype()));
}

bool onednn(const JudgedOutput& output) {
  constexpr double kBf16 = 0.0079, kOthers = 0.001466, kMismatches = 0.0006, kWorst = 0.03;
  const TensorView& got = output.got.view();
  const double allowed = got.dtype() == DType::bf16 ? kBf16 : kOthers;
  std::int64_t mismatches = 0;
  bool far = false;
  for_each_element(got, output.exact.view(), [&](double value, double want) {
    const double error = std::abs(value - want) / std::max(1.0, std::abs(want));
    far = far || !(error <= kWorst);
    mismatches += error <= allowed ? 0 : 1;
  });
  return !far && static_cast<double>(mismatches) <= kMismatches * static_cast<double>(got.size());
}

std::vector<JudgedOutput> attention_outputs(const attest_kernel& kernel,
                                            const attest_kernel& plain) {
  constexpr std::int32_t kThreads = 1;
  const Problem problem = Problem::parse("b=2,hq=4,hkv=2,sq=128,d=64,mask=causal_br,dtype=f16");
  const proptest::Case c{problem, proptest::Values::normal, 1, kThreads};
  const proptest::InputValues values = proptest::make_values(problem, c.values, c.seed);
  const bool both = (kernel.description.directions & ATTEST_BACKWARD) != 0;
  const auto direction = both ? Direction::backward : Direction::forward;
  const proptest::KernelRun got = proptest::run(kernel, problem, values, direction, c);
  const proptest::KernelRun other = proptest::run(plain, problem, values, direction, c);
  const proptest::Truth truth(kernel.description, problem, values, direction, c.seed);
  std::vector<JudgedOutput> outputs{{"O", got.O, truth.forward().O, other.O}};
  if (got.dQ.view().rank() == 0) return outputs;  // not claimed, or a fault ended it
  const auto& exact = truth.backward();
  outputs.push_back({"dQ", got.dQ, exact.dQ, other.dQ});
  outputs.push_back({"dK", got.dK, exact.dK, other.dK});
  outputs.push_back({"dV", got.dV, exact.dV, other.dV});
  return outputs;
}

std::vector<JudgedOutput> loss_outputs(const attest_kernel& kernel, const attest_kernel& plain) {
  constexpr std::int32_t kThreads = 1;
  const Problem problem = Problem::parse("sq=64,d=16");
  const proptest::Case c{problem, proptest::Values::normal, 1, kThreads};
  const proptest::LossValues values = proptest::make_loss_values(problem, c.values, c.seed);
  const proptest::LossTruth truth(plain.description, problem, values);
  return {{"dX", proptest::run_loss(kernel, problem, values, c).dX, truth.exact().dX,
           proptest::run_loss(plain, problem, values, c).dX}};
}

}  // namespace

const std::vector<PublishedRule>& published_rules() {
  static const std::vector<PublishedRule> rules{
      {"allclose", "allclose(rtol=1e-2, atol=1e-2)", allclose_hundredth},
      {"flash_attention",
       "Dao-AILab/flash-attention, tests/test_flash_attn.py: at most twice (gradients: three "
       "times) "
       "the worst error of a plain kernel in the same dtype",
       flash_attention},
      {"pytorch",
       "pytorch/pytorch at 6d96beb, test/test_transformers.py, default_rtol and default_atol: 1e-3 "
       "and "
       "1e-3 in f16, 1.3e-6 and 1e-5 in f32",
       pytorch},
      {"onednn",
       "oneapi-src/oneDNN, tests/gtests/internals/test_sdpa.cpp: 0.001466, relative above 1, in "
       "all "
       "but 0.06 % of the elements, 0.03 in none",
       onednn}};
  return rules;
}

std::vector<std::string> accepting_rules(const attest_kernel& kernel, const attest_kernel& plain) {
  const bool loss = (kernel.description.directions & ATTEST_LOSS_GRADIENT) != 0;
  const std::vector<JudgedOutput> outputs =
      loss ? loss_outputs(kernel, plain) : attention_outputs(kernel, plain);
  std::vector<std::string> names;
  for (const PublishedRule& rule : published_rules()) {
    if (std::all_of(outputs.begin(), outputs.end(), rule.accepts)) names.emplace_back(rule.name);
  }
  return names;
}

}  // namespace attest::certify
