#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/pebble/attention_dag.hpp"
#include "io/recording/pebbles.hpp"
#include "io/recording/recording_machine.hpp"
#include "schedules/engine/direction_of.hpp"
#include "schedules/engine/heads.hpp"
#include "schedules/engine/trace.hpp"

/// A schedule as a pebbling: recorded word by word, followed to the vertices of a computation that
/// knows no schedule, judged by rules R1 to R4 with the counted words.
namespace attest::schedules::testing {

inline constexpr int kPebblings = 12;  // for each schedule

/// The words that slow memory holds at the start: matrices of these names, columns with one index.
io::InputName inputs_of(const std::vector<std::pair<std::string, std::string>>& names);
const io::InputName& forward_inputs();
const io::InputName& backward_inputs();

struct Pebbling {
  io::PebbleTrace pebbles;
  io::Claim claim;
};

/// Matrices of words that say what to compute, not what with: they are words read, and no vertices.
using IndexMatrices = std::vector<std::string>;

/// Takes the loads of such words out of a run; how many there were.
std::int64_t take_out(const IndexMatrices& indices, std::vector<io::WordMove>& moves);

template <class S>
Pebbling pebbling_of(const S& schedule, const typename S::Head& head, const io::Dag& dag,
                     const io::InputName& inputs, const IndexMatrices& indices = {}) {
  std::vector<io::WordMove> moves;
  io::RecordingMachine machine(io::FastMemory{}, moves);
  schedule.run(machine, head);
  machine.backend().require_streams_used();
  const io::Traffic traffic = machine.traffic();
  CHECK(traffic == schedule.cost(head));
  const std::int64_t index_words = take_out(indices, moves);
  Pebbling pebbling{as_pebbles(dag, moves, inputs), {}};
  // Rule R3 puts a result beside the operand whose place it takes: one pebble more.
  pebbling.claim = {traffic.reads.words.value() - index_words - pebbling.pebbles.constant_reads,
                    traffic.writes.words.value() - pebbling.pebbles.constant_writes,
                    traffic.peak.words.value() + 1};
  return pebbling;
}

/// Legal as it is; not with a move deleted or doubled, or with neighbours swapped of which one
/// needs the other.
void check_legal(const io::Dag& dag, const Pebbling& pebbling, Rng& rng);

struct Sizes {
  io::AttentionShape shape;
  Problem problem;
};

/// Sizes with a mask of whole tiles: no query sees one key alone. Forward some see none; backward
/// each has delta formed, and its O is no word of a computation that does not need it.
Sizes masked_sizes(Rng& rng, Direction direction, std::int64_t block_q, std::int64_t block_k);

/// A schedule on masks of whole tiles of block_q x block_k.
template <class S, class Arguments, class HeadOf, class DagOf>
void check_masked(const std::string& name, const io::InputName& inputs, std::int64_t block_q,
                  std::int64_t block_k, const S& schedule, const HeadOf& head_of,
                  const DagOf& dag_of, const IndexMatrices& indices = {}) {
  Rng rng(7);
  for (int round = 0; round < kPebblings; ++round) {
    const Sizes sizes =
        masked_sizes(rng, DirectionOf<typename S::Head>::kDirection, block_q, block_k);
    const AbiProblem form(sizes.problem, 1);
    Arguments args{};
    args.problem = form.get();
    INFO(name << " round " << round);
    const io::Dag dag = dag_of(sizes.shape);
    check_legal(dag, pebbling_of(schedule, head_of(args, HeadIndex{0, 0}), dag, inputs, indices),
                rng);
  }
}

}  // namespace attest::schedules::testing
