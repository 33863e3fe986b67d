// Backward schedules of this room on random patterns, as schedules/lists/blocks/block_test does
// forward.

#include <cstdio>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "cpu/testing/judged_call.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/dense/key_stationary.hpp"
#include "schedules/dense/stored_gradients.hpp"
#include "schedules/dense/two_pass.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/lists/blocks/compact_gradients.hpp"
#include "schedules/lists/csr/csr_two_pass.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;
using testing::sparse_schedules;

const int kCases = attest::testing::is_nightly() ? 150 : 50;  // for each schedule

// Gradients of a schedule against the definition, from O and LSE of flash2.
double worst_gradient(const io::Schedule& schedule, Call& call) {
  BoundSchedule<Flash2>({4, 4}, *call.form.get()).run(call.forward_arguments());
  schedule.count({}, call.backward_arguments());
  const auto expected = cpu::testing::naive_backward(call);
  return std::max({cpu::testing::worst_ratio(call.dQ.view(), expected.dQ),
                   cpu::testing::worst_ratio(call.dK.view(), expected.dK),
                   cpu::testing::worst_ratio(call.dV.view(), expected.dV)});
}

// P alone, which some store, has no slope of a softcap.
bool keeps_scores(const std::string& family) {
  return family != "block_square_tiled_bwd" && family != "block_rank1_tiled_bwd" &&
         family != "block_query_stationary_p" && family != "block_held_pairs" &&
         family != "block_held_keys";
}

TEST_CASE("closed forms of sparse backward schedules", "[sparse][schedules]") {
  Rng rng(20261122);
  for (const auto& family : sparse_schedules().families()) {
    if (family->direction() != Direction::backward) continue;
    double worst = 0;
    for (int round = 0; round < kCases; ++round) {
      Problem problem = testing::random_problem_for(rng, *family);
      if (keeps_scores(family->name()) && rng.between(0, 3) == 0) problem.softcap = 2;
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      Call call(problem, rng.bits64(), {Memory::scattered, 1, 1, testing::dlse_of(text)});
      const auto schedule = sparse_schedules().make(text, *call.form.get(), io::FastMemory{});
      CHECK(schedule->spec().to_string() == text);
      worst = std::max(worst, worst_gradient(*schedule, call));
      REQUIRE(worst <= 1);
      testing::check_counts(*schedule, call.backward_arguments());
    }
    std::printf("%-22s worst error / bound %.3f\n", family->name().c_str(), worst);
  }
}

TEST_CASE("sixteen-bit tensors beside four-byte indices", "[sparse][schedules]") {
  Rng rng(5);
  for (const auto& family : sparse_schedules().families()) {
    for (int round = 0; round < 20; ++round) {
      Problem problem = testing::random_problem_for(rng, *family);
      problem.dtype = round % 2 == 0 ? DType::bf16 : DType::f16;
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      Call call(problem, rng.bits64(), {Memory::spelled, 1, 1, testing::dlse_of(text)});
      const auto schedule = sparse_schedules().make(text, *call.form.get(), io::FastMemory{});
      if (family->direction() == Direction::forward) {
        testing::check_counts(*schedule, call.forward_arguments());
      } else {
        BoundSchedule<Flash2>({4, 4}, *call.form.get()).run(call.forward_arguments());
        testing::check_counts(*schedule, call.backward_arguments());
      }
    }
  }
}

TEST_CASE("gradient words over lists are those of free skipping and the lists",
          "[sparse][schedules]") {
  Rng rng(12);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = testing::random_pattern_problem(rng, Direction::backward);
    const AbiProblem form(problem, 1);
    const auto tile = [&rng] { return rng.between(1, 9); };
    const std::int64_t bq = tile(), bk = tile(), cq = tile(), ck = tile();
    INFO(problem.to_string() << " " << bq << " x " << bk << ", " << cq << " x " << ck);
    io::Words stationary, passes;
    for (const Sequence& sequence : problem.sequences()) {
      const io::Words heads = problem.num_heads_q;
      const auto one = testing::list_words(problem, sequence, bq, bk);
      const auto other = testing::list_words(problem, sequence, cq, ck);
      stationary += heads * (2 * one.key_blocks + one.tiles + one.bits + 1 + one.idle_query_blocks);
      passes += heads * (2 * one.query_blocks + one.tiles + one.bits + 2 * other.key_blocks +
                         other.tiles + other.bits);
    }
    const auto words = [&](const auto& schedule) { return heads_cost(schedule, *form.get()); };
    const io::Traffic dense = words(KeyStationary{bq, bk});
    CHECK(words(BlockKeyStationary{bq, bk}).reads == dense.reads + HeadShape::real(stationary));
    CHECK(words(BlockKeyStationary{bq, bk}).writes == dense.writes);
    const io::Traffic both = words(TwoPass{bq, bk, cq, ck});
    CHECK(words(BlockTwoPass{bq, bk, cq, ck}).reads == both.reads + HeadShape::real(passes));
    CHECK(words(BlockTwoPass{bq, bk, cq, ck}).writes == both.writes);
  }
}

// P and dS are read for each group of columns, and the list with them.
TEST_CASE("words of stored gradients over every tile are the dense ones and the lists",
          "[sparse][schedules]") {
  Rng rng(13);
  for (int round = 0; round < 100; ++round) {
    const std::int64_t q = rng.between(1, 19), k = rng.between(1, 19), d = rng.between(1, 9),
                       dv = rng.between(1, 9), b = rng.between(1, 9);
    const Problem problem = Problem::parse("sq=" + std::to_string(q) + ",sk=" + std::to_string(k) +
                                           ",d=" + std::to_string(d) + ",dv=" + std::to_string(dv) +
                                           ",mask=blockband_1_99");
    INFO(problem.to_string() << " in tiles of " << b);
    const AbiProblem form(problem, 1);
    const io::Words blocks_q = io::tiles(q, b), blocks_k = io::tiles(k, b),
                    tiles = blocks_q * blocks_k;
    const io::Words groups = io::tiles(d, b), all_groups = groups + io::tiles(dv, b);
    const io::Words lists = 3 * 2 * blocks_q + 2 * blocks_k + tiles * (2 + groups + 2 * all_groups);
    const auto check = [&](const auto& listed, const auto& dense) {
      const io::Traffic words = heads_cost(listed, *form.get());
      const io::Traffic expected = heads_cost(dense, *form.get());
      CHECK(words.reads == expected.reads + HeadShape::real(lists));
      CHECK(words.writes == expected.writes);
    };
    check(BlockSquareTiledBackward{b}, SquareTiledBackward{b});
    check(BlockRank1TiledBackward{b, b, b}, Rank1TiledBackward{b, b});
    check(BlockQueryStationaryP{b, b, b}, QueryStationaryP{b, b, b, b});
  }
}

// Pair by pair: what listed tiles hold, and the bits of those with a hidden pair, read once.
TEST_CASE("words of stored gradients over partial tiles", "[sparse][schedules]") {
  Rng rng(15);
  for (int round = 0; round < 100; ++round) {
    const std::int64_t q = rng.between(1, 19), k = rng.between(1, 19), b = rng.between(1, 6);
    const std::int64_t dk = 5, dv = 3;
    const Problem problem = Problem::parse(
        "sq=" + std::to_string(q) + ",sk=" + std::to_string(k) + ",d=5,dv=3,mask=pairs_" +
        std::to_string(rng.between(5, 60)) + "_" + std::to_string(round));
    INFO(problem.to_string() << " in tiles of " << b);
    const Sequence sequence = problem.sequences().front();
    const auto lists = testing::list_words(problem, sequence, b, b);
    std::int64_t nz_q = 0, nz_k = 0, nz = 0;
    for (const io::Range& rows : io::single_blocks(q, b)) {
      for (const io::Range& keys : io::single_blocks(k, b)) {
        bool seen = false;
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
          for (std::int64_t j = keys.begin; j < keys.end; ++j) {
            seen = seen || problem.mask.visible(sequence, i, j);
          }
        }
        if (!seen) continue;
        nz_q += rows.count();
        nz_k += keys.count();
        nz += rows.count() * keys.count();
      }
    }
    const std::int64_t T = lists.query_blocks, U = lists.key_blocks, t = lists.tiles;
    const std::int64_t Gk = (dk + b - 1) / b, Gv = (dv + b - 1) / b;
    const std::int64_t reads = 2 * q * dv + (dk + dv) * (nz_q + nz_k) + 2 * q + nz + 6 * T + 2 * t +
                               lists.bits + nz_k * dk + Gk * (nz + t) + nz_q * (dk + dv) +
                               (Gk + Gv) * (nz + 2 * t) + 2 * U;
    const AbiProblem form(problem, 1);
    CHECK(heads_cost(BlockRank1TiledBackward{b, b, b}, *form.get()).reads.words == reads);
    CHECK(heads_cost(BlockSquareTiledBackward{b}, *form.get()).reads.words == reads);
  }
}

// A walk whose blocks of keys read the lists of queries instead of the transpose.
struct NotTransposed : TileList {
  NotTransposed(const ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block_q,
                std::int64_t block_k, Stay stays)
      : TileList(rule, q, k, block_q, block_k, Stay::queries), stay(stays) {}

  template <io::Machine M>
  struct Tiles {
    ListedTiles<M> listed;
    Stay stay;

    bool empty() const { return listed.empty(); }

    template <class Body>
    void for_each(const Body& body) const {
      listed.for_each([&](const TileList::Entry& tile) {
        const bool right = stay == Stay::queries;
        body(PassingTile{right ? tile.queries : tile.keys, right ? tile.keys : tile.queries});
      });
    }
  };

  template <io::Machine M>
  Tiles<M> open(M& machine, io::Range block) const {
    return {ListedTiles<M>(machine, *this, block), stay};
  }

  Stay stay;
};

struct WrongTranspose {
  using Head = BackwardHead;
  static constexpr const char* kName = "wrong_transpose";
  static std::vector<Parameter<WrongTranspose>> parameters() {
    return {{"b", &WrongTranspose::block, Extent::any}};
  }
  std::int64_t block;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    TwoPassOver<NotTransposed>{block, block, block, block}.run(machine, head);
  }

  io::Traffic cost(const BackwardHead& head) const {
    return BlockTwoPass{block, block, block, block}.cost(head);
  }
};

TEST_CASE("gradients over a list that is not the transpose are noticed", "[sparse][schedules]") {
  const auto ratio = [](const char* mask) {
    const Problem problem = Problem::parse(std::string("sq=13,sk=13,d=4,dv=3,mask=") + mask);
    Call call(problem, 3, {Memory::spelled, 1, 1, Dlse::absent});
    return worst_gradient(BoundSchedule<WrongTranspose>({4}, *call.form.get()), call);
  };
  CHECK(ratio("blockband_4_1") <= 1);  // equals its transpose
  CHECK_FALSE(ratio("block_4_40_3") <= 1);
}

// Keys of one residue are seen by the same queries, and lie apart.
TEST_CASE("grouping gathers the queries and the keys of a strided pattern", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=32,sk=32,d=4,mask=dilated_inf_inf_4");
  const AbiProblem form(problem, 1);
  const auto words = [&](std::int64_t order) {
    return heads_cost(CsrTwoPass{8, 8, order}, *form.get()).total_words();
  };
  // Rows that stay: O, dO, Q, LSE, D and dQ of queries; K, V, dK and dV of keys.
  const std::int64_t stay = 32 * (4 + 4 + 4 + 1 + 1 + 4) + 32 * 4 * 4;
  const std::int64_t key = 4 + 4, query = 4 + 4 + 2, blocks = 4;
  // Eight rows in a row meet all 32, two of them each one: bits, one word for each.
  CHECK(words(kNatural) == stay + blocks * 32 * (key + query) + 2 * blocks * (2 + 32 * 2));
  // Eight of one residue meet the same 8: no bits, but a word for each row.
  CHECK(words(kGrouped) == stay + blocks * 8 * (key + query) + 2 * (blocks * (2 + 8) + 32));
}

// Grouped keys whose dK go to their places in the order, not to their own.
struct StoresKeysInOrder {
  using Head = BackwardHead;
  static constexpr const char* kName = "stores_keys_in_order";
  static std::vector<Parameter<StoresKeysInOrder>> parameters() {
    return {{"b", &StoresKeysInOrder::block, Extent::any}};
  }
  std::int64_t block;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    BackwardHead moved = head;
    moved.dK = machine.workspace(head.K.rows(), head.K.columns(), "dK");
    gathered().run(machine, moved);
    const auto order =
        RowOrder::grouped(head.rule, head.Q.rows(), head.K.rows(), block, Stay::keys).rows();
    for (std::size_t place = 0; place < order.size(); ++place) {
      const auto to = static_cast<std::int64_t>(place);
      auto dK = machine.scratch(1, head.K.columns(), "dK");
      machine.load_into(dK, moved.dK.block({order[place], order[place] + 1}));
      machine.store(dK, head.dK.block({to, to + 1}));
    }
  }
  CsrTwoPass gathered() const { return {block, block, kGrouped}; }
  io::Traffic cost(const BackwardHead& head) const { return gathered().cost(head); }
};

TEST_CASE("keys stored in the order of their groups are noticed", "[sparse][schedules]") {
  const auto ratio = [](const char* mask) {
    const Problem problem = Problem::parse(std::string("sq=13,sk=13,d=4,dv=3,mask=") + mask);
    Call call(problem, 3, {Memory::spelled, 1, 1, Dlse::absent});
    return worst_gradient(BoundSchedule<StoresKeysInOrder>({4}, *call.form.get()), call);
  };
  CHECK(ratio("blockband_4_0") <= 1);  // in order already
  CHECK_FALSE(ratio("pairs_40_3") <= 1);
}

}  // namespace
}  // namespace attest::schedules
