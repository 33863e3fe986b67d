#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "reference/bounds/steps/roundoff.hpp"

/// Emulated kernels against the bounds under their own contracts, many elements of one value family
/// in one dtype.
namespace attest::proptest {

// Says whether a case counts where looseness is measured. The document's medians are of kernels
// that add key after key; sums in shorter chains, which need not be declared, err less under the
// same bound.
enum class Tight : std::uint8_t { measured, not_measured };

inline Tight adds_key_after_key(const fixtures::Emulation& emulation) {
  const bool shorter = emulation.splits > 1 || emulation.summation_depth > 0;
  return shorter ? Tight::not_measured : Tight::measured;
}

// An error that says something about looseness: above what the float64 reference errs by itself,
// 2^-33 of the float32 bound at most (docs/theory/reference.md), in a result that neither vanishes
// with the weight of its key nor, in f16, underflows.
inline bool counts(double error, double bound, double exact, DType dtype) {
  constexpr double kReferenceError = 0x1p-33, kVanishes = 0x1p-100, kLeastNormalHalf = 0x1p-14;
  const double least = dtype == DType::f16 ? kLeastNormalHalf : kVanishes;
  return error > kReferenceError * bound && std::abs(exact) >= least;
}

// Ratios of one output over many cases.
struct Statistics {
  std::int64_t elements = 0, outside = 0, considered = 0;
  double worst_proved = 0, worst_probable = 0, worst_aggregate = 0, median = 0;
  std::vector<double> looseness;  // probabilistic bound over error
  std::string worst_case, aggregate_case;

  void add(const Tensor& got, const Tensor& exact, const reference::ErrorBound& bound,
           const std::string& what, Tight tight) {
    const Comparison comparison = compare(got.view(), exact, bound);
    if (comparison.erring >= reference::kAggregateElements &&
        comparison.aggregate > worst_aggregate) {
      worst_aggregate = comparison.aggregate;
      aggregate_case = what;
    }
    for_each_element(got.view(), [&](auto a, auto b, auto c, auto d) {
      const double value = got(a, b, c, d), truth = exact(a, b, c, d);
      if (!std::isfinite(value) || !std::isfinite(truth)) {
        outside += value == truth ? 0 : 1;
        return;
      }
      const double error = std::abs(value - truth);
      const double proved = bound.deterministic(a, b, c, d),
                   probable = bound.probabilistic(a, b, c, d);
      ++elements;
      considered += tight == Tight::measured ? 1 : 0;
      if (!(error <= proved) || !(error <= probable)) {
        ++outside;
        worst_case = what;
      }
      if (error == 0) return;
      worst_proved = std::max(worst_proved, error / proved);
      worst_probable = std::max(worst_probable, error / probable);
      if (tight == Tight::measured && counts(error, probable, truth, got.view().dtype())) {
        looseness.push_back(probable / error);
      }
    });
  }

  // True when at least half of the elements have an error that counts: else most results are exact
  // or underflow, and the median would be of the others.
  bool has_typical_error = false;

  // After the last element; frees what led to it.
  void find_median() {
    has_typical_error = 2 * static_cast<std::int64_t>(looseness.size()) >= considered;
    if (looseness.empty()) return;
    const auto middle = looseness.begin() + static_cast<std::ptrdiff_t>(looseness.size() / 2);
    std::nth_element(looseness.begin(), middle, looseness.end());
    median = *middle;
    looseness = {};
  }

 private:
  template <typename Visit>
  static void for_each_element(const TensorView& view, const Visit& visit) {
    const auto extent = [&](std::size_t axis) {
      return axis < view.rank() ? view.extent(axis) : std::int64_t{1};
    };
    for (std::int64_t a = 0; a < extent(0); ++a) {
      for (std::int64_t b = 0; b < extent(1); ++b) {
        for (std::int64_t c = 0; c < extent(2); ++c) {
          for (std::int64_t d = 0; d < extent(3); ++d) visit(a, b, c, d);
        }
      }
    }
  }
};

inline std::int64_t wanted_elements() { return attest::testing::is_nightly() ? 1000000 : 10000; }

// A problem without its dtype, and whether medians are measured on it.
struct Shape {
  std::string text;
  Tight tight = Tight::measured;
};

// Shapes and features in turn; sequence lengths up to where scalar emulation is affordable. Where a
// small softcap bends the scores, few errors come near what the bound allows for its tanh, and the
// document's medians are of scores that are not bent.
inline const Shape& shape(std::uint64_t index) {
  static const std::vector<Shape> shapes{
      {"sq=8,sk=64,d=64"},
      {"sq=16,sk=16,d=16"},
      {"sq=16,sk=130,d=37,mask=causal_br"},
      {"hq=4,hkv=2,sq=9,sk=33,d=64,dv=32"},
      {"sq=2,sk=300,d=64"},
      {"sq=64,sk=64,d=8,mask=causal_br"},
      {"hq=2,hkv=1,sq=12,sk=40,d=32,softcap=20,mask=window_24_0"},
      {"hq=2,sq=10,sk=50,d=32,alibi=standard,mask=causal_br"},
      {"b=2,sq=7,sk=20,d=80,mask=lengths_20_11"},
      {"sq=3,sk=2,d=4"},
      {"sq=128,sk=24,d=16,dv=8"},
      {"sq=6,sk=48,d=128,scale=-0.05"},
      {"hq=4,hkv=2,sq=7,sk=36,d=16,softcap=2,alibi=standard,mask=causal_br", Tight::not_measured},
      {"hq=2,hkv=1,sq=8,sk=44,d=32,softcap=2", Tight::not_measured}};
  return shapes[index % shapes.size()];
}

// Many rows of few, short keys: a row has one LSE, and these cost little more than their rows.
inline const Shape& shape_of_rows(std::uint64_t index) {
  static const std::vector<Shape> shapes{{"sq=512,sk=8,d=4,dv=1"},
                                         {"hq=2,sq=200,sk=210,d=4,dv=1,mask=window_20_0"},
                                         {"hq=4,hkv=2,sq=96,sk=20,d=8,dv=2,softcap=20"},
                                         {"hq=2,sq=160,sk=24,d=8,dv=1,alibi=standard"},
                                         {"b=2,sq=150,sk=37,d=3,dv=1,mask=lengths_37_11"},
                                         {"sq=300,sk=12,d=33,dv=1,scale=-0.05"}};
  return shapes[index % shapes.size()];
}

// Sparsity patterns of every form, with ragged blocks, empty rows and columns, rows of one key and
// the other features.
inline const Shape& shape_of_patterns(std::uint64_t index) {
  static const std::vector<Shape> shapes{
      {"sq=20,sk=50,d=16,mask=block_8x12_40_1", Tight::not_measured},
      {"hq=4,hkv=2,sq=9,sk=33,d=32,dv=16,mask=nm_2_4_3", Tight::not_measured},
      {"sq=24,sk=70,d=37,mask=pairs_20_1", Tight::not_measured},
      {"hq=2,sq=40,sk=40,d=8,mask=butterfly_8x4,alibi=standard", Tight::not_measured},
      {"sq=30,sk=30,d=16,mask=documents_7_12_11,softcap=20", Tight::not_measured},
      {"hq=2,hkv=1,sq=25,sk=31,d=32,mask=global_2_5_1", Tight::not_measured},
      {"sq=17,sk=64,d=64,mask=dilated_inf_0_4", Tight::not_measured},
      {"b=2,sq=12,sk=28,d=16,mask=rows_50_2+lengths_28_9", Tight::not_measured},
      {"sq=16,sk=45,d=24,mask=columns_30_1+causal_br", Tight::not_measured},
      {"hq=2,sq=26,sk=60,d=16,mask=blockband_5x9_1,scale=-0.1", Tight::not_measured},
      {"sq=48,sk=36,d=8,mask=block_1x1_10_4", Tight::not_measured}};
  return shapes[index % shapes.size()];
}

// Sinks below, among and above the scores, and -inf; with rows that see no other key, and every
// feature of the scores. Seeds 3 and 8 draw a sink above all scores of normal inputs, 5 one of
// -inf.
inline const Shape& shape_of_sinks(std::uint64_t index) {
  static const std::vector<Shape> shapes{
      {"hq=2,sq=8,sk=64,d=64,sinks=drawn_1"},
      {"b=2,hq=4,hkv=2,sq=9,sk=33,d=16,dv=8,sinks=drawn_8"},
      {"hq=3,sq=12,sk=7,d=8,mask=causal_br,sinks=drawn_3"},
      {"b=2,hq=2,sq=5,sk=20,d=37,mask=lengths_20_0,sinks=drawn_4"},
      {"hq=2,hkv=1,sq=6,sk=150,d=16,mask=window_20_0,sinks=drawn_5"},
      {"hq=3,sq=40,sk=3,d=4,scale=-0.3,sinks=drawn_4"},
      {"hq=4,hkv=2,sq=7,sk=36,d=16,softcap=2,alibi=standard,mask=causal_br,sinks=drawn_2",
       Tight::not_measured},
      {"hq=2,mask=cu_5x9_3x0_4x6,d=8,sinks=drawn_3"}};
  return shapes[index % shapes.size()];
}

// Biases of each axis and of none, in the tensors' type and in float32, with holes and rows that
// are hidden as a whole, beside every other feature of the scores.
inline const Shape& shape_of_bias(std::uint64_t index) {
  static const std::vector<Shape> shapes{
      {"hq=2,sq=8,sk=64,d=64,bias=hqk_drawn_1"},
      {"b=2,hq=4,hkv=2,sq=9,sk=33,d=16,dv=8,bias=bhqk_f32_drawn_8"},
      {"hq=3,sq=12,sk=7,d=8,mask=causal_br,bias=k_drawn_3"},
      {"b=2,hq=2,sq=5,sk=20,d=37,mask=lengths_20_9,bias=bhk_holes_4"},
      {"hq=2,hkv=1,sq=6,sk=150,d=16,mask=window_20_0,bias=hq_f32_drawn_5"},
      {"hq=3,sq=40,sk=3,d=4,scale=-0.3,bias=qk_holes_4"},
      {"hq=4,hkv=2,sq=7,sk=36,d=16,softcap=2,alibi=standard,mask=causal_br,sinks=drawn_2,"
       "bias=hqk_holes_2",
       Tight::not_measured},
      {"hq=2,mask=cu_5x9_3x0_4x6,d=8,bias=bqk_drawn_3"},
      {"b=2,hq=2,sq=30,sk=20,d=8,bias=1_drawn_2"}};
  return shapes[index % shapes.size()];
}

// Masks of each axis and of none, query lengths and windows on one side of the aligned key: rows of
// heads that see other keys, and rows that see none beside such as see many.
inline const Shape& shape_of_masks(std::uint64_t index) {
  static const std::vector<Shape> shapes{
      {"hq=2,sq=8,sk=64,d=64,head_mask=hqk_60_1"},
      {"b=2,hq=4,hkv=2,sq=9,sk=33,d=16,dv=8,head_mask=bhqk_30_8"},
      {"b=3,hq=2,sq=12,sk=7,d=8,mask=causal_br,query_lengths=drawn_3"},
      {"sq=12,sk=20,d=37,mask=window_9_-2"},
      {"b=2,hq=2,sq=5,sk=20,d=8,mask=lengths_20_9,sinks=drawn_4,head_mask=bk_50_4"},
      {"hq=2,hkv=1,sq=40,sk=12,d=16,mask=window_tl_-1_7"},
      {"b=2,hq=2,sq=30,sk=20,d=8,sinks=drawn_2,query_lengths=17_30"},
      {"hq=2,mask=cu_5x9_3x0_4x6+window_inf_-1,d=8,bias=bqk_drawn_3,query_lengths=4_3_2"}};
  return shapes[index % shapes.size()];
}

// One value family in one dtype.
struct Cell {
  DType dtype;
  Values values;
  std::vector<fixtures::Emulation> emulations;
  std::map<std::string, Statistics> statistics;
  std::int64_t cases = 0, with_lse_gradient = 0;
  std::string incomplete;  // a kernel that did not return

  // LSE has one element a row, and counts with fewer here; measure_rows has as many.
  bool enough() const {
    return std::all_of(statistics.begin(), statistics.end(), [](const auto& entry) {
      const auto& [output, found] = entry;
      return output == "LSE" ||
             (found.elements >= wanted_elements() && found.considered >= wanted_elements());
    });
  }

  void add(const fixtures::Emulation& emulation, std::uint64_t index, const Shape& of) {
    const attest_kernel kernel = fixtures::emulated_kernel(emulation, dtype);
    const std::string text = of.text + ",dtype=" + std::string(name(dtype));
    const Case c{Problem::parse(text), values, mix(17, index), 1};
    const InputValues in = make_values(c.problem, values, c.seed);
    const Truth truth(kernel.description, c.problem, in, Direction::backward, c.seed);
    if (!truth.in_domain()) return;
    const KernelRun got = run(kernel, c.problem, in, Direction::backward, c);
    const std::string what = emulation.name + " " + c.problem.to_string();
    if (!got.completed()) {
      incomplete = what;
      return;
    }
    ++cases;
    with_lse_gradient += uses_dlse(kernel.description, c.seed) ? 1 : 0;
    const auto& bounds = truth.backward_bounds(got);
    const Tight tight = of.tight == Tight::measured ? adds_key_after_key(emulation) : of.tight;
    statistics["O"].add(got.O, truth.forward().O, truth.forward_bounds().O, what, tight);
    statistics["LSE"].add(got.LSE, truth.forward().LSE, truth.forward_bounds().LSE, what, tight);
    statistics["dQ"].add(got.dQ, truth.backward().dQ, bounds.dQ, what, tight);
    statistics["dK"].add(got.dK, truth.backward().dK, bounds.dK, what, tight);
    statistics["dV"].add(got.dV, truth.backward().dV, bounds.dV, what, tight);
    if (c.problem.sinks != Sinks::none) {
      statistics["dSinks"].add(got.dSinks, truth.backward().dSinks, bounds.dSinks, what, tight);
    }
    if (c.problem.bias.kind == Bias::Kind::none) return;
    statistics["dBias"].add(got.dBias, truth.backward().dBias, bounds.dBias, what, tight);
  }

  void add_rows(const attest_kernel& kernel, Tight tight, std::uint64_t index, const Shape& of) {
    const Case c{Problem::parse(of.text + ",dtype=" + std::string(name(dtype))), values,
                 mix(18, index), 1};
    const InputValues in = make_values(c.problem, values, c.seed);
    const Truth truth(kernel.description, c.problem, in, Direction::forward, c.seed);
    if (!truth.in_domain()) return;
    const KernelRun got = run(kernel, c.problem, in, Direction::forward, c);
    const std::string what = kernel.description.name + (" " + c.problem.to_string());
    if (!got.completed()) {
      incomplete = what;
      return;
    }
    ++cases;
    statistics["LSE"].add(got.LSE, truth.forward().LSE, truth.forward_bounds().LSE, what, tight);
  }

  // LSE alone, forward, of as many rows.
  void measure_rows() {
    for (std::uint64_t index = 0;
         index < 2 * emulations.size() || statistics["LSE"].elements < wanted_elements(); ++index) {
      if (!incomplete.empty()) return;
      const std::uint64_t round = index / emulations.size();
      const fixtures::Emulation& emulation = emulations[index % emulations.size()];
      add_rows(fixtures::emulated_kernel(emulation, dtype), adds_key_after_key(emulation), index,
               shape_of_rows(index + 5 * round + static_cast<std::uint64_t>(values)));
    }
    statistics["LSE"].find_median();
  }

  // Every emulation runs twice at least, and more until every output has enough elements; from
  // round to round and from family to family it meets other shapes, in all every one.
  void measure() {
    for (std::uint64_t index = 0; index < 2 * emulations.size() || !enough(); ++index) {
      if (!incomplete.empty()) return;
      const std::uint64_t round = index / emulations.size();
      add(emulations[index % emulations.size()], index,
          shape(index + 5 * round + static_cast<std::uint64_t>(values)));
    }
    for (auto& [output, found] : statistics) found.find_median();
  }

  // Sinks and biases, of which every second case has one and every second the other.
  void measure_features() {
    const std::uint64_t rounds = attest::testing::is_nightly() ? 40 : 4;
    for (std::uint64_t index = 0; index < rounds * emulations.size(); ++index) {
      if (!incomplete.empty()) return;
      const std::uint64_t place = index + 5 * (index / emulations.size());
      add(emulations[index % emulations.size()], index,
          (index + index / emulations.size()) % 2 == 0 ? shape_of_sinks(place)
                                                       : shape_of_bias(place));
    }
    for (auto& [output, found] : statistics) found.find_median();
  }

  void print() const {
    for (const auto& [output, found] : statistics) {
      std::printf("%-16s %-4s %-4s %9lld %9.3f %9.3f %9.1f %9.3f%s\n",
                  std::string(name(values)).c_str(), std::string(name(dtype)).c_str(),
                  output.c_str(), static_cast<long long>(found.elements), found.worst_proved,
                  found.worst_probable, found.median, found.worst_aggregate,
                  found.has_typical_error ? "" : " (mostly exact)");
    }
    std::fflush(stdout);
  }
};

/// Measures all cells on all threads, printing each as it is done.
void measure_all(std::vector<Cell>& cells, const char* title);
void measure_rows_of_all(std::vector<Cell>& cells);
void measure_features_of_all(std::vector<Cell>& cells);

}  // namespace attest::proptest
