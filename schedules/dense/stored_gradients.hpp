#pragma once

#include "schedules/engine/backward_step.hpp"
#include "schedules/walks/band.hpp"

/// Backward schedules that store P or dS; all but query_stationary_p visit every pair, masked or
/// not.
namespace attest::schedules {

/// The three products that P and dS enter.
inline ProductTask dv_task(const BackwardHead& head, const io::SlowMatrix& P) {
  return {P, head.dO, head.dV, Form::first_transposed, head.sums, head.dV_before};
}
inline ProductTask dq_task(const BackwardHead& head, const io::SlowMatrix& dS) {
  return {dS, head.K, head.dQ, Form::plain};
}
inline ProductTask dk_task(const BackwardHead& head, const io::SlowMatrix& dS) {
  return {dS, head.Q, head.dK, Form::first_transposed, head.sums, head.dK_before};
}

/// A q x k matrix for cost formulas.
inline io::MutableSlowMatrix pairs_matrix(const HeadShape& s) {
  return {"S", s.q.value(), s.k.value(), DType::f32, nullptr, s.k.value()};
}

/// P as the forward saved it; dV, dP, dS by rows, dQ, dK.
///
/// Cost:   reads = mm(k,dv,q) + mm(q,k,dv) + mm(q,dk,k) + mm(k,dk,q) + 2qk,
///         writes = k dv + 2qk + q dk + k dk, peak = max(tiles of the products, 2k + 1)
///         [schedules/backward_test]
/// Source: Dao et al. 2022, Algorithm 3.
struct StandardBackward {
  using Head = BackwardHead;
  static constexpr const char* kName = "standard_bwd";
  static constexpr const char* kSource = "Dao et al. 2022, Algorithm 3";
  static constexpr const char* kSummary = "unfused backward from the P that the forward saved";
  static constexpr io::KernelClass kClass{.products = io::Products::scores_given};
  static constexpr bool kReadsSaved = true, kNoSoftcap = true;
  static std::vector<Parameter<StandardBackward>> parameters() {
    return {{"bm", &StandardBackward::rows, Extent::any},
            {"bn", &StandardBackward::columns, Extent::any},
            {"bl", &StandardBackward::depth, Extent::any},
            dlse_parameter(&StandardBackward::dlse)};
  }
  std::int64_t rows, columns, depth;  // of the tiles of all products
  std::int64_t dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const TiledProduct tile{rows, columns, depth};
    const auto dS = machine.workspace(q, k, "dS");
    tile.run(machine, dv_task(head, head.P));
    tile.run(machine, dp_task(head, dS));
    machine.parallel_tiles(all_rows(dS), 1, [&](auto& block, io::Range row) {
      const auto P = block.load(head.P.block(row), "P");
      auto gradient = block.scratch(1, k, "dS");
      auto sum = block.scratch(1, 1, "D");
      block.load_into(gradient, dS.block(row));
      block.compute(Fill{0}, sum);
      block.compute(AddRowDots{}, sum, gradient, P);
      subtract_dlse(block, head, dlse, row, sum);
      block.compute(ScoreGradients{softmax_scale(head.rule)}, gradient, P, sum);
      block.store(gradient, dS.block(row));
    });
    tile.run(machine, dq_task(head, dS));
    tile.run(machine, dk_task(head, dS));
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  static ProductTask dp_task(const BackwardHead& head, const io::MutableSlowMatrix& dP) {
    return {head.dO, head.V, dP, Form::second_transposed};
  }
};

/// P and dS by products of either kind, with what is left to do to a tile done while it is in fast
/// memory.
struct StoredPairs {
  /// P = exp(scores - LSE).
  template <io::Machine M, class Kind>
  static void store_probabilities(M& machine, const BackwardHead& head, const Kind& product,
                                  std::int64_t rows, const io::MutableSlowMatrix& P) {
    machine.parallel_tiles(all_rows(P), rows, [&](auto& block, io::Range queries) {
      const auto LSE = block.load(head.LSE.block(queries), "LSE");
      product.run_rows(block, p_task(head, P), queries,
                       [&](auto& inner, auto& tile, io::Range i, io::Range j) {
                         inner.compute(FinishScores{head.rule, i.begin, j.begin}, tile);
                         inner.compute(Probabilities{}, tile, LSE);
                       });
    });
  }

  /// dS = scale P o (dO V^T - D), P passing word by word.
  template <io::Machine M, class Kind>
  static void store_gradients(M& machine, const BackwardHead& head, const Kind& product,
                              std::int64_t rows, const io::SlowMatrix& P,
                              const io::SlowMatrix& D_slow, const io::MutableSlowMatrix& dS) {
    machine.parallel_tiles(all_rows(dS), rows, [&](auto& block, io::Range queries) {
      const auto D = block.load(D_slow.block(queries), "D");
      product.run_rows(block, ds_task(head, dS), queries,
                       [&](auto& inner, auto& tile, io::Range i, io::Range j) {
                         const auto words = inner.stream(P.block(i, j), "P");
                         inner.compute(ScoreGradients{softmax_scale(head.rule)}, tile, words, D);
                       });
    });
  }

  /// Deltas, P, dV, dS, dQ, dK.
  template <io::Machine M, class Kind>
  static void run(M& machine, const BackwardHead& head, const Kind& product, std::int64_t rows,
                  std::int64_t dlse) {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto D = machine.workspace(q, 1, "D");
    const auto P = machine.workspace(q, k, "P"), dS = machine.workspace(q, k, "dS");
    store_deltas(machine, head, dlse, D);
    store_probabilities(machine, head, product, rows, P);
    product.run(machine, dv_task(head, P));
    store_gradients(machine, head, product, rows, P, D, dS);
    product.run(machine, dq_task(head, dS));
    product.run(machine, dk_task(head, dS));
  }

  template <class Kind>
  static io::Traffic cost(const BackwardHead& head, const Kind& product, std::int64_t rows,
                          std::int64_t dlse);

 private:
  static ProductTask p_task(const BackwardHead& head, const io::MutableSlowMatrix& P) {
    return {head.Q, head.K, P, Form::second_transposed};
  }
  static ProductTask ds_task(const BackwardHead& head, const io::MutableSlowMatrix& dS) {
    return {head.dO, head.V, dS, Form::second_transposed};
  }
};

/// Square tiles for all five products.
///
/// Cost:   B = side: reads = 2 q dv + q dk ceil(k/B) + k dk ceil(q/B) + q + [P] qk ceil(dv/B) +
///         q dv ceil(k/B) + [dV] q dv ceil(k/B) + k dv ceil(q/B) + qk + q + [dS] 2 qk ceil(dk/B) +
///         k dk ceil(q/B) + q dk ceil(k/B) [dQ, dK]; writes = q + 2qk + k dv + q dk + k dk;
///         peak <= 3 B^2 + B  [schedules/backward_test]
/// Source: ours, after Saha and Ye 2024.
struct SquareTiledBackward {
  using Head = BackwardHead;
  static constexpr bool kNoSoftcap = true;
  static constexpr const char* kName = "square_tiled_bwd";
  static constexpr const char* kSource = "this project's own, after Saha and Ye 2024";
  static constexpr const char* kSummary =
      "square tiles for all five products, P and dS in slow memory";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<SquareTiledBackward>> parameters() {
    return {{"b", &SquareTiledBackward::side, Extent::any},
            dlse_parameter(&SquareTiledBackward::dlse)};
  }
  std::int64_t side, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    StoredPairs::run(machine, head, TiledProduct{side, side, side}, side, dlse);
  }
  io::Traffic cost(const BackwardHead& head) const;
};

/// Rank-1 tiles for all five products (B4 of the theory): best for fast words <= d^2/4.
///
/// Cost:   words as square_tiled_bwd with tiles of rows x columns; peak = max over the products of
///         i j + i + 1, and of P and dS i j + 2 i + 1  [schedules/backward_test]
/// Source: ours.
struct Rank1TiledBackward {
  using Head = BackwardHead;
  static constexpr bool kNoSoftcap = true;
  static constexpr const char* kName = "rank1_tiled_bwd";
  static constexpr const char* kSummary =
      "rank-1 tiles for all five products; best up to d^2/4 words";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<Rank1TiledBackward>> parameters() {
    return {{"bm", &Rank1TiledBackward::rows, Extent::any},
            {"bn", &Rank1TiledBackward::columns, Extent::any},
            dlse_parameter(&Rank1TiledBackward::dlse)};
  }
  std::int64_t rows, columns, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    StoredPairs::run(machine, head, Rank1Product{rows, columns}, rows, dlse);
  }
  io::Traffic cost(const BackwardHead& head) const;
};

/// Query blocks stay while P is made from K passing, then dO blocks while dS is made from V
/// passing; then three rank-1 products (B3 of the theory): best for d^2/4 <= fast words <= 0.4 d^2.
/// Only the pairs of a window are formed and stored, word for word.
///
/// Cost:   Z the pairs of the bands (schedules/walks/band.hpp), nk(i) the keys of the bands of
/// blocks
///         of i queries in turn, nq(j) the queries of the bands of blocks of j keys, r the queries
///         of blocks that see a key, G = ceil(d / columns): reads =
///         [P] r dk + nk(block_q) dk + r + [dS] 2 r' dv + nk(gradient_q) dv + Z
///         + [dQ] G Z + nk(rows) dk + [dK] G Z + nq(rows) dk + [dV] G Z + nq(rows) dv,
///         writes = 2 Z + k dv + q dk + k dk;
///         peak = max(i (dk + 2) + 1, i' (dv + 2) + 1, i'' j'' + n + 1), n the most of the rows of
///         a tile of dQ, dK or dV that a key or a query meets  [schedules/backward_test]
/// Source: ours.
struct QueryStationaryP {
  using Head = BackwardHead;
  static constexpr bool kNoSoftcap = true;
  static constexpr const char* kName = "query_stationary_p";
  static constexpr const char* kSummary =
      "query blocks stay while P and dS are made, three rank-1 products; best from d^2/4 to 0.4 "
      "d^2 words";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<QueryStationaryP>> parameters() {
    return {{"bq", &QueryStationaryP::block_q, Extent::queries},
            {"gq", &QueryStationaryP::gradient_q, Extent::queries},
            {"bm", &QueryStationaryP::rows, Extent::any},
            {"bn", &QueryStationaryP::columns, Extent::any},
            dlse_parameter(&QueryStationaryP::dlse)};
  }
  std::int64_t block_q, gradient_q, rows, columns, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto P = machine.workspace(q, k, "P"), dS = machine.workspace(q, k, "dS");
    store_probabilities(machine, head, P);
    store_gradients(machine, head, P, dS);
    add_queries(machine, head, dq_task(head, dS));
    add_keys(machine, head, dk_task(head, dS));
    add_keys(machine, head, dv_task(head, P));
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  template <class M>
  void store_probabilities(M& machine, const BackwardHead& head,
                           const io::MutableSlowMatrix& P_slow) const {
    const ScoreRule& rule = head.rule;
    const auto blocks = alike_blocks(rule, head.Q.rows(), block_q);
    machine.parallel_tiles(blocks, block_q, [&](auto& block, io::Range queries) {
      const auto keys = key_steps(rule, queries);
      if (keys.empty()) return;
      const auto Q = block.load(head.Q.block(queries), "Q");
      const auto LSE = block.load(head.LSE.block(queries), "LSE");
      block.for_tiles(keys, 1, [&](io::Range key) {
        const io::Range seeing = queries_of(rule, queries, key);
        auto P = block.scratch(queries.count(), 1, "P");
        const auto K = block.stream(head.K.block(key), "K");
        compute_scores(block, P, Q, K, rule, queries, key);
        block.compute(Probabilities{}, P, LSE);
        auto out = block.stream_out(P_slow.block(seeing, key), "P");
        block.compute(RowsOut{seeing.begin - queries.begin}, P, out);
      });
    });
  }

  template <class M>
  void store_gradients(M& machine, const BackwardHead& head, const io::SlowMatrix& P_slow,
                       const io::MutableSlowMatrix& dS_slow) const {
    const ScoreRule& rule = head.rule;
    const auto blocks = alike_blocks(rule, head.Q.rows(), gradient_q);
    machine.parallel_tiles(blocks, gradient_q, [&](auto& block, io::Range queries) {
      const auto keys = key_steps(rule, queries);
      if (keys.empty()) return;
      const auto dO = block.load(head.dO.block(queries), "dO");
      auto D = block.scratch(queries.count(), 1, "D");
      form_deltas(block, head, dlse, queries, dO, D);
      block.for_tiles(keys, 1, [&](io::Range key) {
        const io::Range seeing = queries_of(rule, queries, key);
        const std::int64_t first = seeing.begin - queries.begin;
        auto dS = block.scratch(queries.count(), 1, "dS");
        block.compute(Fill{0}, dS);
        {
          const auto V = block.stream(head.V.block(key), "V");
          block.compute(Product{Form::second_transposed}, dS, dO, V);
        }
        {
          const auto P = block.stream(P_slow.block(seeing, key), "P");
          block.compute(ScoreGradients{softmax_scale(rule), first}, dS, P, D);
        }
        auto out = block.stream_out(dS_slow.block(seeing, key), "dS");
        block.compute(RowsOut{first}, dS, out);
      });
    });
  }

  // Tiles of dQ stay, column after column of dS passes by.
  template <class M>
  void add_queries(M& machine, const BackwardHead& head, const ProductTask& task) const {
    const ScoreRule& rule = head.rule;
    const auto blocks = alike_blocks(rule, task.C.rows(), rows);
    machine.parallel_tiles(blocks, rows, [&](auto& block, io::Range queries) {
      const auto keys = key_steps(rule, queries);
      block.for_tiles(all_columns(task.C), columns, [&](io::Range group) {
        auto C = block.scratch(queries.count(), group.count(), task.C.name());
        block.compute(Fill{0}, C);
        block.for_tiles(keys, 1, [&](io::Range key) {
          const io::Range seeing = queries_of(rule, queries, key);
          const auto pairs = block.load(task.A.block(seeing, key), task.A.name());
          const auto words = block.stream(task.B.block(key, group), task.B.name());
          block.compute(Product{task.form, seeing.begin - queries.begin}, C, pairs, words);
        });
        block.store(C, task.C.block(queries, group));
      });
    });
  }

  // Tiles of dK or dV stay, row after row of dS or P passes by.
  template <class M>
  void add_keys(M& machine, const BackwardHead& head, const ProductTask& task) const {
    const ScoreRule& rule = head.rule;
    const auto blocks = alike_blocks(rule, task.C.rows(), rows);
    machine.parallel_tiles(blocks, rows, [&](auto& block, io::Range keys) {
      const auto queries = query_steps(rule, all_rows(head.Q), keys);
      block.for_tiles(all_columns(task.C), columns, [&](io::Range group) {
        auto C = block.scratch(keys.count(), group.count(), task.C.name());
        begin_sum(block, C, task.sums, task.C_before, keys, group);
        block.for_tiles(queries, 1, [&](io::Range query) {
          const io::Range seen = keys_within(rule, query.begin, keys);
          const auto pairs = block.load(task.A.block(query, seen), task.A.name());
          const auto words = block.stream(task.B.block(query, group), task.B.name());
          block.compute(Product{task.form, seen.begin - keys.begin}, C, pairs, words);
        });
        block.store(C, task.C.block(keys, group));
      });
    });
  }
};

/// K, V, dK, dV of a key block stay, single queries pass by, each dS leaves as it is made; dQ by a
/// rank-1 product (B2 of the theory): best for 4/3 d^2 <= fast words <= 2.5 d^2.
///
/// Cost:   reads = 2 q dv + k (dk + dv) + ceil(k/block_k) q (dk + dv + 2) + rank-1 product,
///         writes = q + k (dk + dv) + qk + q dk;
///         peak = max(2 j (dk + dv) + dk + dv + 4, i j' + i + 1)  [schedules/backward_test]
/// Source: ours.
struct KeyStationaryDs {
  using Head = BackwardHead;
  static constexpr const char* kName = "key_stationary_ds";
  static constexpr const char* kSummary =
      "key blocks stay, dS is stored, dQ by a rank-1 product; best from 1.3 d^2 to 2.5 d^2 words";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<KeyStationaryDs>> parameters() {
    return {{"bk", &KeyStationaryDs::block_k, Extent::keys},
            {"bm", &KeyStationaryDs::rows, Extent::queries},
            {"bn", &KeyStationaryDs::columns, Extent::head_dim_qk},
            dlse_parameter(&KeyStationaryDs::dlse)};
  }
  std::int64_t block_k, rows, columns, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const auto D_slow = machine.workspace(head.Q.rows(), 1, "D");
    const auto dS_slow = machine.workspace(head.Q.rows(), head.K.rows(), "dS");
    store_deltas(machine, head, dlse, D_slow);
    machine.parallel_tiles(all_rows(head.K), block_k, [&](auto& block, io::Range keys) {
      auto dK = block.scratch(keys.count(), head.K.columns(), "dK");
      auto dV = block.scratch(keys.count(), head.V.columns(), "dV");
      begin_sums(block, head, keys, dK, dV);
      const auto K = block.load(head.K.block(keys), "K");
      const auto V = block.load(head.V.block(keys), "V");
      block.for_tiles(all_rows(head.Q), 1, [&](io::Range query) {
        const auto Q = block.load(head.Q.block(query), "Q");
        const auto dO = block.load(head.dO.block(query), "dO");
        const auto LSE = block.load(head.LSE.block(query), "LSE");
        const auto D = block.load(D_slow.block(query), "D");
        auto pair = block.scratch(1, 2, "P and dS");
        auto dS = block.stream_out(dS_slow.block(query, keys), "dS");
        block.compute(KeyGradientsOut{{head.rule, query.begin, keys.begin}}, dK, dV, K, V, Q, dO,
                      LSE, D, pair, dS);
      });
      block.store(dK, head.dK.block(keys));
      block.store(dV, head.dV.block(keys));
    });
    Rank1Product{rows, columns}.run(machine, dq_task(head, dS_slow));
  }

  io::Traffic cost(const BackwardHead& head) const;
};

}  // namespace attest::schedules
