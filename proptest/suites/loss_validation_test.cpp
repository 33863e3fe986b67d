// The loss gradient's bounds under every contract they accept, against kernels that keep it.
// ATTEST_NIGHTLY takes 10^6 elements a contract and output, otherwise 10^4.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/emulated/float_arithmetic.hpp"
#include "proptest/judge/loss.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/testing/loss_kernel.hpp"

namespace attest::proptest {
namespace {

using fixtures::Summation;
using reference::LossArithmetic;

float to_bf16(float x) { return float_from_bf16(bf16_from_float(x)); }

// To nearest with 11 bits.
float to_tf32(float x) {
  const float shifted = x * 8193.0f;
  return shifted - (shifted - x);
}

// Moved by up to `ulps`, most where the bits say so; `one` stays when `keeps_one`.
enum class One : std::uint8_t { kept, moved };

float noisy(float x, double ulps, One one) {
  if (!(x > 0) || (x >= 1 && one == One::kept)) return x;
  const std::uint64_t hash = mix(static_cast<std::uint64_t>(std::abs(x) * 0x1p40f), 5) & 0xffffu;
  const double share = static_cast<double>(hash) / 65535.0 * 2 - 1;
  const auto y = static_cast<double>(x);
  return static_cast<float>(y + share * ulps * std::ldexp(1.0, std::ilogb(y) - 23));
}

// A contract and arithmetic that keeps it.
struct Contract {
  std::string name;
  DType dtype = DType::f32;
  attest_numerics numerics{};
  LossArithmetic arithmetic;
};

template <typename Change>
Contract contract(const char* name, DType dtype, const Change& change) {
  Contract made;
  made.name = name;
  made.dtype = dtype;
  made.numerics.struct_size = sizeof(attest_numerics);
  change(made.numerics, made.arithmetic);
  return made;
}

void truncating(attest_numerics& numerics, LossArithmetic& arithmetic) {
  numerics.accumulation = ATTEST_TRUNCATING;
  arithmetic.products = [](auto a, auto b, float init) {
    return fixtures::sum_products(Summation::truncating, a, b, init);
  };
  arithmetic.rescaled = [](float sum, float factor) {
    return fixtures::truncated(static_cast<double>(sum) * static_cast<double>(factor));
  };
}

void matrix_unit(attest_numerics& numerics, LossArithmetic& arithmetic) {
  truncating(numerics, arithmetic);
  numerics.accumulation = ATTEST_FUSED_BLOCKS;
  numerics.fused_block = 16;
  numerics.fused_fraction_bits = 24;
  arithmetic.products = [](auto a, auto b, float init) {
    return fixtures::sum_products(Summation::mma, a, b, init);
  };
}

void rounded_operands(attest_numerics& numerics, LossArithmetic& arithmetic) {
  numerics.input_roundoff = 0x1p-11;
  arithmetic.operand = to_tf32;
}

void noisy_exp(attest_numerics& numerics, LossArithmetic& arithmetic) {
  numerics.exp_ulps = 41;
  arithmetic.exponential = [](float x) { return noisy(x, 40, One::kept); };
}

void leaky_exp(attest_numerics& numerics, LossArithmetic& arithmetic) {
  numerics.exp_ulps = 5;
  numerics.exp_zero_not_one = 1;
  arithmetic.exponential = [](float x) { return noisy(x, 4, One::moved); };
}

void flushing_exp(attest_numerics&, LossArithmetic& arithmetic) {
  arithmetic.exponential = [](float x) { return std::abs(x) < 0x1p-126f ? 0.0f : x; };
}

void bf16_accumulator(attest_numerics& numerics, LossArithmetic& arithmetic) {
  numerics.accumulator = 1 + abi(DType::bf16);
  arithmetic.rounded = to_bf16;
}

void plain(attest_numerics&, LossArithmetic&) {}

std::vector<Contract> contracts() {
  const auto both = [](auto first, auto second) {
    return [=](attest_numerics& numerics, LossArithmetic& arithmetic) {
      first(numerics, arithmetic);
      second(numerics, arithmetic);
    };
  };
  return {contract("plain", DType::f32, plain),
          contract("plain", DType::bf16, plain),
          contract("plain", DType::f16, plain),
          contract("truncating", DType::f32, truncating),
          contract("truncating", DType::f16, truncating),
          contract("matrix unit", DType::f32, matrix_unit),
          contract("matrix unit", DType::bf16, matrix_unit),
          contract("tf32 operands", DType::f32, rounded_operands),
          contract("tf32 matrix unit", DType::f32, both(rounded_operands, matrix_unit)),
          contract("exp 40 ulp off", DType::f32, noisy_exp),
          contract("exp(0) not 1", DType::f32, leaky_exp),
          contract("exp flushes", DType::f32, flushing_exp),
          contract("bf16 accumulator", DType::bf16, bf16_accumulator)};
}

attest_description described(const attest_numerics& numerics) {
  attest_description description{};
  description.struct_size = sizeof description;
  description.numerics = numerics;
  return description;
}

Tensor stored(const char* name, DType dtype, const reference::Floats& values) {
  Tensor tensor(name, dtype, {{"rows", values.rows(), 0}, {"columns", values.cols(), 0}});
  for (Eigen::Index i = 0; i < values.rows(); ++i) {
    for (Eigen::Index j = 0; j < values.cols(); ++j) {
      tensor.set(static_cast<double>(values(i, j)), i, j);
    }
  }
  return tensor;
}

LossRun run_emulated(const LossArithmetic& arithmetic, unsigned choices, DType dtype,
                     const LossValues& values) {
  const reference::LossKernel kernel(choices, reference::LossDefect::none, 0, arithmetic);
  const auto [dX, dY] = kernel(values.inputs());
  LossRun run;
  run.dX = stored("dX", dtype, dX);
  run.dY = stored("dY", dtype, dY);
  return run;
}

Problem shape(std::uint64_t index, DType dtype) {
  const std::vector<std::pair<int, int>> shapes{{1, 1},   {5, 3},  {16, 16}, {40, 8},
                                                {130, 4}, {9, 24}, {65, 16}};
  const auto [n, d] = shapes[index % shapes.size()];
  return Problem::parse("sq=" + std::to_string(n) + ",d=" + std::to_string(d) +
                        ",dtype=" + std::string(name(dtype)));
}

struct Tally {
  std::int64_t cases = 0, elements = 0, outside = 0;
  std::int64_t unbounded = 0;  // results that say nothing, for lack of a bound
  double worst = 0, aggregate = 0;
  std::string worst_case;

  void add(const std::vector<Comparison>& comparisons, const std::string& what) {
    ++cases;
    if (comparisons.front().verdict != Verdict::vacuous) elements += comparisons.front().elements;
    for (const Comparison& comparison : comparisons) {
      if (comparison.verdict == Verdict::vacuous) {
        ++unbounded;
      } else if (comparison.verdict != Verdict::passed) {
        ++outside;
        worst_case = what + ": " + comparison.reason;
      }
      worst = std::max(worst, comparison.ratio);
      if (comparison.erring < reference::kAggregateElements) continue;
      aggregate = std::max(aggregate, comparison.aggregate);
    }
  }
};

std::int64_t wanted_elements() { return attest::testing::is_nightly() ? 1000000 : 10000; }

Tally measured(const Contract& contract) {
  Tally tally;
  const attest_description description = described(contract.numerics);
  const std::vector<Values>& families = all_values();
  for (std::uint64_t index = 0; tally.elements < wanted_elements(); ++index) {
    // 5 is coprime to the number of choices, 19 families to 7 shapes: all of them meet.
    const auto choices = static_cast<unsigned>(5 * index % reference::all_choices);
    const Values family = families[index % families.size()];
    const Problem problem = shape(index, contract.dtype);
    const LossValues values = make_loss_values(problem, family, 100 + index);
    const LossTruth truth(description, problem, values);
    if (!truth.in_domain()) continue;
    tally.add(truth.judge(run_emulated(contract.arithmetic, choices, contract.dtype, values)),
              std::string(name(family)) + " " + problem.to_string() + " choices " +
                  std::to_string(choices));
  }
  return tally;
}

TEST_CASE("loss gradients that keep their contract lie within its bounds", "[validation]") {
  const std::vector<Contract> all = contracts();
  std::vector<Tally> tallies(all.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t k = 0; k < all.size(); ++k) tallies[k] = measured(all[k]);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Tally& tally = tallies[k];
    std::printf(
        "loss gradient, %-4s %-16s %8lld elements, worst error/Bp %.3f, rms(error/sigma) %.3f, "
        "%lld "
        "results without a bound\n",
        std::string(name(all[k].dtype)).c_str(), all[k].name.c_str(),
        static_cast<long long>(tally.elements), tally.worst, tally.aggregate,
        static_cast<long long>(tally.unbounded));
    INFO(all[k].name << " " << name(all[k].dtype) << ": " << tally.worst_case);
    CHECK(tally.elements >= wanted_elements());
    CHECK(tally.outside == 0);
    if (all[k].name != "bf16 accumulator") CHECK(tally.unbounded == 0);
  }
}

TEST_CASE("loss gradients that break their contract are refused", "[validation]") {
  const Problem problem = Problem::parse("sq=40,d=8");
  const LossValues values = make_loss_values(problem, Values::normal, 3);
  const LossTruth truth(described(contract("plain", DType::f32, plain).numerics), problem, values);
  for (const Contract& broken : {contract("tf32 operands", DType::f32, rounded_operands),
                                 contract("bf16 accumulator", DType::f32, bf16_accumulator)}) {
    INFO(broken.name);
    for (const Comparison& comparison :
         truth.judge(run_emulated(broken.arithmetic, 0, DType::f32, values))) {
      CHECK(comparison.verdict == Verdict::violated);
    }
  }
  CHECK(gravest(truth.judge(run_emulated({}, 0, DType::f32, values))).verdict == Verdict::passed);
}

}  // namespace
}  // namespace attest::proptest
