#include "reference/exact/sample.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

// Every third query and some neighbouring keys of each sequence.
Sample some_of(const Problem& problem) {
  Sample sample;
  for (const Sequence& sequence : problem.sequences()) {
    std::vector<std::int64_t> queries, keys;
    for (std::int64_t i = 1; i < sequence.q_length; i += 3) queries.push_back(i);
    for (std::int64_t j = 0; j < sequence.k_length; ++j) {
      if (j % 5 < 2) keys.push_back(j);
    }
    sample.queries.push_back(queries);
    sample.keys.push_back(keys);
  }
  return sample;
}

// visit(batch, position) of every position that a list names.
template <class Visit>
void for_positions(const Problem& problem, const PositionsInSequences& positions, bool keys,
                   const Visit& visit) {
  const std::vector<Sequence> sequences = problem.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::int64_t begin = keys ? sequences[s].k_begin : sequences[s].q_begin;
    for (const std::int64_t position : positions[s]) {
      visit(sequences[s].tensor_batch, begin + position);
    }
  }
}

// Sums whose products were cut into other blocks differ in their last bits.
bool close(double a, double b) {
  return a == b || std::abs(a - b) <= 0x1p-40 * (std::abs(a) + std::abs(b)) ||
         (std::isnan(a) && std::isnan(b));
}

// Both tensors agree in the rows named, of (batch, seqlen, heads, columns) or of LSE's axes.
template <class Agree>
void compare_rows(const Problem& problem, const PositionsInSequences& positions, bool keys,
                  const Tensor& a, const Tensor& b, const Agree& agree) {
  const bool scalars = a.view().rank() == 3;
  const std::int64_t heads = a.view().extent(scalars ? 1 : 2),
                     columns = scalars ? 1 : a.view().extent(3);
  for_positions(problem, positions, keys, [&](std::int64_t batch, std::int64_t position) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const double x = scalars ? a(batch, h, position) : a(batch, position, h, c),
                     y = scalars ? b(batch, h, position) : b(batch, position, h, c);
        INFO(a.view().name() << " batch " << batch << " position " << position << " head " << h
                             << ": " << x << " and " << y);
        CHECK(agree(x, y));
      }
    }
  });
}

std::vector<std::string> sampled_problems() {
  std::vector<std::string> problems = feature_problems();
  problems.insert(problems.end(), {"sq=150,sk=170,d=3,mask=causal_br",
                                   "hq=2,hkv=1,sq=80,sk=90,d=2,mask=window_20_3,softcap=2"});
  return problems;
}

TEST_CASE("rows alone have the results that they have among others", "[reference]") {
  for (const std::string& text : sampled_problems()) {
    INFO(text);
    const Setting in(text, 1, 1, 7);
    const Sample sample = some_of(in.problem);
    const TensorView &Q = in.Q.view(), &K = in.K.view(), &V = in.V.view();
    const Forward all = forward(in.problem, {}, Q, K, V),
                  some = forward(in.problem, {}, Q, K, V, &sample.queries);
    const Backward gradients = backward(in.problem, Q, K, V, in.cotangents()),
                   of_some = backward(in.problem, Q, K, V, in.cotangents(), &sample.queries);
    compare_rows(in.problem, sample.queries, false, all.O, some.O, close);
    compare_rows(in.problem, sample.queries, false, all.LSE, some.LSE, close);
    compare_rows(in.problem, sample.queries, false, gradients.dQ, of_some.dQ, close);
    compare_rows(in.problem, sample.queries, false, gradients.delta_error, of_some.delta_error,
                 close);
  }
}

TEST_CASE("bounds of a sample are those of the whole, or smaller", "[reference]") {
  attest_numerics from_pairs{};
  from_pairs.delta_from_p = 1;
  attest_numerics cast{};
  cast.p_cast = 1 + ATTEST_BF16;
  for (const attest_numerics& declared : {attest_numerics{}, from_pairs, cast}) {
    const Numerics numerics = resolve(declared, DType::f32);
    for (const std::string& text : sampled_problems()) {
      INFO(text);
      const Setting in(text, 1, 1, 7);
      const Sample sample = some_of(in.problem);
      const TensorView &Q = in.Q.view(), &K = in.K.view(), &V = in.V.view();
      const Forward exact = forward(in.problem, {}, Q, K, V);
      const Backward gradients = backward(in.problem, Q, K, V, in.cotangents());
      const Stored stored{exact.O.view(), exact.LSE.view()};
      const auto bounds_of_O = [&](const PositionsInSequences* queries) {
        return forward_bounds(in.problem, {}, numerics, Q, K, V, exact, queries);
      };
      const auto bounds_of_gradients = [&](const Sample* of) {
        return backward_bounds(in.problem, {}, numerics, Q, K, V, in.cotangents(), stored, exact,
                               gradients, of);
      };
      const ForwardBounds all = bounds_of_O(nullptr), some = bounds_of_O(&sample.queries);
      const BackwardBounds whole = bounds_of_gradients(nullptr),
                           part = bounds_of_gradients(&sample);
      // A key's gradients share their second order with the keys beside them, or with fewer.
      const auto no_larger = [](double of_all, double of_some) {
        constexpr double kMuchSmaller = 0.9;
        return close(of_all, of_some) || (of_some < of_all && of_some > kMuchSmaller * of_all);
      };
      for (const auto strength :
           {&ErrorBound::deterministic, &ErrorBound::probabilistic, &ErrorBound::sigma}) {
        const auto rows = [&](const ErrorBound& a, const ErrorBound& b) {
          compare_rows(in.problem, sample.queries, false, a.*strength, b.*strength, close);
        };
        const auto keys = [&](const ErrorBound& a, const ErrorBound& b) {
          compare_rows(in.problem, sample.keys, true, a.*strength, b.*strength, no_larger);
        };
        rows(all.O, some.O);
        rows(all.LSE, some.LSE);
        rows(whole.dQ, part.dQ);
        keys(whole.dK, part.dK);
        keys(whole.dV, part.dV);
      }
    }
  }
}

}  // namespace
}  // namespace attest::reference
