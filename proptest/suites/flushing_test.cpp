// Kernels that flush subnormals (docs/theory/error-bounds/subnormals.md): with the
// declaration they pass, without it the same results are refused, and so are those of a kernel that
// flushes what is larger.
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/testing/validation.hpp"
#include "proptest/values/values.hpp"
#include "reference/bounds/steps/roundoff.hpp"

namespace attest::proptest {
namespace {

using fixtures::Emulation;

constexpr std::uint64_t kSeed = 2;

Emulation flushing() {
  Emulation e;
  e.name = "emulated/flushing";
  e.flushes_subnormals = 1;
  return e;
}

// A run of an emulation, judged with the declaration and without it.
struct Judged {
  std::vector<Comparison> declared, undeclared;

  Judged(const Emulation& e, const Problem& problem, const InputValues& in) {
    const attest_kernel kernel = fixtures::emulated_kernel(e, problem.dtype);
    const KernelRun got =
        run(kernel, problem, in, Direction::backward, Case{problem, Values::normal, kSeed, 1});
    REQUIRE(got.completed());
    const auto judge = [&](std::int32_t flushes) {
      attest_description description = kernel.description;
      description.numerics.flushes_subnormals = flushes;
      return Truth(description, problem, in, Direction::backward, kSeed).judge(got);
    };
    declared = judge(1);
    undeclared = judge(0);
  }
};

// Multiplies a tensor so that some or all of its values are subnormal, or meet such as large ones.
void scale_by(double factor, DType dtype, Tensor& tensor) {
  double* values = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) {
    values[e] = round_to(dtype, factor * values[e]);
  }
}

struct Scaled {
  const char* name;
  double Q = 1, K = 1, V = 1, dO = 1;
};

TEST_CASE("operands and results that are flushed must be declared", "[validation]") {
  constexpr double kTiny = 0x1p-126, kLarge = 0x1p110;
  const std::vector<Scaled> all{{.name = "Q meets a large K", .Q = kTiny, .K = 0x1p124},
                                {.name = "K meets a large Q", .Q = 0x1p124, .K = kTiny},
                                {.name = "Q times a small scale", .Q = 0x1p-118, .K = 0x1p122},
                                {.name = "V", .V = kTiny},
                                {.name = "V meets a large dO", .V = kTiny, .dO = kLarge},
                                {.name = "dO", .dO = kTiny},
                                {.name = "dO meets a large V", .V = kLarge, .dO = kTiny}};
  const auto change = [](const auto& how) {
    Emulation e = flushing();
    how(e);
    return e;
  };
  const std::vector<Emulation> emulations{flushing(), change([](Emulation& e) {
                                            e.scale = fixtures::ScalePlace::folded_into_q;
                                            e.summation = fixtures::Summation::lanes;
                                            e.splits = 3;
                                            e.block_k = 4;
                                          }),
                                          change([](Emulation& e) {
                                            e.delta_from_p = 1;
                                            e.dp_from_delta = 1;
                                            e.exponential = fixtures::ExpForm::natural;
                                          })};
  std::uint64_t seed = 0;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const char* text :
         {"hq=2,hkv=1,sq=6,sk=9,d=8", "sq=3,sk=2,d=4", "sq=9,sk=12,d=4,softcap=3",
          "hq=2,sq=5,sk=7,d=8,alibi=standard,scale=0.002"}) {
      for (const Scaled& by : all) {
        bool refused = false;
        for (const Emulation& e : emulations) {
          Problem problem = Problem::parse(text);
          problem.dtype = dtype;
          InputValues in = make_values(problem, Values::normal, ++seed);
          scale_by(by.Q, dtype, in.Q);
          scale_by(by.K, dtype, in.K);
          scale_by(by.V, dtype, in.V);
          scale_by(by.dO, dtype, in.dO);
          const Judged judged(e, problem, in);
          INFO(text << " " << name(dtype) << " " << by.name << " " << seed);
          for (const Comparison& one : judged.declared) {
            INFO(one.output);
            CHECK(one.ratio <= 1);
          }
          CHECK(gravest(judged.declared).verdict == Verdict::passed);
          refused = refused || gravest(judged.undeclared).verdict != Verdict::passed;
        }
        INFO(text << " " << name(dtype) << " " << by.name);
        CHECK(refused);
      }
    }
  }
}

TEST_CASE("kernels that flush subnormals lie within both bounds", "[validation]") {
  std::vector<Cell> cells;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    if (dtype != DType::f32 && !attest::testing::is_nightly()) continue;
    for (const Values values : all_values()) {
      cells.push_back({dtype, values, fixtures::flushing_emulations(dtype), {}, 0, 0, ""});
    }
  }
  measure_all(cells, "flushed subnormals");
  for (const Cell& cell : cells) {
    CHECK(cell.incomplete.empty());
    CHECK(cell.statistics.size() == 5);
    for (const auto& [output, found] : cell.statistics) {
      INFO(name(cell.values) << " " << name(cell.dtype) << " " << output << " "
                             << found.worst_case);
      CHECK(found.outside == 0);
      INFO("worst aggregate: " << found.aggregate_case);
      CHECK(found.worst_aggregate <= reference::kAggregateLimit);
    }
  }
}

TEST_CASE("what is flushed above the smallest normal number is refused", "[validation]") {
  Emulation e = flushing();
  for (const float below : {0.0f, 0x1p-120f}) {
    e.flushes_below = below;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const attest_kernel kernel = fixtures::emulated_kernel(e, dtype);
      for (const char* law : {"reference_forward", "reference_backward"}) {
        Case c{Problem::parse("b=2,sq=20,sk=20,d=8,mask=causal_tl"), Values::denormals, kSeed, 1};
        c.problem.dtype = dtype;
        INFO(law << " " << name(dtype) << " " << below);
        CHECK(find_law(law).check(kernel, c).verdict ==
              (below > 0 ? Verdict::violated : Verdict::passed));
      }
    }
  }
}

TEST_CASE("the declaration costs nothing where nothing is small", "[validation]") {
  Emulation e = flushing();
  const Problem problem = Problem::parse("hq=2,hkv=1,sq=20,sk=30,d=16");
  const Judged judged(e, problem, make_values(problem, Values::normal, kSeed));
  for (std::size_t k = 0; k < judged.declared.size(); ++k) {
    INFO(judged.declared[k].output);
    const double with = judged.declared[k].ratio, without = judged.undeclared[k].ratio;
    CHECK(with > 0);
    CHECK(with <= without);
    CHECK(with >= without * (1 - unit_roundoff(DType::f32)));
  }
}

}  // namespace
}  // namespace attest::proptest
