#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/products.hpp"
#include "schedules/engine/score_step.hpp"

/// Schedules for small fast memory that store S and weigh V by it with rank-1 tiles; every pair is
/// visited, masked or not.
namespace attest::schedules {

/// O = P V / rowsum(P) with P = exp(S - LSE): tiles of rows x columns of O stay, a column of S and
/// the words of a row of V pass by. LSE is rounded to a word, so the rows of P do not sum to 1 by
/// as much as |LSE| roundings; the division takes that out.
///
/// Cost: reads = q + qk ceil(dv/columns) + k dv ceil(q/rows), writes = q dv,
///       peak = i j + 3 i + 1, i = min(rows, q), j = min(columns, dv)
struct WeighedValues {
  std::int64_t rows, columns;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head, const io::SlowMatrix& S) const {
    machine.parallel_tiles(all_rows(S), rows, [&](auto& block, io::Range queries) {
      const auto LSE = block.load(head.LSE.block(queries), "LSE");
      block.for_tiles(all_columns(head.V), columns, [&](io::Range group) {
        auto O = block.scratch(queries.count(), group.count(), "O");
        auto sums = block.scratch(queries.count(), 1, "row sums");
        block.compute(Fill{0}, O);
        block.compute(Fill{0}, sums);
        block.for_tiles(all_rows(head.K), 1, [&](io::Range key) {
          auto P = block.scratch(queries.count(), 1, "P");
          block.load_into(P, S.block(queries, key));
          block.compute(Probabilities{}, P, LSE);
          block.compute(AddRowSums{}, sums, P);
          const auto V = block.stream(head.V.block(key, group), "V");
          block.compute(Product{}, O, P, V);
        });
        block.compute(DivideRows{}, O, sums);
        block.store(O, head.O.block(queries, group));
      });
    });
  }

  io::Traffic cost(const ForwardHead& head) const;
};

/// Rank-1 tiles for S and for P V (F3 of the theory): best for fast words <= d^2/4.
///
/// Cost:   reads = q dk ceil(k/block_k) + k dk ceil(q/block_q) and WeighedValues',
///         writes = qk + q + q dv; peak = max(i j + 3 i + 1, WeighedValues')
///         [schedules/forward_test]
/// Source: ours. Statistics are kept while S is made and leave as LSE, one word a row.
struct Rank1Tiled {
  using Head = ForwardHead;
  static constexpr const char* kName = "rank1_tiled";
  static constexpr const char* kSummary = "rank-1 tiles for both products; best up to d^2/4 words";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<Rank1Tiled>> parameters() {
    return {{"bq", &Rank1Tiled::block_q, Extent::queries},
            {"bk", &Rank1Tiled::block_k, Extent::keys},
            {"oq", &Rank1Tiled::output_q, Extent::queries},
            {"ov", &Rank1Tiled::output_v, Extent::head_dim_v}};
  }
  std::int64_t block_q, block_k, output_q, output_v;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const auto S = machine.workspace(head.Q.rows(), head.K.rows(), "S");
    machine.parallel_tiles(all_rows(S), block_q, [&](auto& block, io::Range queries) {
      auto m = block.scratch(queries.count(), 1, "m");
      auto l = block.scratch(queries.count(), 1, "l");
      block.compute(StartRows{}, m, l);
      Rank1Product{block_q, block_k}.run_rows(
          block, {head.Q, head.K, S, Form::second_transposed}, queries,
          [&](auto& inner, auto& tile, io::Range i, io::Range j) {
            inner.compute(FinishScores{head.rule, i.begin, j.begin}, tile);
            update_statistics(inner, m, l, tile);
          });
      block.compute(LogSumExp{}, m, l);
      block.store(m, head.LSE.block(queries));
    });
    WeighedValues{output_q, output_v}.run(machine, head, S);
  }

  io::Traffic cost(const ForwardHead& head) const;
};

/// Query blocks stay, K passes by word by word, S is stored; then rank-1 tiles for P V (F2 of the
/// theory): best for d^2/4 <= fast words <= d^2.
///
/// Cost:   reads = q dk + ceil(q/block_q) k dk and WeighedValues', writes = qk + q + q dv;
///         peak = max(i (dk + 3) + 1, WeighedValues')  [schedules/forward_test]
/// Source: ours.
struct Hybrid {
  using Head = ForwardHead;
  static constexpr const char* kName = "hybrid";
  static constexpr const char* kSummary =
      "query blocks stay, S is stored, rank-1 tiles for P V; best from d^2/4 to d^2 words";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<Hybrid>> parameters() {
    return {{"bq", &Hybrid::block_q, Extent::queries},
            {"oq", &Hybrid::output_q, Extent::queries},
            {"ov", &Hybrid::output_v, Extent::head_dim_v}};
  }
  std::int64_t block_q, output_q, output_v;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const auto S = machine.workspace(head.Q.rows(), head.K.rows(), "S");
    machine.parallel_tiles(all_rows(S), block_q, [&](auto& block, io::Range queries) {
      const auto Q = block.load(head.Q.block(queries), "Q");
      auto m = block.scratch(queries.count(), 1, "m");
      auto l = block.scratch(queries.count(), 1, "l");
      block.compute(StartRows{}, m, l);
      block.for_tiles(all_rows(head.K), 1, [&](io::Range key) {
        auto s = block.scratch(queries.count(), 1, "S");
        {
          const auto K = block.stream(head.K.block(key), "K");
          compute_scores(block, s, Q, K, head.rule, queries, key);
        }
        update_statistics(block, m, l, s);
        block.store(s, S.block(queries, key));
      });
      block.compute(LogSumExp{}, m, l);
      block.store(m, head.LSE.block(queries));
    });
    WeighedValues{output_q, output_v}.run(machine, head, S);
  }

  io::Traffic cost(const ForwardHead& head) const;
};

}  // namespace attest::schedules
