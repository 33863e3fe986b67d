#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/products.hpp"
#include "schedules/engine/score_step.hpp"

namespace attest::schedules {

/// Square tiles for both products, the score matrix in slow memory; every pair is visited, masked
/// or not. Variant `paper` stores exp(S) and the row sums d, and overflows for scores above 88;
/// `stable` stores S and LSE, from statistics kept while S is made, and divides by the row sums of
/// exp(S - LSE), which the rounding of LSE keeps from being 1.
///
/// Cost:   B = side: reads = q dk ceil(k/B) + k dk ceil(q/B) + q + qk ceil(dv/B) + k dv ceil(q/B),
///         writes = qk + q + q dv; peak, b(x) = min(x, B) and v = 1 (paper) or 2 (stable),
///         max(b(q) b(k) + b(dk) (b(q) + b(k)), b(q) b(dv) + b(k) (b(q) + b(dv))) + v b(q)
///         [schedules/forward_test]
/// Source: Saha and Ye 2024, Algorithm 1; `stable` ours.
struct SquareTiled {
  using Head = ForwardHead;
  enum Variant : std::int64_t { kStable, kPaper };
  static constexpr const char* kName = "square_tiled";
  static constexpr const char* kSource =
      "Saha and Ye 2024, Algorithm 1; variant=stable this project's own";
  static constexpr const char* kSummary =
      "Saha and Ye: square tiles for both products, S in slow memory";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once};
  static std::vector<Parameter<SquareTiled>> parameters() {
    return {{"b", &SquareTiled::side, Extent::any},
            {"variant", &SquareTiled::variant, {"stable", "paper"}}};
  }
  std::int64_t side, variant;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const auto S = machine.workspace(head.Q.rows(), head.K.rows(), "S");
    const auto d = variant == kPaper ? machine.workspace(head.Q.rows(), 1, "d") : head.LSE;
    machine.parallel_tiles(all_rows(S), side, [&](auto& block, io::Range queries) {
      if (variant == kPaper) {
        exponentials(block, head, S, d, queries);
      } else {
        scores(block, head, S, d, queries);
      }
    });
    machine.parallel_tiles(all_rows(S), side, [&](auto& block, io::Range queries) {
      const auto sums = block.load(d.block(queries), d.name());
      block.for_tiles(all_columns(head.V), side, [&](io::Range columns) {
        if (variant == kPaper) {
          weigh_exponentials(block, head, S, sums, queries, columns);
        } else {
          weigh(block, head, S, sums, queries, columns);
        }
      });
    });
  }

  io::Traffic cost(const ForwardHead& head) const;

 private:
  static ProductTask score_task(const ForwardHead& head, const io::MutableSlowMatrix& S) {
    return {head.Q, head.K, S, Form::second_transposed};
  }

  template <class M>
  void exponentials(M& machine, const ForwardHead& head, const io::MutableSlowMatrix& S,
                    const io::MutableSlowMatrix& d, io::Range queries) const {
    auto sums = machine.scratch(queries.count(), 1, "d");
    machine.compute(Fill{0}, sums);
    TiledProduct{side, side, side}.run_rows(
        machine, score_task(head, S), queries,
        [&](auto& block, auto& tile, io::Range i, io::Range j) {
          block.compute(FinishScores{head.rule, i.begin, j.begin}, tile);
          block.compute(Exponentials{}, tile, sums);
        });
    machine.store(sums, d.block(queries));
  }

  template <class M>
  void scores(M& machine, const ForwardHead& head, const io::MutableSlowMatrix& S,
              const io::MutableSlowMatrix& LSE, io::Range queries) const {
    auto m = machine.scratch(queries.count(), 1, "m");
    auto l = machine.scratch(queries.count(), 1, "l");
    machine.compute(StartRows{}, m, l);
    TiledProduct{side, side, side}.run_rows(
        machine, score_task(head, S), queries,
        [&](auto& block, auto& tile, io::Range i, io::Range j) {
          block.compute(FinishScores{head.rule, i.begin, j.begin}, tile);
          update_statistics(block, m, l, tile);
        });
    machine.compute(LogSumExp{}, m, l);
    machine.store(m, LSE.block(queries));
  }

  template <class M, class Sums>
  void weigh_exponentials(M& machine, const ForwardHead& head, const io::MutableSlowMatrix& S,
                          const Sums& sums, io::Range queries, io::Range columns) const {
    auto O = machine.scratch(queries.count(), columns.count(), "O");
    machine.compute(Fill{0}, O);
    machine.for_tiles(all_rows(head.K), side, [&](io::Range keys) {
      const auto P = machine.load(S.block(queries, keys), "P");
      const auto V = machine.load(head.V.block(keys, columns), "V");
      machine.compute(Product{}, O, P, V);
    });
    machine.compute(DivideRows{}, O, sums);
    machine.store(O, head.O.block(queries, columns));
  }

  template <class M, class Statistics>
  void weigh(M& machine, const ForwardHead& head, const io::MutableSlowMatrix& S,
             const Statistics& LSE, io::Range queries, io::Range columns) const {
    auto O = machine.scratch(queries.count(), columns.count(), "O");
    auto sums = machine.scratch(queries.count(), 1, "row sums");
    machine.compute(Fill{0}, O);
    machine.compute(Fill{0}, sums);
    machine.for_tiles(all_rows(head.K), side, [&](io::Range keys) {
      auto P = machine.scratch(queries.count(), keys.count(), "P");
      machine.load_into(P, S.block(queries, keys));
      machine.compute(Probabilities{}, P, LSE);
      machine.compute(AddRowSums{}, sums, P);
      const auto V = machine.load(head.V.block(keys, columns), "V");
      machine.compute(Product{}, O, P, V);
    });
    machine.compute(DivideRows{}, O, sums);
    machine.store(O, head.O.block(queries, columns));
  }
};

}  // namespace attest::schedules
