#pragma once

#include "schedules/dense/column_groups.hpp"
#include "schedules/walks/lists/gathered_rows.hpp"
#include "schedules/walks/lists/tile_list.hpp"

namespace attest::schedules {

/// A query that stays, apart from the others of its block.
template <class M>
struct GatheredQuery {
  GatheredQuery(io::Range row, M* machine, const ForwardHead* head)
      : query(row),
        Q(machine->load(head->Q.block(query), "Q")),
        O(machine->scratch(1, head->V.columns(), "O")),
        m(machine->scratch(1, 1, "m")),
        l(machine->scratch(1, 1, "l")),
        s(machine->scratch(1, 1, "S")) {
    machine->compute(Fill{0}, O);
    machine->compute(StartRows{}, m, l);
  }

  io::Range query;
  decltype(std::declval<M&>().load(std::declval<const io::SlowMatrix&>(), "")) Q;
  decltype(std::declval<M&>().scratch(1, 1, "")) O, m, l, s;
};

/// Blocks of queries stay, the union of their keys passes by: with `natural` order word by word;
/// with `grouped` order queries are permuted so that blocks share keys (RowOrder), a key passes as
/// a row because its words are used by tiles that lie apart, O and LSE go to their own places, and
/// the permutation costs a word for each query. Lists are those of tiles of one key: with bq = 1
/// CSR, else the union, with the queries of a key that not all see as bits.
///
/// Cost:   reads = ra dk + nz_k (dk + dv) + L, writes = q (dv + 1), and q more reads with
///         order=grouped; peak = i (dk + dv + 3) + 1 + r + 2 with r = 1 + ceil(i / 32), or 1 where
///         all of a block see the key; with order=grouped
///         i (dk + dv + 4) + max(dk, dv) + r + 2  [schedules/lists/blocks/block_test "closed
///         forms"]
/// Source: ours.
struct CsrGather {
  using Head = ForwardHead;
  static constexpr const char* kName = "csr_gather";
  static constexpr const char* kDense = "flash2_row";
  static constexpr const char* kSummary =
      "query blocks stay, the union of their keys passes by; order=grouped permutes the queries";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<CsrGather>> parameters() {
    return {{"bq", &CsrGather::block_q, Extent::queries}, order_parameter(&CsrGather::order)};
  }
  std::int64_t block_q, order;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    if (order == kNatural) {
      attend_rows(machine, head, TileList(head.rule, q, k, block_q, 1, Stay::queries), block_q,
                  head.V.columns());
    } else {
      const RowOrder rows = RowOrder::grouped(head.rule, q, k, block_q, Stay::queries);
      const TileList list(head.rule, q, k, block_q, 1, Stay::queries, rows.rows());
      machine.parallel_tiles(list.blocks(), block_q, [&](auto& block, io::Range places) {
        attend_gathered(block, head, list, rows, places);
      });
    }
  }

  io::Traffic cost(const ForwardHead& head) const;

 private:
  template <class M>
  static void attend_gathered(M& machine, const ForwardHead& head, const TileList& list,
                              const RowOrder& order, io::Range places) {
    const ListedTiles keys(machine, list, places);
    const auto permutation = machine.load(order.matrix().block(places), "row_order");
    if (keys.empty()) {
      for (std::int64_t place = places.begin; place < places.end; ++place) {
        const io::Range query = order.row(place);
        store_empty_rows(machine, head.O.block(query), head.LSE.block(query), head.O.columns());
      }
      return;
    }
    using Row = GatheredQuery<M>;
    GatheredRows<Row> rows(order, places, &machine, &head);
    keys.for_each([&](const TileList::Entry& tile) {
      {
        const auto K = machine.load(head.K.block(tile.keys), "K");
        rows.for_each([&](Row& row) {
          compute_scores(machine, row.s, row.Q, K, head.rule, row.query, tile.keys);
        });
      }
      rows.for_each([&](Row& row) { update_softmax(machine, row.s, row.m, row.l, row.O); });
      const auto V = machine.load(head.V.block(tile.keys), "V");
      rows.for_each([&](Row& row) { machine.compute(Product{}, row.O, row.s, V); });
    });
    rows.for_each([&](Row& row) {
      machine.compute(FinishRows{}, row.O, row.m, row.l);
      machine.store(row.O, head.O.block(row.query));
      machine.store(row.m, head.LSE.block(row.query));
    });
  }
};

}  // namespace attest::schedules
