#pragma once

#include <memory>

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/products.hpp"
#include "schedules/engine/score_step.hpp"

/// Schedules of the gradient of the attention loss: dL/dX = A1^T p A2 (Li et al. 2024).
namespace attest::schedules {

/// A1, A2, A3, E (n, d), X, Y (d, d) -> dX (d, d).
struct LossHead {
  io::SlowMatrix A1, A2, A3, E, X, Y;
  io::MutableSlowMatrix dX;
  std::shared_ptr<const attest_problem> plain;  // no scale, no mask
  ScoreRule rule;                               // of `plain`

  std::int64_t n() const { return A1.rows(); }
  std::int64_t d() const { return A1.columns(); }
};

LossHead loss_head(const attest_loss_args& args);

/// Throws InvalidProblem for what no schedule of the loss gradient counts: several heads or batch
/// entries, different extents, 16-bit types.
void require_countable_loss(const attest_problem& problem);

/// Matrices that the phases leave for each other in slow memory.
struct LossSpace {
  io::MutableSlowMatrix QX, h, c, LSE, D;  // A1 X, A3 Y, f h - E, log sum exp, rowsum(c o f h)

  template <io::Machine M>
  LossSpace(M& machine, std::int64_t n, std::int64_t d)
      : QX(machine.workspace(n, d, "QX")),
        h(machine.workspace(n, d, "h")),
        c(machine.workspace(n, d, "c")),
        LSE(machine.workspace(n, 1, "LSE")),
        D(machine.workspace(n, 1, "D")) {}
};

/// c, LSE and D with blocks of rows resident, A2 and h passing word by word.
///
/// Cost: reads = 2 n d + ceil(n/rows) 2 n d, writes = n d + 2 n,
///       peak = i (2 d + 3) + 1, i = min(rows, n)
struct LossResidual {
  std::int64_t rows;

  template <io::Machine M>
  void run(M& machine, const LossHead& head, const LossSpace& space) const {
    machine.parallel_tiles(all_rows(head.A1), rows, [&](auto& block, io::Range queries) {
      const auto Q = block.load(space.QX.block(queries), "QX");
      auto c = block.scratch(queries.count(), head.d(), "c");
      auto m = block.scratch(queries.count(), 1, "m");
      auto l = block.scratch(queries.count(), 1, "l");
      block.compute(Fill{0}, c);
      block.compute(StartRows{}, m, l);
      block.for_tiles(all_rows(head.A2), 1, [&](io::Range key) {
        auto s = block.scratch(queries.count(), 1, "S");
        {
          const auto A2 = block.stream(head.A2.block(key), "A2");
          compute_scores(block, s, Q, A2, head.rule, queries, key);
        }
        update_softmax(block, s, m, l, c);
        const auto h = block.stream(space.h.block(key), "h");
        block.compute(Product{}, c, s, h);
      });
      block.compute(FinishRows{}, c, m, l);
      auto D = block.scratch(queries.count(), 1, "D");
      block.compute(Fill{0}, D);
      {
        const auto E = block.stream(head.E.block(queries), "E");
        block.compute(Residual{}, c, D, E);
      }
      block.store(c, space.c.block(queries));
      block.store(m, space.LSE.block(queries));
      block.store(D, space.D.block(queries));
    });
  }

  io::Traffic cost(const LossHead& head) const;
};

/// W = p A2 with blocks of rows resident, A2 and h passing row by row.
///
/// Cost: reads = 2 n d + 2 n + ceil(n/rows) 2 n d, writes = n d, peak = i (3 d + 2) + 2 d + 2
struct WeighedKeys {
  std::int64_t rows;

  template <io::Machine M>
  void run(M& machine, const LossHead& head, const LossSpace& space,
           const io::MutableSlowMatrix& W_slow) const {
    machine.parallel_tiles(all_rows(head.A1), rows, [&](auto& block, io::Range queries) {
      const auto Q = block.load(space.QX.block(queries), "QX");
      const auto c = block.load(space.c.block(queries), "c");
      const auto LSE = block.load(space.LSE.block(queries), "LSE");
      const auto D = block.load(space.D.block(queries), "D");
      auto W = block.scratch(queries.count(), head.d(), "W");
      block.compute(Fill{0}, W);
      block.for_tiles(all_rows(head.A2), 1, [&](io::Range key) {
        const auto A2 = block.load(head.A2.block(key), "A2");
        const auto h = block.load(space.h.block(key), "h");
        auto pair = block.scratch(1, 2, "f and p");
        block.compute(QueryGradients{head.rule, queries.begin, key.begin}, W, Q, c, LSE, D, A2, h,
                      pair);
      });
      block.store(W, W_slow.block(queries));
    });
  }

  io::Traffic cost(const LossHead& head) const;
};

/// Beginning of both schedules with resident square matrices: QX = A1 X and h = A3 Y with X and Y
/// resident, then LossResidual.
///
/// Cost: reads = 2 (d^2 + n d) + LossResidual's, writes = 2 n d + LossResidual's,
///       peak = max(d^2 + d + 1, LossResidual's)
struct LossForward {
  std::int64_t rows;

  template <io::Machine M>
  void run(M& machine, const LossHead& head, const LossSpace& space) const {
    multiply_rows(machine, head.A1, head.X, space.QX);
    multiply_rows(machine, head.A3, head.Y, space.h);
    LossResidual{rows}.run(machine, head, space);
  }

  io::Traffic cost(const LossHead& head) const;

 private:
  // Rows of A times a resident matrix; a row leaves word by word.
  template <class M>
  static void multiply_rows(M& machine, const io::SlowMatrix& A, const io::SlowMatrix& B,
                            const io::MutableSlowMatrix& C) {
    const auto resident = machine.load(B, B.name());
    machine.for_tiles(all_rows(A), 1, [&](io::Range row) {
      const auto a = machine.load(A.block(row), A.name());
      auto word = machine.scratch(1, 1, C.name());
      auto out = machine.stream_out(C.block(row), C.name());
      machine.compute(RowTimesMatrix{}, out, word, a, resident);
    });
  }
};

/// W = p A2 with blocks of rows resident, then dX = A1^T W with dX resident.
///
/// Cost:   reads = 2 (d^2 + n d) + [2 n d + ceil(n/forward_rows) 2 n d] +
///         [2 n d + 2 n + ceil(n/rows) 2 n d] + 2 n d, writes = 4 n d + 2 n + d^2,
///         peak = max(d^2 + d + 1, i (2 d + 3) + 1, i' (3 d + 2) + 2 d + 2)
///         [schedules/loss/loss_test]
/// Source: Li et al. 2024, large cache.
struct LossLarge {
  using Head = LossHead;
  static constexpr const char* kName = "loss_large";
  static constexpr const char* kSource = "Li et al. 2024, large cache";
  static constexpr const char* kSummary =
      "blocks of rows stay, W = p A2 is stored (Li et al., large cache)";
  static std::vector<Parameter<LossLarge>> parameters() {
    return {{"b1", &LossLarge::forward_rows, Extent::queries},
            {"b2", &LossLarge::rows, Extent::queries}};
  }
  std::int64_t forward_rows, rows;

  template <io::Machine M>
  void run(M& machine, const LossHead& head) const {
    const LossSpace space(machine, head.n(), head.d());
    const auto W_slow = machine.workspace(head.n(), head.d(), "W");
    LossForward{forward_rows}.run(machine, head, space);
    WeighedKeys{rows}.run(machine, head, space, W_slow);
    auto dX = machine.scratch(head.d(), head.d(), "dX");
    machine.compute(Fill{0}, dX);
    machine.for_tiles(all_rows(head.A1), 1, [&](io::Range row) {
      const auto A1 = machine.load(head.A1.block(row), "A1");
      const auto W = machine.stream(W_slow.block(row), "W");
      machine.compute(Product{Form::first_transposed}, dX, A1, W);
    });
    machine.store(dX, head.dX);
  }

  io::Traffic cost(const LossHead& head) const;
};

/// loss_large without a (d, d) matrix in fast memory: the products with X, Y and A1^T by square
/// tiles.
///
/// Cost:   a = ceil(n/b), e = ceil(d/b): reads = 2 (n d e + d^2 a) + LossResidual's + WeighedKeys'
///         + 2 n d e, writes = 4 n d + 2 n + d^2;
///         peak = max(3 b^2 at most, LossResidual's, WeighedKeys')  [schedules/loss/loss_test]
/// Source: ours; FlashAttention's order for f and p below d^2 words of fast memory.
struct LossRows {
  using Head = LossHead;
  static constexpr const char* kName = "loss_rows";
  static constexpr const char* kSummary =
      "loss_large without a square matrix in fast memory: its products by square tiles";
  static std::vector<Parameter<LossRows>> parameters() {
    return {{"b1", &LossRows::forward_rows, Extent::queries},
            {"b2", &LossRows::rows, Extent::queries},
            {"b", &LossRows::side, Extent::any}};
  }
  std::int64_t forward_rows, rows, side;

  template <io::Machine M>
  void run(M& machine, const LossHead& head) const {
    const LossSpace space(machine, head.n(), head.d());
    const auto W = machine.workspace(head.n(), head.d(), "W");
    const TiledProduct tile{side, side, side};
    tile.run(machine, {head.A1, head.X, space.QX});
    tile.run(machine, {head.A3, head.Y, space.h});
    LossResidual{forward_rows}.run(machine, head, space);
    WeighedKeys{rows}.run(machine, head, space, W);
    tile.run(machine, {head.A1, W, head.dX, Form::first_transposed});
  }

  io::Traffic cost(const LossHead& head) const;
};

/// W is not an output and is never formed: with X and dX resident and blocks of rows of A1 and c,
/// each key j passes once with y = X A2_j, z = sum over i of p_ij A1_i, dX += z A2_j^T.
///
/// Cost:   reads = LossForward's + d^2 + n (2 d + 2) + ceil(n/rows) 2 n d, writes = 3 n d + 2 n +
/// d^2,
///         peak = max(LossForward's, 2 d^2 + i (2 d + 2) + 4 d + 2)  [schedules/loss/loss_test]
/// Source: ours; fewer words than loss_large from 6 d^2 words of fast memory on.
struct LossLargeDirect {
  using Head = LossHead;
  static constexpr const char* kName = "loss_large_direct";
  static constexpr const char* kSummary =
      "loss_large without forming W; fewer words from 6 d^2 words on";
  static std::vector<Parameter<LossLargeDirect>> parameters() {
    return {{"b1", &LossLargeDirect::forward_rows, Extent::queries},
            {"b2", &LossLargeDirect::rows, Extent::queries}};
  }
  std::int64_t forward_rows, rows;

  template <io::Machine M>
  void run(M& machine, const LossHead& head) const {
    const LossSpace space(machine, head.n(), head.d());
    LossForward{forward_rows}.run(machine, head, space);
    const auto X = machine.load(head.X, "X");
    auto dX = machine.scratch(head.d(), head.d(), "dX");
    machine.compute(Fill{0}, dX);
    machine.for_tiles(all_rows(head.A1), rows, [&](io::Range queries) {
      const auto A1 = machine.load(head.A1.block(queries), "A1");
      const auto c = machine.load(space.c.block(queries), "c");
      const auto LSE = machine.load(space.LSE.block(queries), "LSE");
      const auto D = machine.load(space.D.block(queries), "D");
      machine.for_tiles(all_rows(head.A2), 1, [&](io::Range key) {
        const auto A2 = machine.load(head.A2.block(key), "A2");
        const auto h = machine.load(space.h.block(key), "h");
        auto y = machine.scratch(1, head.d(), "y");
        auto z = machine.scratch(1, head.d(), "z");
        auto pair = machine.scratch(1, 2, "f and p");
        machine.compute(Fill{0}, y);
        machine.compute(Fill{0}, z);
        machine.compute(Product{Form::second_transposed}, y, A2, X);
        machine.compute(WeighRows{}, z, A1, c, LSE, D, y, h, pair);
        machine.compute(Product{Form::first_transposed}, dX, z, A2);
      });
    });
    machine.store(dX, head.dX);
  }

  io::Traffic cost(const LossHead& head) const;
};

/// Square tiles, S and then p in slow memory.
///
/// Cost:   a = ceil(n/B), e = ceil(d/B), B = side: reads = 2 (n d e + d^2 a) + 2 n d a +
///         (n^2 e + n d a + n d + n) + (2 n d a + n^2 + 2 n) + (n^2 e + n d a) + 2 d n e,
///         writes = 4 n d + 2 n^2 + 2 n + d^2, peak <= 3 B^2 + 3 B  [schedules/loss/loss_test]
/// Source: Li et al. 2024, Algorithm 6 (small cache), with D in place of the row sums of f o q.
struct LossSmall {
  using Head = LossHead;
  static constexpr const char* kName = "loss_small";
  static constexpr const char* kSource = "Li et al. 2024, Algorithm 6";
  static constexpr const char* kSummary =
      "square tiles, S and p in slow memory (Li et al., small cache)";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once};
  static std::vector<Parameter<LossSmall>> parameters() {
    return {{"b", &LossSmall::side, Extent::any}};
  }
  std::int64_t side;

  template <io::Machine M>
  void run(M& machine, const LossHead& head) const {
    const LossSpace space(machine, head.n(), head.d());
    const auto S = machine.workspace(head.n(), head.n(), "S");
    const auto W = machine.workspace(head.n(), head.d(), "W");
    const TiledProduct tile{side, side, side};
    tile.run(machine, {head.A1, head.X, space.QX});
    tile.run(machine, {head.A3, head.Y, space.h});
    machine.parallel_tiles(all_rows(S), side, [&](auto& block, io::Range rows) {
      store_scores(block, head, space, S, rows);
    });
    machine.parallel_tiles(all_rows(S), side, [&](auto& block, io::Range rows) {
      store_residual(block, head, space, S, rows);
    });
    machine.parallel_tiles(all_rows(S), side,
                           [&](auto& block, io::Range rows) { store_p(block, space, S, rows); });
    tile.run(machine, {S, head.A2, W});
    tile.run(machine, {head.A1, W, head.dX, Form::first_transposed});
  }

  io::Traffic cost(const LossHead& head) const;

 private:
  template <class M>
  void store_scores(M& machine, const LossHead& head, const LossSpace& space,
                    const io::MutableSlowMatrix& S, io::Range rows) const {
    auto m = machine.scratch(rows.count(), 1, "m");
    auto l = machine.scratch(rows.count(), 1, "l");
    machine.compute(StartRows{}, m, l);
    TiledProduct{side, side, side}.run_rows(machine,
                                            {space.QX, head.A2, S, Form::second_transposed}, rows,
                                            [&](auto& block, auto& scores, io::Range, io::Range) {
                                              update_statistics(block, m, l, scores);
                                            });
    machine.compute(LogSumExp{}, m, l);
    machine.store(m, space.LSE.block(rows));
  }

  // c = f h - E and D = rowsum(c o f h), f divided by its row sums as in WeighedValues.
  template <class M>
  void store_residual(M& machine, const LossHead& head, const LossSpace& space,
                      const io::SlowMatrix& S, io::Range rows) const {
    const auto LSE = machine.load(space.LSE.block(rows), "LSE");
    auto D = machine.scratch(rows.count(), 1, "D");
    machine.compute(Fill{0}, D);
    machine.for_tiles(all_columns(head.E), side, [&](io::Range columns) {
      auto c = machine.scratch(rows.count(), columns.count(), "c");
      auto sums = machine.scratch(rows.count(), 1, "row sums");
      machine.compute(Fill{0}, c);
      machine.compute(Fill{0}, sums);
      machine.for_tiles(all_rows(head.A2), side, [&](io::Range keys) {
        auto f = machine.scratch(rows.count(), keys.count(), "f");
        machine.load_into(f, S.block(rows, keys));
        machine.compute(Probabilities{}, f, LSE);
        machine.compute(AddRowSums{}, sums, f);
        const auto h = machine.load(space.h.block(keys, columns), "h");
        machine.compute(Product{}, c, f, h);
      });
      machine.compute(DivideRows{}, c, sums);
      {
        const auto E = machine.stream(head.E.block(rows, columns), "E");
        machine.compute(Residual{}, c, D, E);
      }
      machine.store(c, space.c.block(rows, columns));
    });
    machine.store(D, space.D.block(rows));
  }

  // p = f o (c h^T - D) over S.
  template <class M>
  void store_p(M& machine, const LossSpace& space, const io::MutableSlowMatrix& S,
               io::Range rows) const {
    const auto LSE = machine.load(space.LSE.block(rows), "LSE");
    const auto D = machine.load(space.D.block(rows), "D");
    TiledProduct{side, side, side}.run_rows(machine, {space.c, space.h, S, Form::second_transposed},
                                            rows,
                                            [&](auto& block, auto& q, io::Range i, io::Range j) {
                                              const auto scores = block.stream(S.block(i, j), "S");
                                              block.compute(WeighGradients{}, q, scores, LSE, D);
                                            });
  }
};

}  // namespace attest::schedules
