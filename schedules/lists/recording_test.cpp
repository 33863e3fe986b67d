// Schedules over lists are legal pebblings with the words they count. The index words they read
// say what to compute: they are no vertices, and taken off the claim.
#include <string>
#include <type_traits>
#include <vector>

#include "core/problem.hpp"
#include "core/testing/catch.hpp"
#include "io/recording/trace_text.hpp"
#include "io/recording/word_move.hpp"
#include "schedules/dense/flash1.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/dense/key_stationary.hpp"
#include "schedules/dense/two_pass.hpp"
#include "schedules/lists/blocks/compact_gradients.hpp"
#include "schedules/lists/blocks/compact_scores.hpp"
#include "schedules/lists/blocks/held_keys.hpp"
#include "schedules/lists/blocks/held_pairs.hpp"
#include "schedules/lists/blocks/held_scores.hpp"
#include "schedules/lists/csr/csr_gather.hpp"
#include "schedules/lists/csr/csr_two_pass.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/dags.hpp"
#include "schedules/testing/pebblings.hpp"

namespace attest::schedules {
namespace {

using testing::Normalization;
using Shape = io::AttentionShape;

// Tiles of the masks, which a schedule's tiles may divide: none of them is partial.
constexpr std::int32_t kMaskQ = 2, kMaskK = 2;

const testing::IndexMatrices kIndices{"tile_list", "transposed_list", "idle_list", "tile_places",
                                      "row_order"};

template <class S, class DagOf>
void forward(const S& schedule, const DagOf& dag_of) {
  testing::check_masked<S, attest_forward_args>(S::kName, testing::forward_inputs(), kMaskQ, kMaskK,
                                                schedule, forward_head, dag_of, kIndices);
}

template <class S>
void backward(const S& schedule) {
  testing::check_masked<S, attest_backward_args>(
      S::kName, testing::backward_inputs(), kMaskQ, kMaskK, schedule, backward_head,
      [](const Shape& shape) { return io::backward_dag(shape, io::Statistics::given); }, kIndices);
}

auto running(std::int32_t block_k) {
  return [block_k](const Shape& shape) {
    return io::forward_dag(shape, {io::Softmax::running_maximum, block_k, io::OneKeyRow::computed,
                                   io::LseWord::output});
  };
}

auto normalized(Normalization where, std::int32_t block_k) {
  return [where, block_k](const Shape& shape) {
    return testing::normalized_forward(shape, where, block_k);
  };
}

auto factored(std::int32_t keys) {
  return [keys](const Shape& shape) {
    const auto queries = static_cast<std::size_t>(shape.seqlen_q);
    return testing::factored_forward(shape, std::vector<std::int32_t>(queries, keys));
  };
}

TEST_CASE("forward schedules over lists are legal pebblings", "[sparse][schedules]") {
  for (const std::int32_t block_q : {1, 2}) {
    for (const std::int32_t block_k : {1, 2}) {
      forward(BlockFlash2{block_q, block_k}, running(block_k));
      forward(BlockFlash1{block_q, block_k}, normalized(Normalization::tiles, block_k));
      for (const std::int32_t held : {1, 2}) {
        forward(BlockHeldScores{block_q, block_k, held}, factored(held * block_k));
      }
    }
    for (const std::int64_t order : {kNatural, kGrouped}) {
      forward(CsrGather{block_q, order}, running(1));
    }
    forward(BlockSquareTiled{block_q}, normalized(Normalization::stored, block_q));
  }
  forward(BlockRank1Tiled{2, 1, 2}, normalized(Normalization::stored, 1));
  forward(BlockRank1Tiled{1, 2, 1}, normalized(Normalization::stored, 2));
}

TEST_CASE("backward schedules over lists are legal pebblings", "[sparse][schedules]") {
  for (const std::int64_t block_q : {1, 2}) {
    for (const std::int64_t block_k : {1, 2}) {
      backward(BlockKeyStationary{block_q, block_k});
      backward(BlockTwoPass{block_q, block_k, block_k, block_q});
      backward(CsrTwoPass{block_q, block_k});
      backward(CsrTwoPass{block_q, block_k, kGrouped});
      backward(BlockHeldPairs{block_q, block_k, block_q, block_k, block_q * block_k});
      for (const std::int64_t held : {1, 2}) backward(BlockHeldKeys{block_k, block_q, held});
    }
    backward(BlockSquareTiledBackward{block_q});
    backward(BlockHeldPairs{2, 2, 2, 2, 2 + block_q});
    backward(BlockRank1TiledBackward{block_q, 3 - block_q, 2});
    backward(BlockQueryStationaryP{block_q, 3 - block_q, 2});
  }
}

// Lines of a trace, parsed and written again.
class ReadBack : public io::WordMoveSink {
 public:
  void take(const io::WordMove& move) override {
    const std::string line = io::to_text(move);
    REQUIRE(io::to_text(io::parse_word_move(line)) == line);
    ++lines;
  }
  std::int64_t lines = 0;
};

TEST_CASE("every schedule's moves are lines of a trace that can be read", "[recording]") {
  constexpr std::int64_t kFastWords = 400;
  for (const auto& family : all_schedules().families()) {
    ReadBack lines;
    for (const char* mask : {"none", "block_4_50_1", "random_30_1", "nm_2_4_1"}) {
      const Problem problem = Problem::parse("sq=12,d=4,mask=" + std::string(mask));
      const AbiProblem form(problem, 1);
      INFO(family->name() << " " << mask);
      try {
        const auto capacity = io::FastMemory::of_words(kFastWords);
        family->make({family->name(), {}}, *form.get(), capacity)->record(capacity, lines);
      } catch (const io::NotForProblem&) {
        continue;
      }
    }
    INFO(family->name());
    CHECK(lines.lines > 0);
  }
}

}  // namespace
}  // namespace attest::schedules
