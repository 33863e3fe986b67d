#pragma once

#include "schedules/engine/backward_step.hpp"
#include "schedules/walks/lists/tile_list.hpp"

/// Gradients of rows without a tile, word by word.
namespace attest::schedules {

/// dK and dV of keys that nobody sees: where their sums begin.
template <io::Machine M>
void begin_unseen_keys(M& machine, const BackwardHead& head, io::Range keys) {
  store_unseen(machine, sums_of_dK(head), keys);
  store_unseen(machine, sums_of_dV(head), keys);
}

/// dQ = 0 of the query blocks that a list of keys names as idle.
template <io::Machine M>
void store_idle_queries(M& machine, const BackwardHead& head, const TileList& list) {
  list.for_idle(machine,
                [&](M&, io::Range queries) { store_zero_words(machine, head.dQ, queries); });
}

}  // namespace attest::schedules
