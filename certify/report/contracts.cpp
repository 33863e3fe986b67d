#include "certify/report/contracts.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "certify/report/html/evidence.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"

namespace attest::certify {
namespace {

constexpr std::int32_t kBf16 = 1 + ATTEST_BF16, kF16 = 1 + ATTEST_F16;
constexpr const char* kFlushes = "flushes_subnormals = 1 (FTZ)";
constexpr double kTf32 = 0x1p-11, kBf16Roundoff = 0x1p-8, kF16Roundoff = 0x1p-11;

std::string field_of(const Contract& contract) {
  return contract.words.substr(0, contract.words.find(' '));
}

// How much of its bounds the worst error takes: the more, the tighter they are.
double worst_ratio(const proptest::Law& law, const attest_kernel& kernel, const proptest::Case& c) {
  double worst = 0;
  for (const proptest::Comparison& one : worker::check(law, kernel, c).comparisons) {
    worst = std::max(worst, one.ratio);
  }
  return worst;
}

// Tells whether results of forward are right and gradients are not.
bool gradients_alone(const proptest::Law& law, const attest_kernel& kernel,
                     const proptest::Case& c) {
  bool some = false;
  for (const proptest::Comparison& one : worker::check(law, kernel, c).comparisons) {
    if (one.verdict == Verdict::passed) continue;
    if (!one.output.starts_with('d')) return false;
    some = true;
  }
  return some;
}

// Tells whether the contract's field shows in gradients, and in forward little or not at all.
bool of_gradients(const Contract& contract) {
  constexpr std::array kFields{"delta_from_p",   "dp_cast",         "scaled_q_roundoff",
                               "gqa_partial",    "gqa_accumulator", "dq_accumulator",
                               "dkv_accumulator"};
  return std::find(kFields.begin(), kFields.end(), field_of(contract)) != kFields.end();
}

bool holds(const proptest::Law& law, const attest_kernel& kernel, const proptest::Case& c) {
  try {
    return worker::check(law, kernel, c).verdict == Verdict::passed;
  } catch (const InvalidProblem&) {  // no contract: two of its fields contradict each other
    return false;
  }
}

}  // namespace

const std::vector<Contract>& known_contracts() {
  using N = attest_numerics;
  static const std::vector<Contract> contracts{
      {"summation_depth = 0 (not declared)", [](N& n) { n.summation_depth = 0; }},
      {"delta_from_p = 1", [](N& n) { n.delta_from_p = 1; }},
      {"dp_cast = f16", [](N& n) { n.dp_cast = kF16; }},
      {"dp_cast = f16, delta_from_p = 1",
       [](N& n) {
         n.dp_cast = kF16;
         n.delta_from_p = 1;
       }},
      {"dp_cast = bf16", [](N& n) { n.dp_cast = kBf16; }},
      {"dp_cast = bf16, delta_from_p = 1",
       [](N& n) {
         n.dp_cast = kBf16;
         n.delta_from_p = 1;
       }},
      {"score_cast = f16", [](N& n) { n.score_cast = kF16; }},
      {"score_cast = f16, p_cast = f16", [](N& n) { n.score_cast = n.p_cast = kF16; }},
      {"score_cast = bf16", [](N& n) { n.score_cast = kBf16; }},
      {"score_cast = bf16, p_cast = bf16", [](N& n) { n.score_cast = n.p_cast = kBf16; }},
      {"flushes_p = 1 (subnormal P becomes zero: FTZ)", [](N& n) { n.flushes_p = 1; }},
      {kFlushes, [](N& n) { n.flushes_subnormals = 1; }},
      {"exp_zero_not_one = 1", [](N& n) { n.exp_zero_not_one = 1; }},
      {"exp_ulps = 8", [](N& n) { n.exp_ulps = 8; }},
      {"exp_ulps = 64", [](N& n) { n.exp_ulps = 64; }},
      {"exp_ulps = 1024", [](N& n) { n.exp_ulps = 1024; }},
      {"lse_splits = 1", [](N& n) { n.lse_splits = 1; }},
      {"lse_splits = 8", [](N& n) { n.lse_splits = 8; }},
      {"input_roundoff = 2^-11 (tf32)", [](N& n) { n.input_roundoff = kTf32; }},
      {"operand_roundoff = 2^-11 (tf32)", [](N& n) { n.operand_roundoff = kTf32; }},
      {"scaled_q_roundoff = 2^-11 (f16, tf32)", [](N& n) { n.scaled_q_roundoff = kF16Roundoff; }},
      {"scaled_q_roundoff = 2^-8 (bf16)", [](N& n) { n.scaled_q_roundoff = kBf16Roundoff; }},
      {"p_cast = f16", [](N& n) { n.p_cast = kF16; }},
      {"p_cast = bf16", [](N& n) { n.p_cast = kBf16; }},
      {"sum_after_cast = 1", [](N& n) { n.sum_after_cast = 1; }},
      {"p_normalized = 1", [](N& n) { n.p_normalized = 1; }},
      {"gqa_partial = f16", [](N& n) { n.gqa_partial = kF16; }},
      {"gqa_partial = bf16", [](N& n) { n.gqa_partial = kBf16; }},
      {"gqa_accumulator = f16", [](N& n) { n.gqa_accumulator = kF16; }},
      {"gqa_accumulator = bf16", [](N& n) { n.gqa_accumulator = kBf16; }},
      {"dq_accumulator = f16", [](N& n) { n.dq_accumulator = kF16; }},
      {"dq_accumulator = bf16", [](N& n) { n.dq_accumulator = kBf16; }},
      {"dkv_accumulator = f16", [](N& n) { n.dkv_accumulator = kF16; }},
      {"dkv_accumulator = bf16", [](N& n) { n.dkv_accumulator = kBf16; }},
      {"accumulation = truncating", [](N& n) { n.accumulation = ATTEST_TRUNCATING; }},
      {"accumulator = f16", [](N& n) { n.accumulator = kF16; }},
      {"accumulator = bf16", [](N& n) { n.accumulator = kBf16; }}};
  return contracts;
}

std::vector<std::string> passing_contracts(const proptest::Law& law, const attest_kernel& kernel,
                                           const std::vector<proptest::Case>& cases) {
  const auto holds_everywhere = [&](const attest_kernel& declaring) {
    return std::all_of(cases.begin(), cases.end(), [&](proptest::Case c) {
      const std::uint64_t seed = c.seed;
      for (const std::uint64_t other : {seed, mix(seed, 1), mix(seed, 2)}) {
        c.seed = other;
        if (!holds(law, declaring, c)) return false;
      }
      return true;
    });
  };
  std::vector<std::string> words;
  std::string narrowest;  // the field of the last that passes
  for (const Contract& contract : known_contracts()) {
    if (field_of(contract) == narrowest) continue;
    attest_kernel declaring = kernel;
    contract.declare(declaring.description.numerics);
    if (!holds_everywhere(declaring)) continue;
    words.push_back(contract.words);
    narrowest = field_of(contract);
  }
  return words;
}

std::vector<std::string> hints_of(const proptest::Law& law, const attest_kernel& kernel,
                                  const proptest::Case& found, const proptest::Case& shrunk) {
  std::vector<std::string> hints;
  // Any contract would seem to be the remedy of a failure by chance.
  if (worker::check(law, kernel, shrunk).verdict != Verdict::violated) return hints;
  std::vector<proptest::Case> cases{shrunk};
  if (affordable(found.problem)) cases.push_back(found);
  // One alone: a wide contract hides a mistake as well. Most kernels cast P to the type of their
  // tensors, or scores; where subnormals may be flushed, nothing else is allowed; else the one
  // whose bounds the errors fill most, of those that gradients alone show where forward is right.
  const std::vector<std::string> passing = passing_contracts(law, kernel, cases);
  const auto passes = [&](const std::string& words) {
    return std::find(passing.begin(), passing.end(), words) != passing.end();
  };
  if (!passes(kFlushes) && flushes_results(kernel, shrunk)) {
    hints.push_back(
        "every element refused is 0 where the exact result is subnormal: results are flushed to "
        "zero (FTZ), " +
        std::string(shrunk.problem.dtype == DType::f16
                        ? "which no contract allows in f16"
                        : "as numerics.flushes_subnormals = 1 declares"));
  }
  const std::string usual = "p_cast = " + std::string(name(shrunk.problem.dtype));
  const std::string scores = "score_cast = " + std::string(name(shrunk.problem.dtype));
  const bool backward = gradients_alone(law, kernel, shrunk);
  const Contract* likely = nullptr;
  double most = -1;
  for (const Contract& contract : known_contracts()) {
    if (!passes(contract.words)) continue;
    attest_kernel declaring = kernel;
    contract.declare(declaring.description.numerics);
    const double ratio = contract.words == usual ? std::numeric_limits<double>::infinity()
                         : contract.words == kFlushes || (contract.words == scores && !backward)
                             ? std::numeric_limits<double>::max()
                         : backward && of_gradients(contract)
                             ? 1 + worst_ratio(law, declaring, shrunk)
                             : worst_ratio(law, declaring, shrunk);
    if (ratio <= most) continue;
    most = ratio;
    likely = &contract;
  }
  if (likely != nullptr) {
    // Errors of a rounded Q look as those of rounded scores do.
    const auto of_q = std::find_if(passing.begin(), passing.end(), [](const std::string& words) {
      return words.starts_with("scaled_q_roundoff");
    });
    const bool either = likely->words == scores && of_q != passing.end();
    hints.push_back("would pass with numerics." + likely->words + (either ? ", or " + *of_q : "") +
                    "; declare it only where the kernel does so");
  }
  return hints;
}

}  // namespace attest::certify
