#pragma once

#include "schedules/dense/passes.hpp"
#include "schedules/walks/lists/gathered_rows.hpp"
#include "schedules/walks/lists/tile_list.hpp"

/// The passes of schedules/dense/passes.hpp over blocks of rows that share what they see
/// (RowOrder), with tiles of one key, or one query. A block first reads its places in the order, a
/// word each, which stay; what it makes goes to the rows' own places.
///
/// Cost: that of the passes over the lists of that order, and a word for each row of a block
///       read and held; blocks without a tile go row by row
namespace attest::schedules {

/// A query that stays while keys pass by.
template <class M>
struct GradientQuery {
  GradientQuery(io::Range row, M* machine, const BackwardHead* head)
      : query(row),
        dO(machine->load(head->dO.block(query), "dO")),
        D(machine->scratch(1, 1, "D")),
        dQ(machine->scratch(1, head->Q.columns(), "dQ")),
        Q(machine->load(head->Q.block(query), "Q")),
        LSE(machine->load(head->LSE.block(query), "LSE")) {
    machine->compute(Fill{0}, dQ);
  }

  io::Range query;
  decltype(std::declval<M&>().load(std::declval<const io::SlowMatrix&>(), "")) dO;
  decltype(std::declval<M&>().scratch(1, 1, "")) D, dQ;
  decltype(dO) Q, LSE;
};

/// A key that stays while queries pass by.
template <class M>
struct GradientKey {
  GradientKey(io::Range row, M* machine, const BackwardHead* head)
      : key(row),
        dK(machine->scratch(1, head->K.columns(), "dK")),
        dV(machine->scratch(1, head->V.columns(), "dV")),
        K(machine->load(head->K.block(key), "K")),
        V(machine->load(head->V.block(key), "V")) {
    begin_sums(*machine, *head, key, dK, dV);
  }

  io::Range key;
  decltype(std::declval<M&>().scratch(1, 1, "")) dK, dV;
  decltype(std::declval<M&>().load(std::declval<const io::SlowMatrix&>(), "")) K, V;
};

/// dQ and D; step as for query_pass, once for each query of a tile.
template <io::Machine M, class Step>
void gathered_query_pass(M& machine, const BackwardHead& head, const io::MutableSlowMatrix& D_slow,
                         std::int64_t dlse, std::int64_t block_q, const Step& step) {
  const std::int64_t q = head.Q.rows(), k = head.K.rows();
  const RowOrder order = RowOrder::grouped(head.rule, q, k, block_q, Stay::queries);
  const TileList list(head.rule, q, k, block_q, 1, Stay::queries, order.rows());
  machine.parallel_tiles(list.blocks(), block_q, [&](auto& block, io::Range places) {
    const ListedTiles keys(block, list, places);
    const auto permutation = block.load(order.matrix().block(places), "row_order");
    if (keys.empty()) {
      for (std::int64_t place = places.begin; place < places.end; ++place) {
        const io::Range query = order.row(place);
        {
          const auto dO = block.load(head.dO.block(query), "dO");
          auto D = block.scratch(1, 1, "D");
          store_row_sums(block, head, D_slow, dlse, query, dO, D);
        }
        auto dQ = block.scratch(1, head.Q.columns(), "dQ");
        block.compute(Fill{0}, dQ);
        block.store(dQ, head.dQ.block(query));
      }
      return;
    }
    using Row = GradientQuery<std::remove_reference_t<decltype(block)>>;
    GatheredRows<Row> rows(order, places, &block, &head);
    rows.for_each(
        [&](Row& row) { store_row_sums(block, head, D_slow, dlse, row.query, row.dO, row.D); });
    keys.for_each([&](const TileList::Entry& tile) {
      const auto K = block.load(head.K.block(tile.keys), "K");
      const auto V = block.load(head.V.block(tile.keys), "V");
      rows.for_each([&](Row& row) {
        step(block, row.dQ, row.Q, row.dO, row.LSE, row.D, K, V, PassingTile{row.query, tile.keys});
      });
    });
    rows.for_each([&](Row& row) { block.store(row.dQ, head.dQ.block(row.query)); });
  });
}

/// dK and dV; step as for key_pass, once for each key of a tile.
template <io::Machine M, class Step>
void gathered_key_pass(M& machine, const BackwardHead& head, const io::SlowMatrix& D_slow,
                       std::int64_t block_k, const Step& step) {
  const std::int64_t q = head.Q.rows(), k = head.K.rows();
  const RowOrder order = RowOrder::grouped(head.rule, q, k, block_k, Stay::keys);
  const TileList list(head.rule, q, k, 1, block_k, Stay::keys, order.rows());
  machine.parallel_tiles(list.blocks(), block_k, [&](auto& block, io::Range places) {
    const ListedTiles queries(block, list, places);
    const auto permutation = block.load(order.matrix().block(places), "row_order");
    if (queries.empty()) {
      for (std::int64_t place = places.begin; place < places.end; ++place) {
        const io::Range key = order.row(place);
        auto dK = block.scratch(1, head.K.columns(), "dK");
        auto dV = block.scratch(1, head.V.columns(), "dV");
        begin_sums(block, head, key, dK, dV);
        block.store(dK, head.dK.block(key));
        block.store(dV, head.dV.block(key));
      }
      return;
    }
    using Row = GradientKey<std::remove_reference_t<decltype(block)>>;
    GatheredRows<Row> rows(order, places, &block, &head);
    queries.for_each([&](const TileList::Entry& tile) {
      const auto Q = block.load(head.Q.block(tile.queries), "Q");
      const auto dO = block.load(head.dO.block(tile.queries), "dO");
      const auto LSE = block.load(head.LSE.block(tile.queries), "LSE");
      const auto D = block.load(D_slow.block(tile.queries), "D");
      rows.for_each([&](Row& row) {
        step(block, row.dK, row.dV, row.K, row.V, Q, dO, LSE, D,
             PassingTile{tile.queries, row.key});
      });
    });
    rows.for_each([&](Row& row) {
      block.store(row.dK, head.dK.block(row.key));
      block.store(row.dV, head.dV.block(row.key));
    });
  });
}

}  // namespace attest::schedules
