// Kernels that form delta as the row sum of P o dP: within their bounds where they are right,
// beyond them where they are not (docs/theory/error-bounds/backward.md, "Delta from P").
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/testing/tightness.hpp"
#include "reference/bounds/steps/roundoff.hpp"

namespace attest::proptest {
namespace {

using fixtures::DeltaDefect;
using fixtures::Emulation;

TEST_CASE("kernels with a delta made of P lie within both bounds", "[validation]") {
  std::vector<Cell> cells;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Values values : all_values()) {
      cells.push_back({dtype, values, fixtures::emulations_with_delta_from_p(dtype), {}, 0, 0, ""});
    }
  }
  measure_all(cells, "delta of P");
  std::int64_t cases = 0, with_lse_gradient = 0;
  for (const Cell& cell : cells) {
    CHECK(cell.incomplete.empty());
    cases += cell.cases;
    with_lse_gradient += cell.with_lse_gradient;
    for (const char* output : {"dQ", "dK", "dV"}) {
      const Statistics& found = cell.statistics.at(output);
      INFO(name(cell.values) << " " << name(cell.dtype) << " " << output << " "
                             << found.worst_case);
      CHECK(found.elements >= wanted_elements());
      CHECK(found.outside == 0);
      INFO("worst aggregate: " << found.aggregate_case);
      CHECK(found.worst_aggregate <= reference::kAggregateLimit);
    }
  }
  CHECK(with_lse_gradient > cases / 4);
  if (attest::testing::is_nightly()) return;
  std::size_t compared = 0;
  for (const Cell& cell : cells) {
    const Looseness found = looseness(cell, first_medians_of_delta(), 0);
    CHECK(found.looser == std::vector<std::string>{});
    compared += found.compared;
  }
  CHECK(compared > cells.size());  // of two medians each, where most results are not exact
}

// A right kernel with a delta made of P, its problem, and its truth under that contract.
class PairCase {
 public:
  PairCase(const std::string& text, Values values, std::uint64_t seed)
      : problem_(Problem::parse(text)), values_(make_values(problem_, values, seed)), seed_(seed) {
    contract_.name = "emulated/pairs";
    contract_.delta_from_p = 1;
    contract_.block_k = 16;
    if (problem_.dtype != DType::f32) {
      contract_.p_cast = static_cast<std::uint8_t>(1 + abi(problem_.dtype));
    }
  }

  const Emulation& contract() const { return contract_; }

  void set_V(double value) {
    double* V = values_.V.doubles();
    for (std::int64_t e = 0; e < values_.V.view().size(); ++e) V[e] = value;
  }

  /// The verdict on a kernel, and its worst error over bound, under the contract or another.
  struct Judged {
    Verdict verdict = Verdict::unsupported;
    double ratio = 0;
  };
  Judged judge(const Emulation& emulation) const { return judge(emulation, contract_); }
  Judged judge(const Emulation& emulation, const Emulation& declared) const {
    const attest_kernel kernel = fixtures::emulated_kernel(emulation, problem_.dtype),
                        claims = fixtures::emulated_kernel(declared, problem_.dtype);
    const Truth truth(claims.description, problem_, values_, Direction::backward, seed_);
    const KernelRun got = run(kernel, problem_, values_, Direction::backward,
                              Case{problem_, Values::normal, seed_, 1});
    REQUIRE(got.completed());
    const std::vector<Comparison> comparisons = truth.judge(got);
    Judged judged{gravest(comparisons).verdict};
    for (const Comparison& comparison : comparisons) {
      judged.ratio = std::max(judged.ratio, comparison.ratio);
    }
    return judged;
  }

 private:
  Problem problem_;
  InputValues values_;
  std::uint64_t seed_;
  Emulation contract_;
};

TEST_CASE("a wrong delta is refused under the contract of a delta made of P", "[validation]") {
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    std::map<DeltaDefect, int> refused;
    int cells = 0;
    for (const Values values : {Values::normal, Values::x4, Values::all_positive, Values::halves,
                                Values::indicator, Values::positive_v}) {
      for (const char* shape : {"sq=16,sk=16,d=64", "sq=128,sk=128,d=64,mask=causal_br"}) {
        ++cells;
        const PairCase c(std::string(shape) + ",dtype=" + dtype, values, 5);
        for (const DeltaDefect defect :
             {DeltaDefect::none, DeltaDefect::omitted, DeltaDefect::last_key_left_out}) {
          Emulation kernel = c.contract();
          kernel.delta_defect = defect;
          refused[defect] += c.judge(kernel).verdict == Verdict::passed ? 0 : 1;
        }
      }
    }
    std::printf("delta of P, %-4s: refused of %d: right %d, omitted %d, last key left out %d\n",
                dtype, cells, refused[DeltaDefect::none], refused[DeltaDefect::omitted],
                refused[DeltaDefect::last_key_left_out]);
    CHECK(refused[DeltaDefect::none] == 0);
    CHECK(refused[DeltaDefect::omitted] == cells);
    CHECK(refused[DeltaDefect::last_key_left_out] == cells);
  }
}

// Weights that err do not sum to one: with V = 1, where dS is 0, delta errs as their sum does; a
// delta made of O errs by roundings only.
TEST_CASE("a delta made of P must be declared", "[validation]") {
  PairCase c("sq=64,sk=64,d=64,dv=8", Values::logits_1e4, 2);
  c.set_V(1);
  const Emulation& undeclared = c.contract();
  Emulation other = undeclared;
  other.delta_from_p = 0;
  const auto declared = c.judge(undeclared, undeclared), held_to_other = c.judge(undeclared, other);
  std::printf("delta of P: error over bound undeclared %.2f, declared %.2f\n", held_to_other.ratio,
              declared.ratio);
  CHECK(declared.verdict == Verdict::passed);
  CHECK(held_to_other.ratio > 1);
}

}  // namespace
}  // namespace attest::proptest
