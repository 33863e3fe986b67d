// Power of the backward bounds: they refuse emulated backward passes that go wrong after a right
// forward pass, over families, lengths and dtypes (docs/theory/error-bounds/measured.md, "Power").
// ATTEST_NIGHTLY adds the longest sequences.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "proptest/testing/power_contract.hpp"
#include "proptest/testing/projection.hpp"

namespace attest::proptest {
namespace {

using fixtures::Emulation;

struct Family {
  Values values;
  const char* mask;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {Values::normal, "none"},  {Values::x10, "none"},         {Values::all_positive, "none"},
      {Values::uniform, "none"}, {Values::normal, "causal_br"}, {Values::rising_maximum, "none"},
      {Values::halves, "none"},  {Values::indicator, "none"}};
  return all;
}

std::vector<std::int64_t> lengths() {
  if (attest::testing::is_nightly()) return {16, 128, 768};
  return {16, 128};
}

// Change that the wrong backward pass makes to the stored results.
enum class Stored : std::uint8_t { kept, lse_shifted, zero_output };

// A right forward pass, and a backward pass of another kernel, on another problem, or with other
// stored results.
struct WrongBackward {
  attest_kernel right, wrong;
  Problem solved;
  Stored stored = Stored::kept;
};

attest_status right_forward(const void* self, const attest_forward_args* args) {
  const attest_kernel& right = static_cast<const WrongBackward*>(self)->right;
  return right.forward(right.self, args);
}

attest_status wrong_backward(const void* self, const attest_backward_args* args) {
  constexpr float kShift = 1e-3f;
  const WrongBackward& subject = *static_cast<const WrongBackward*>(self);
  const AbiProblem problem(subject.solved, 1);
  const auto rows = static_cast<std::size_t>(subject.solved.seqlen_q);
  std::vector<float> lse(rows);
  std::memcpy(lse.data(), args->LSE->data, rows * sizeof(float));
  for (float& x : lse) x += kShift;
  std::vector<char> zeros(rows * static_cast<std::size_t>(subject.solved.head_dim_v) *
                          sizeof(float));
  attest_tensor shifted = *args->LSE, zero = *args->O;
  shifted.data = lse.data();
  zero.data = zeros.data();
  attest_backward_args changed = *args;
  changed.problem = problem.get();
  if (subject.stored == Stored::lse_shifted) changed.LSE = &shifted;
  if (subject.stored == Stored::zero_output) changed.O = &zero;
  return subject.wrong.backward(subject.wrong.self, &changed);
}

Problem hiding_key(const Problem& problem, std::int64_t key) {
  Problem changed = problem;
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = problem.seqlen_q;
  mask->columns = problem.seqlen_k;
  mask->spelling = "hidden";
  mask->visible.assign(static_cast<std::size_t>(mask->rows * mask->columns), 1);
  for (std::int64_t i = 0; i < mask->rows; ++i) {
    mask->visible[static_cast<std::size_t>(i * mask->columns + key)] = 0;
  }
  changed.mask.boolean = mask;
  return changed;
}

// One problem with its truth under the contract, and the kernel that keeps it.
class PowerCase {
 public:
  PowerCase(DType dtype, const Family& family, std::int64_t keys, std::uint64_t seed)
      : problem_(Problem::parse("sq=" + std::to_string(keys) + ",d=64,mask=" + family.mask +
                                ",dtype=" + std::string(name(dtype)))),
        values_(make_values(problem_, family.values, seed)),
        contract_(contract_for(dtype, keys)),
        kernel_(without_dlse(fixtures::emulated_kernel(contract_, dtype))),
        truth_(kernel_.description, problem_, values_, Direction::backward, seed) {}
  PowerCase(const PowerCase&) = delete;
  PowerCase& operator=(const PowerCase&) = delete;

  const Problem& problem() const { return problem_; }
  const Emulation& contract() const { return contract_; }
  const Truth& truth() const { return truth_; }

  KernelRun run(const Emulation& wrong, const Problem& solved, Stored stored = Stored::kept) const {
    WrongBackward subject{kernel_, fixtures::emulated_kernel(wrong, problem_.dtype), solved,
                          stored};
    attest_kernel mixed = kernel_;
    mixed.self = &subject;
    mixed.forward = right_forward;
    mixed.backward = wrong_backward;
    return proptest::run(mixed, problem_, values_, Direction::backward,
                         Case{problem_, Values::normal, 0, 1});
  }
  KernelRun run() const { return run(contract_, problem_); }

 private:
  static attest_kernel without_dlse(attest_kernel kernel) {
    kernel.description.features &= ~static_cast<std::uint32_t>(ATTEST_DLSE);
    return kernel;
  }

  Problem problem_;
  InputValues values_;
  Emulation contract_;
  attest_kernel kernel_;
  Truth truth_;
};

KernelRun valid(const PowerCase& c) { return c.run(); }

KernelRun last_key_dropped(const PowerCase& c) {
  return c.run(c.contract(), hiding_key(c.problem(), c.problem().seqlen_k - 1));
}

KernelRun middle_key_dropped(const PowerCase& c) {
  return c.run(c.contract(), hiding_key(c.problem(), c.problem().seqlen_k / 2));
}

KernelRun scale_one_percent(const PowerCase& c) {
  Problem changed = c.problem();
  changed.softmax_scale = 1.01 * changed.scale();
  return c.run(c.contract(), changed);
}

KernelRun mask_off_by_one(const PowerCase& c) {
  Problem changed = c.problem();
  changed.mask.window_right = 1;
  return c.run(c.contract(), changed);
}

KernelRun weights_cast(const PowerCase& c) {
  Emulation undeclared = c.contract();
  undeclared.p_cast = static_cast<std::uint8_t>(1 + abi(DType::bf16));
  return c.run(undeclared, c.problem());
}

KernelRun bf16_accumulation(const PowerCase& c) {
  Emulation undeclared = c.contract();
  undeclared.summation = fixtures::Summation::bf16_blocks;
  return c.run(undeclared, c.problem());
}

KernelRun dk_without_scale(const PowerCase& c) {
  KernelRun run = c.run();
  for (std::int64_t j = 0; j < c.problem().seqlen_k; ++j) {
    for (std::int64_t l = 0; l < c.problem().head_dim_qk; ++l) {
      run.dK.set(run.dK(0, j, 0, l) / c.problem().scale(), 0, j, 0, l);
    }
  }
  return run;
}

KernelRun delta_omitted(const PowerCase& c) {
  return c.run(c.contract(), c.problem(), Stored::zero_output);
}

KernelRun lse_shifted(const PowerCase& c) {
  return c.run(c.contract(), c.problem(), Stored::lse_shifted);
}

// A defect and the fewest cells in which it must be refused, of 24 with the nightly length: the
// design's power table.
struct Wrong {
  const char* name;
  KernelRun (*make)(const PowerCase&);
  int f32, bf16;
};

const std::vector<Wrong>& wrong_kernels() {
  static const std::vector<Wrong> list{{"valid", valid, 0, 0},
                                       {"last key dropped", last_key_dropped, 24, 24},
                                       {"middle key dropped", middle_key_dropped, 24, 24},
                                       {"scale 1 % off", scale_one_percent, 24, 23},
                                       {"mask off by one", mask_off_by_one, 3, 3},
                                       {"P, dS cast undeclared", weights_cast, 24, 0},
                                       {"bf16 accumulation", bf16_accumulation, 24, 23},
                                       {"dK without scale", dk_without_scale, 24, 24},
                                       {"delta omitted", delta_omitted, 24, 24},
                                       {"LSE shifted", lse_shifted, 24, 0}};
  return list;
}

bool meaningful(const Wrong& wrong, const Family& family, DType dtype) {
  if (wrong.make == mask_off_by_one) return std::string(family.mask) == "causal_br";
  return wrong.make != weights_cast || dtype == DType::f32;
}

// Draws of a cell, which is refused when one of them is: whether a small problem's roundings meet
// in one element is chance (bf16 accumulation over 16 equal weights escapes in five draws of
// eight).
std::vector<std::uint64_t> draws(std::int64_t keys) {
  constexpr std::int64_t kSmall = 128;
  if (keys > kSmall) return {5};
  return {5, 6, 7, 8};
}

// Verdict of the bounds on one defect in one cell.
struct Cell {
  bool proved = false, probable = false, aggregate = false;
  bool unseen = false;  // by the probable bound without LSE
  double ratio = 0, projection = 0;

  void add(const PowerCase& c, const KernelRun& run) {
    const reference::BackwardBounds bounds = c.truth().backward_bounds(run);
    KernelRun without_lse = run;
    without_lse.LSE = Tensor();
    const reference::BackwardBounds wider = c.truth().backward_bounds(without_lse);
    const reference::Backward& exact = c.truth().backward();
    const auto judge = [&](const Tensor& got, const Tensor& truth,
                           const reference::ErrorBound& bound, const reference::ErrorBound& wide) {
      const Comparison comparison = compare(got.view(), truth, bound);
      ratio = std::max(ratio, comparison.ratio);
      proved = proved || comparison.verdict == Verdict::violated;
      probable = probable || comparison.ratio > 1;
      unseen = unseen || compare(got.view(), truth, wide).ratio > 1;
      aggregate = aggregate || comparison.verdict != Verdict::passed;
      projection = std::max(projection, proptest::projection(got, truth, bound.sigma));
    };
    judge(run.dQ, exact.dQ, bounds.dQ, wider.dQ);
    judge(run.dK, exact.dK, bounds.dK, wider.dK);
    judge(run.dV, exact.dV, bounds.dV, wider.dV);
  }
};

struct Count {
  int cells = 0, proved = 0, probable = 0, unseen = 0, refused = 0, reported = 0;
  double projection = 0, ratio = 0;
  std::string escaped;

  void add(const Cell& cell, const std::string& what) {
    ++cells;
    proved += cell.proved ? 1 : 0;
    probable += cell.probable ? 1 : 0;
    unseen += cell.unseen ? 1 : 0;
    refused += cell.aggregate ? 1 : 0;
    reported += cell.projection > kProjectionReported ? 1 : 0;
    projection = std::max(projection, cell.projection);
    ratio = std::max(ratio, cell.ratio);
    if (!cell.probable) escaped += " " + what;
  }
};

std::vector<Count> refusals(DType dtype) {
  std::vector<Count> counts(wrong_kernels().size());
  for (const Family& family : families()) {
    for (const std::int64_t keys : lengths()) {
      std::vector<Cell> cells(counts.size());
      for (const std::uint64_t seed : draws(keys)) {
        const PowerCase c(dtype, family, keys, seed);
#pragma omp parallel for schedule(dynamic)
        for (std::size_t k = 0; k < cells.size(); ++k) {
          const Wrong& wrong = wrong_kernels()[k];
          if (meaningful(wrong, family, dtype)) cells[k].add(c, wrong.make(c));
        }
      }
      for (std::size_t k = 0; k < cells.size(); ++k) {
        if (!meaningful(wrong_kernels()[k], family, dtype)) continue;
        counts[k].add(cells[k], std::string(name(family.values)) + "/" + std::to_string(keys));
      }
    }
  }
  return counts;
}

// Cells that may escape: the design's, all of which are among the shorter lengths.
int escapes(const Wrong& wrong, DType dtype) {
  const int all = wrong.make == mask_off_by_one ? 3 : 24;
  return all - (dtype == DType::f32 ? wrong.f32 : wrong.bf16);
}

TEST_CASE("backward bounds refuse wrong gradients and no right ones", "[validation]") {
  std::printf("%-22s %-5s %5s %4s %4s %6s %7s %8s %10s\n", "backward", "type", "cells", "Bd", "Bp",
              "no LSE", "refused", "reported", "projection");
  for (const DType dtype : {DType::f32, DType::bf16}) {
    if (dtype == DType::bf16 && !attest::testing::is_nightly()) continue;
    const std::vector<Count> counts = refusals(dtype);
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const Wrong& wrong = wrong_kernels()[k];
      const Count& count = counts[k];
      const bool right = wrong.make == valid;
      std::printf("%-22s %-5s %5d %4d %4d %6d %7d %8d %10.3g%s\n", wrong.name,
                  std::string(name(dtype)).c_str(), count.cells, count.proved, count.probable,
                  count.unseen, count.refused, count.reported, count.projection,
                  right ? "" : count.escaped.c_str());
      INFO(wrong.name << " " << name(dtype) << ", escapes:" << count.escaped);
      if (right) {
        CHECK(count.refused == 0);
        CHECK(count.unseen == 0);
        CHECK(count.projection < kProjectionReported);
      } else {
        CHECK(count.cells - count.probable <= escapes(wrong, dtype));
        // An LSE that nobody saw may be that far off.
        if (wrong.make == lse_shifted) continue;
        CHECK(count.cells - count.unseen <= escapes(wrong, dtype));
      }
    }
  }
}

}  // namespace
}  // namespace attest::proptest
