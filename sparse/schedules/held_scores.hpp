#pragma once

#include <deque>

#include "cpu/schedules/parameter.hpp"
#include "cpu/schedules/score_step.hpp"
#include "sparse/schedules/sparse_family.hpp"
#include "sparse/schedules/tile_list.hpp"

namespace attest::sparse {

using cpu::HeadShape;

/// All scores of a block of queries in fast memory, tile by tile, each with its record.
template <io::Machine M>
class HeldScores {
 public:
  struct Tile {
    Tile(M& machine, const io::SlowMatrix& record_words, const TileList::Entry& listed)
        : entry(listed),
          record(machine.load(record_words, record_words.name())),
          S(machine.scratch(listed.queries.count(), listed.keys.count(), "S")) {
      machine.compute(cpu::Fill{0}, S);
    }

    TileList::Entry entry;
    decltype(std::declval<M&>().load(std::declval<const io::SlowMatrix&>(), "")) record;
    decltype(std::declval<M&>().scratch(1, 1, "")) S;
  };

  explicit HeldScores(const ListedTiles<M>& tiles) { tiles.hold(tiles_); }
  HeldScores(const HeldScores&) = delete;
  HeldScores& operator=(const HeldScores&) = delete;
  ~HeldScores() {
    while (!tiles_.empty()) tiles_.pop_back();  // fast memory is a stack
  }

  template <class Body>
  void for_each(const Body& body) {
    for (Tile& tile : tiles_) body(tile);
  }

 private:
  std::deque<Tile> tiles_;
};

/// Query blocks stay with the scores of all their listed keys in place of rows of Q and O, whose
/// columns pass by, and with them the words of K and of V: Q is read and O written once, and as
/// many queries stay as have M scores. Moves fewer words than block_flash2 where queries see fewer
/// than dk + dv keys. Letters as in sparse/schedules/block_forward.hpp. Where bk is left open it is
/// the pattern's blocks.
///
/// Cost:   reads = ra dk + nz_k (dk + dv) + L, writes = q (dv + 1);
///         peak = max over the blocks of sum over their tiles (i j + r) + 2 i + 3
///         [sparse/schedules/block_test "closed forms"]
/// Source: ours.
struct BlockHeldScores {
  using Head = cpu::ForwardHead;
  static constexpr const char* kName = "block_held_scores";
  static constexpr const char* kDense = "flash2";
  static constexpr const char* kSummary =
      "query blocks stay with the scores of all listed keys; columns of Q, K, V and O pass by";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static constexpr bool kTilesOfPattern = true;  // of a dense score matrix no tiles would fit
  static std::vector<cpu::Parameter<BlockHeldScores>> parameters() {
    return {{"bq", &BlockHeldScores::block_q, cpu::Extent::queries},
            {"bk", &BlockHeldScores::block_k, cpu::Extent::keys}};
  }
  std::int64_t block_q, block_k;

  void prepare(const attest_problem& problem) {
    if (block_k == 0) block_k = std::max<std::int64_t>(grid_of(problem).keys, 1);
  }

  template <io::Machine M>
  void run(M& machine, const cpu::ForwardHead& head) const {
    const TileList list(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k,
                        ListsOf::queries);
    machine.parallel_tiles(list.blocks(), block_q, [&](auto& block, io::Range queries) {
      const ListedTiles tiles(block, list, queries);
      if (tiles.empty()) {
        return cpu::store_empty_rows(block, head.O.block(queries), head.LSE.block(queries), 1);
      }
      HeldScores held(tiles);
      form_scores(block, head, queries, held);
      form_probabilities(block, head, queries, held);
      form_outputs(block, head, queries, held);
    });
  }

  io::Traffic cost(const cpu::ForwardHead& head) const;

 private:
  template <class M>
  static void form_scores(M& machine, const cpu::ForwardHead& head, io::Range queries,
                          HeldScores<M>& held) {
    machine.for_tiles(cpu::all_columns(head.Q), 1, [&](io::Range l) {
      const auto Q = machine.load(head.Q.block(queries, l), "Q");
      held.for_each([&](auto& tile) {
        const auto K = machine.stream(head.K.block(tile.entry.keys, l), "K");
        machine.compute(cpu::Product{cpu::Form::second_transposed}, tile.S, Q, K);
      });
    });
  }

  template <class M>
  static void form_probabilities(M& machine, const cpu::ForwardHead& head, io::Range queries,
                                 HeldScores<M>& held) {
    auto m = machine.scratch(queries.count(), 1, "m");
    auto l = machine.scratch(queries.count(), 1, "l");
    machine.compute(cpu::StartRows{}, m, l);
    held.for_each([&](auto& tile) {
      machine.compute(cpu::FinishScores{head.rule, queries.begin, tile.entry.keys.begin}, tile.S);
      cpu::update_statistics(machine, m, l, tile.S);
    });
    machine.compute(cpu::LogSumExp{}, m, l);
    held.for_each([&](auto& tile) { machine.compute(cpu::Probabilities{}, tile.S, m); });
    machine.store(m, head.LSE.block(queries));
  }

  // Divided by their sums, because LSE is rounded.
  template <class M>
  static void form_outputs(M& machine, const cpu::ForwardHead& head, io::Range queries,
                           HeldScores<M>& held) {
    auto sums = machine.scratch(queries.count(), 1, "row sums");
    machine.compute(cpu::Fill{0}, sums);
    held.for_each([&](auto& tile) { machine.compute(cpu::AddRowSums{}, sums, tile.S); });
    machine.for_tiles(cpu::all_columns(head.V), 1, [&](io::Range c) {
      auto O = machine.scratch(queries.count(), 1, "O");
      machine.compute(cpu::Fill{0}, O);
      held.for_each([&](auto& tile) {
        const auto V = machine.stream(head.V.block(tile.entry.keys, c), "V");
        machine.compute(cpu::Product{}, O, tile.S, V);
      });
      machine.compute(cpu::DivideRows{}, O, sums);
      machine.store(O, head.O.block(queries, c));
    });
  }
};

}  // namespace attest::sparse
