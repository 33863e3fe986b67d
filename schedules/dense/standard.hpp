#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/products.hpp"

namespace attest::schedules {

/// S = Q K^T and P = softmax(S) in slow memory, O = P V; every pair is visited, masked or not.
///
/// Cost:   reads = mm(q,k,dk) + qk + mm(q,dv,k), writes = 2qk + q dv,
///         peak = max(tiles of the products, k + 2)  [schedules/forward_test]
/// Source: Dao et al. 2022, Algorithm 0. LSE is not an output.
struct Standard {
  using Head = ForwardHead;
  static constexpr const char* kName = "standard";
  static constexpr const char* kSource = "Dao et al. 2022, Algorithm 0";
  static constexpr const char* kSummary = "unfused attention: S and P in slow memory";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once};
  static std::vector<Parameter<Standard>> parameters() {
    return {{"bm", &Standard::rows, Extent::queries},
            {"bn", &Standard::columns, Extent::any},
            {"bl", &Standard::depth, Extent::any}};
  }
  std::int64_t rows, columns, depth;  // of the tiles of both products

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto S = machine.workspace(q, k, "S");
    const TiledProduct tile{rows, columns, depth};
    tile.run(machine, scores(head, S), [&](auto& block, auto& C, io::Range i, io::Range j) {
      block.compute(FinishScores{head.rule, i.begin, j.begin}, C);
    });
    machine.parallel_tiles(all_rows(S), 1, [&](auto& block, io::Range row) {
      auto P = block.scratch(1, k, "S");
      auto m = block.scratch(1, 1, "m");
      auto l = block.scratch(1, 1, "l");
      block.load_into(P, S.block(row));
      block.compute(SoftmaxRows{}, P, m, l);
      block.store(P, S.block(row));
    });
    tile.run(machine, outputs(head, S));
  }

  io::Traffic cost(const ForwardHead& head) const {
    const HeadShape s = shape_of(head);
    const TiledProduct tile{rows, columns, depth};
    const io::MutableSlowMatrix S("S", s.q.value(), s.k.value(), DType::f32, nullptr, s.k.value());
    const io::Amount pass = HeadShape::real(s.q * s.k);
    const io::Traffic softmax{pass, pass, HeadShape::real(s.q > 0 ? s.k + 2 : 0)};
    return then(then(tile.cost(scores(head, S)), softmax), tile.cost(outputs(head, S)));
  }

 private:
  static ProductTask scores(const ForwardHead& head, const io::MutableSlowMatrix& S) {
    return {head.Q, head.K, S, Form::second_transposed};
  }
  static ProductTask outputs(const ForwardHead& head, const io::MutableSlowMatrix& S) {
    return {S, head.V, head.O, Form::plain};
  }
};

}  // namespace attest::schedules
