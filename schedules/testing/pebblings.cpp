#include "schedules/testing/pebblings.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "io/pebble/game.hpp"
#include "io/pebble/testing/depend.hpp"

namespace attest::schedules::testing {
namespace {

using io::Dag;

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

// Neighbouring moves of which one needs the other, from a random place on.
void check_swaps(const Dag& dag, const Pebbling& pebbling, Rng& rng) {
  const std::vector<io::Move>& moves = pebbling.pebbles.moves;
  constexpr int kSwaps = 5;
  const auto count = static_cast<std::int64_t>(moves.size());
  int swaps = 0;
  for (std::int64_t past = 0, first = rng.between(0, count - 1); past < count && swaps < kSwaps;
       ++past, first = (first + 1) % count) {
    if (first + 1 == count) continue;
    std::vector<io::Move> swapped = moves;
    io::Move &one = swapped[static_cast<std::size_t>(first)],
             &other = swapped[static_cast<std::size_t>(first) + 1];
    if (one == other || !io::testing::depend(dag, one, other)) continue;
    std::swap(one, other);
    CHECK_FALSE(judge(dag, swapped, pebbling.claim).legal());
    ++swaps;
  }
  CHECK(swaps > 0);
}

}  // namespace

io::InputName inputs_of(const std::vector<std::pair<std::string, std::string>>& names) {
  return [names](const io::SlowWord& word) -> std::optional<io::VertexName> {
    for (const auto& [matrix, symbol] : names) {
      if (matrix != word.matrix) continue;
      const bool column = symbol == "lse" || symbol == "m" || symbol == "sum";
      if (column) return io::VertexName{symbol, {narrow(word.row)}};
      return io::VertexName{symbol, {narrow(word.row), narrow(word.column)}};
    }
    return std::nullopt;
  };
}

const io::InputName& forward_inputs() {
  static const io::InputName inputs = inputs_of({{"Q", "q"}, {"K", "k"}, {"V", "v"}});
  return inputs;
}

const io::InputName& backward_inputs() {
  static const io::InputName inputs =
      inputs_of({{"Q", "q"}, {"K", "k"}, {"V", "v"}, {"O", "O"}, {"dO", "dO"}, {"LSE", "lse"}});
  return inputs;
}

std::int64_t take_out(const IndexMatrices& indices, std::vector<io::WordMove>& moves) {
  return static_cast<std::int64_t>(std::erase_if(moves, [&](const io::WordMove& move) {
    return move.kind == io::WordMove::Kind::load &&
           std::find(indices.begin(), indices.end(), move.slow.matrix) != indices.end();
  }));
}

void check_legal(const Dag& dag, const Pebbling& pebbling, Rng& rng) {
  INFO(pebbling.pebbles.refusal.value_or("every word is one of the computation"));
  REQUIRE_FALSE(pebbling.pebbles.refusal);
  const io::Game game = judge(dag, pebbling.pebbles.moves, pebbling.claim);
  INFO(game.refusal.value_or("legal"));
  REQUIRE(game.legal());
  const auto last = static_cast<std::int64_t>(pebbling.pebbles.moves.size()) - 1;
  for (int round = 0; round < 5; ++round) {
    const auto index = rng.between(0, last);
    std::vector<io::Move> without = pebbling.pebbles.moves, twice = pebbling.pebbles.moves;
    without.erase(without.begin() + index);
    twice.insert(twice.begin() + index, pebbling.pebbles.moves[static_cast<std::size_t>(index)]);
    CHECK_FALSE(judge(dag, without, pebbling.claim).legal());
    CHECK_FALSE(judge(dag, twice, pebbling.claim).legal());
  }
  check_swaps(dag, pebbling, rng);
}

Sizes masked_sizes(Rng& rng, Direction direction, std::int64_t block_q, std::int64_t block_k) {
  constexpr std::int64_t kQueryTiles = 3, kKeyTiles = 3;
  Sizes sizes;
  io::AttentionShape& shape = sizes.shape;
  shape = {narrow(rng.between(1, kQueryTiles * block_q)),
           narrow(rng.between(2, kKeyTiles * block_k)),
           narrow(rng.between(1, 3)),
           narrow(rng.between(1, 3)),
           {}};
  const auto few = [&] {
    for (std::int32_t i = 0; i < shape.seqlen_q; ++i) {
      const std::size_t keys = shape.keys(i).size();
      if (keys == 1 || (keys == 0 && direction == Direction::backward)) return true;
    }
    return shape.visible.empty();
  };
  while (few()) {
    std::vector<std::uint8_t> tiles;
    for (std::int64_t tile = 0; tile < kQueryTiles * kKeyTiles; ++tile) {
      tiles.push_back(rng.between(0, 9) < 6 ? 1 : 0);
    }
    shape.visible.clear();
    for (std::int64_t i = 0; i < shape.seqlen_q; ++i) {
      for (std::int64_t j = 0; j < shape.seqlen_k; ++j) {
        const std::int64_t tile = i / block_q * kKeyTiles + j / block_k;
        shape.visible.push_back(tiles[static_cast<std::size_t>(tile)]);
      }
    }
  }
  Problem& problem = sizes.problem;
  problem.seqlen_q = shape.seqlen_q, problem.seqlen_k = shape.seqlen_k;
  problem.head_dim_qk = shape.head_dim_qk, problem.head_dim_v = shape.head_dim_v;
  problem.mask.boolean = std::make_shared<BooleanMask>(
      BooleanMask{shape.seqlen_q, shape.seqlen_k, shape.visible, "tiles"});
  return sizes;
}

}  // namespace attest::schedules::testing
