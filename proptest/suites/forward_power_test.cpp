// Power of the forward bounds: they refuse wrong kernels over value families and sequence lengths
// (docs/theory/error-bounds/measured.md, "Power"). ATTEST_NIGHTLY adds the longest sequences.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "proptest/testing/emulated_case.hpp"
#include "proptest/testing/power_contract.hpp"
#include "proptest/testing/projection.hpp"
#include "reference/bounds/steps/roundoff.hpp"

namespace attest::proptest {
namespace {

using fixtures::Emulation;

// A family of inputs: values and a mask.
struct Family {
  Values values;
  const char* mask;
};

const std::vector<Family>& families() {
  static const std::vector<Family> list{
      {Values::normal, "none"},  {Values::x10, "none"},         {Values::all_positive, "none"},
      {Values::uniform, "none"}, {Values::normal, "causal_br"}, {Values::rising_maximum, "none"},
      {Values::halves, "none"},  {Values::indicator, "none"},   {Values::positive_v, "none"}};
  return list;
}

std::vector<std::int64_t> lengths() {
  if (attest::testing::is_nightly()) return {16, 256, 4096};
  return {16, 256};
}

// Results of a wrong kernel; some defects do not reach LSE.
struct Output {
  KernelRun run;
  bool lse_counts = true;
};

Problem hiding_key(const Problem& problem, std::int64_t hidden) {
  Problem changed = problem;
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = problem.seqlen_q;
  mask->columns = problem.seqlen_k;
  mask->spelling = "defect";
  for (std::int64_t i = 0; i < mask->rows; ++i) {
    for (std::int64_t j = 0; j < mask->columns; ++j) mask->visible.push_back(j == hidden ? 0 : 1);
  }
  changed.mask.boolean = mask;
  return changed;
}

Output zeros(const EmulatedCase& c) {
  Output output{c.run(), false};
  output.run.O = Tensor("O", c.problem().dtype, c.problem().o_axes());
  return output;
}

Output mean_of_values(const EmulatedCase& c) {
  Output output = zeros(c);
  const Problem& p = c.problem();
  for (std::int64_t column = 0; column < p.head_dim_v; ++column) {
    double sum = 0;
    for (std::int64_t j = 0; j < p.seqlen_k; ++j) sum += c.values().V(0, j, 0, column);
    for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
      output.run.O.set(sum / static_cast<double>(p.seqlen_k), 0, i, 0, column);
    }
  }
  return output;
}

Output last_key_dropped(const EmulatedCase& c) {
  return {c.run(c.kernel(), hiding_key(c.problem(), c.problem().seqlen_k - 1))};
}

Output middle_key_dropped(const EmulatedCase& c) {
  return {c.run(c.kernel(), hiding_key(c.problem(), c.problem().seqlen_k / 2))};
}

Output scale_one_percent(const EmulatedCase& c) {
  Problem changed = c.problem();
  changed.softmax_scale = 1.01 * changed.scale();
  return {c.run(c.kernel(), changed)};
}

Output mask_off_by_one(const EmulatedCase& c) {
  Problem changed = c.problem();
  changed.mask.window_right = 1;
  return {c.run(c.kernel(), changed)};
}

Output rescale_missing(const EmulatedCase& c) {
  Emulation broken = contract_for(c.problem().dtype, c.problem().seqlen_k);
  broken.forgets_rescale = 1;
  return {c.run(fixtures::emulated_kernel(broken, c.problem().dtype), c.problem()), false};
}

Output p_cast_undeclared(const EmulatedCase& c) {
  Emulation undeclared = contract_for(c.problem().dtype, c.problem().seqlen_k);
  undeclared.p_cast = static_cast<std::uint8_t>(1 + abi(DType::bf16));
  return {c.run(fixtures::emulated_kernel(undeclared, c.problem().dtype), c.problem())};
}

Output bf16_accumulation(const EmulatedCase& c) {
  Emulation undeclared = contract_for(c.problem().dtype, c.problem().seqlen_k);
  undeclared.summation = fixtures::Summation::bf16_blocks;
  return {c.run(fixtures::emulated_kernel(undeclared, c.problem().dtype), c.problem())};
}

Output lse_shifted(const EmulatedCase& c) {
  constexpr double kShift = 1e-3;
  Output output{c.run()};
  for (std::int64_t i = 0; i < c.problem().seqlen_q; ++i) {
    output.run.LSE.set(output.run.LSE(0, 0, i) + kShift, 0, 0, i);
  }
  return output;
}

// Cells in which a wrong kernel is refused.
struct Refused {
  int f32 = 0, bf16 = 0, f16 = 0;

  int of(DType dtype) const {
    if (dtype == DType::f32) return f32;
    return dtype == DType::bf16 ? bf16 : f16;
  }
};

// A defect and the fewest cells it must be refused in: at two lengths as first measured, and with
// the nightly third one as many as the design's power table has.
struct Wrong {
  const char* name;
  Output (*make)(const EmulatedCase&);
  Refused shorter, all;
};

const std::vector<Wrong>& wrong_kernels() {
  static const std::vector<Wrong> list{
      {"zeros", zeros, {18, 18, 18}, {27, 27, 27}},
      {"mean of V", mean_of_values, {18, 16, 17}, {27, 24, 25}},
      {"last key dropped", last_key_dropped, {18, 18, 18}, {26, 26, 26}},
      {"middle key dropped", middle_key_dropped, {18, 18, 18}, {24, 23, 23}},
      {"scale 1 % off", scale_one_percent, {17, 16, 16}, {25, 24, 24}},
      {"mask off by one", mask_off_by_one, {2, 2, 2}, {3, 3, 3}},
      {"rescale missing", rescale_missing, {18, 16, 17}, {23, 21, 21}},
      {"P cast undeclared", p_cast_undeclared, {18, 0, 16}, {27, 0, 16}},
      {"bf16 accumulation", bf16_accumulation, {18, 16, 18}, {27, 24, 27}},
      {"LSE shifted", lse_shifted, {18, 18, 18}, {27, 27, 27}}};
  return list;
}

bool meaningful(const Wrong& wrong, const Family& family, DType dtype) {
  if (wrong.make == mask_off_by_one) return std::string(family.mask) == "causal_br";
  return wrong.make != p_cast_undeclared || dtype != DType::bf16;
}

int fewest(const Wrong& wrong, DType dtype) {
  return (lengths().size() > 2 ? wrong.all : wrong.shorter).of(dtype);
}

// Tells whether the defect changes nothing that counts: every element is the right kernel's or its
// neighbour.
bool equivalent(const EmulatedCase& c, const KernelRun& right, const KernelRun& wrong) {
  const auto near = [](double a, double b, double exact, double roundoff) {
    return a == b || std::abs(a - b) <= 2 * roundoff * std::abs(exact);
  };
  const double u_out = unit_roundoff(c.problem().dtype), u = unit_roundoff(DType::f32);
  for (std::int64_t i = 0; i < c.problem().seqlen_q; ++i) {
    if (!near(wrong.LSE(0, 0, i), right.LSE(0, 0, i), c.exact().LSE(0, 0, i), u)) return false;
    for (std::int64_t column = 0; column < c.problem().head_dim_v; ++column) {
      if (!near(wrong.O(0, i, 0, column), right.O(0, i, 0, column), c.exact().O(0, i, 0, column),
                u_out)) {
        return false;
      }
    }
  }
  return true;
}

struct Count {
  int cells = 0, proved = 0, by_O = 0, by_LSE = 0, refused = 0, same = 0;

  void add(const EmulatedCase& c, const KernelRun& right, const Output& output) {
    const Comparison O = c.judge_O(output.run), LSE = c.judge_LSE(output.run);
    const bool lse = output.lse_counts && LSE.ratio > 1;
    ++cells;
    proved += O.verdict == Verdict::violated ? 1 : 0;
    by_O += O.ratio > 1 ? 1 : 0;
    by_LSE += lse ? 1 : 0;
    const bool caught = O.ratio > 1 || lse;
    refused += caught ? 1 : 0;
    same += !caught && equivalent(c, right, output.run) ? 1 : 0;
  }
};

InputValues values_for(const std::string& text, Values values) {
  return make_values(Problem::parse(text), values, 5);
}

TEST_CASE("forward bounds refuse wrong kernels and no right one", "[validation]") {
  std::printf("%-20s %-5s %5s %4s %4s %4s %6s %10s\n", "kernel", "type", "cells", "Bd", "Bp", "LSE",
              "either", "equivalent");
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  DYNAMIC_SECTION(name(dtype)) {
    std::vector<Count> counts(wrong_kernels().size());
    double worst_aggregate = 0;
    for (const Family& family : families()) {
      for (const std::int64_t keys : lengths()) {
        const std::string text = "sq=" + std::to_string(std::min<std::int64_t>(keys, 128)) +
                                 ",sk=" + std::to_string(keys) + ",d=64,mask=" + family.mask +
                                 ",dtype=" + std::string(name(dtype));
        const EmulatedCase c(text, values_for(text, family.values), contract_for(dtype, keys));
        const KernelRun right = c.run();
        INFO(name(family.values) << " " << text);
        CHECK(c.judge_O(right).verdict == Verdict::passed);
        CHECK(c.judge_LSE(right).verdict == Verdict::passed);
        worst_aggregate = std::max(worst_aggregate, c.judge_O(right).aggregate);
        for (std::size_t k = 0; k < counts.size(); ++k) {
          const Wrong& wrong = wrong_kernels()[k];
          if (meaningful(wrong, family, dtype)) counts[k].add(c, right, wrong.make(c));
        }
      }
    }
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const Count& count = counts[k];
      std::printf("%-20s %-5s %5d %4d %4d %4d %6d %10d\n", wrong_kernels()[k].name,
                  std::string(name(dtype)).c_str(), count.cells, count.proved, count.by_O,
                  count.by_LSE, count.refused, count.same);
      INFO(wrong_kernels()[k].name << " " << name(dtype));
      CHECK(count.refused + count.same >= fewest(wrong_kernels()[k], dtype));
    }
    std::printf("%-20s %-5s rms(error/sigma) up to %.2f\n", "valid kernel",
                std::string(name(dtype)).c_str(), worst_aggregate);
  }
}

double projection(const EmulatedCase& c, const KernelRun& got) {
  return proptest::projection(got.O, c.exact().O, c.bounds().O.sigma);
}

TEST_CASE("aggregates expose truncation that no element shows", "[validation]") {
  Emulation truncating;
  truncating.name = "emulated/truncating";
  truncating.summation = fixtures::Summation::truncating;
  const attest_kernel undeclared = fixtures::emulated_kernel(truncating, DType::f32);
  for (const Values values : {Values::all_positive, Values::positive_v}) {
    const std::string text = "sq=16,sk=1024,d=64";
    const EmulatedCase c(text, values_for(text, values), contract_for(DType::f32, 1024));
    const KernelRun right = c.run(), wrong = c.run(undeclared, c.problem());
    const Comparison right_O = c.judge_O(right), wrong_O = c.judge_O(wrong);
    std::printf("%s: aggregate and projection of a valid kernel %.2f %.2f, truncating %.2f %.2f\n",
                std::string(name(values)).c_str(), right_O.aggregate, projection(c, right),
                wrong_O.aggregate, projection(c, wrong));
    CHECK(wrong_O.ratio < 1);
    CHECK(wrong_O.aggregate > reference::kAggregateLimit);
    CHECK(wrong_O.verdict == Verdict::improbable);
    CHECK(right_O.verdict == Verdict::passed);
    CHECK(projection(c, right) < kProjectionReported);
  }
}

}  // namespace
}  // namespace attest::proptest
