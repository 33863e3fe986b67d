#include "gpu/kernels/block_flash2/block_flash2.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/kernels/tiles/backward_lines.cuh"
#include "gpu/testing/call.hpp"
#include "gpu/testing/words.hpp"

/// gpu/block_flash2 on block masks: without one the tests of all forward kernels call it.
namespace attest::gpu {
namespace {

using testing::Call;

constexpr int kRows = 32;  // of the tiles that stay

struct Outcome {
  std::string diagnoses;
  std::vector<std::uint64_t> bits;  // of O, LSE, dQ, dK, dV

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Both directions, with the mask as given or another one.
Outcome outcome(const EmulatedKernel& kernel, Call& call, const simt::Emulation& emulation,
                const attest_block_mask* blocks) {
  attest_problem problem = *call.form.get();
  if (blocks != nullptr) problem.mask.blocks = blocks;
  attest_forward_args forward_args = call.forward_arguments(kernel.abi());
  forward_args.problem = &problem;
  EmulatedForward forward(forward_args);
  simt::LaunchReport report = kernel.directions().forward.run(forward, emulation);
  attest_backward_args backward_args = call.backward_arguments(kernel.abi());
  backward_args.problem = &problem;
  EmulatedBackward backward(backward_args);
  report += kernel.directions().backward.run(backward, emulation);
  return {report.to_string(), testing::bits_of({&call.O, &call.LSE, &call.dQ, &call.dK, &call.dV})};
}

Outcome over_lists(const char* text, const simt::Emulation& emulation = {},
                   const attest_block_mask* blocks = nullptr) {
  const EmulatedKernel& kernel = block_flash2_kernel();
  Call call(text, kernel.description().features);
  return outcome(kernel, call, emulation, blocks);
}

// The same pairs as a boolean mask: flash2 finds the same tiles, in the same order.
Outcome over_pairs(const char* text) {
  Call call(text);
  return outcome(flash2_kernel(), call, {}, nullptr);
}

TEST_CASE(
    "block lists: in every order of lanes and blocks the bits of gpu/flash2 with the mask's "
    "pairs, and nothing is wrong in any",
    "[gpu][block_flash2]") {
  for (const char* text : testing::block_problems()) {
    INFO(text);
    const Outcome expected = over_pairs(text);
    CHECK(testing::unwritten(expected.bits) == 0);
    for (const simt::Emulation& emulation : testing::checked_orders()) {
      const Outcome found = over_lists(text, emulation);
      CHECK(found.diagnoses.empty());
      CHECK(found.bits == expected.bits);
    }
  }
}

TEST_CASE("block lists: without a block mask the bits of gpu/flash2", "[gpu][block_flash2]") {
  for (const char* text :
       {"b=2,hq=4,hkv=2,sq=40,sk=70,d=24,dv=40,mask=causal_br",
        "sq=65,sk=65,d=5,mask=window_tl_7_3", "b=3,hq=2,sq=20,sk=50,d=16,mask=lengths_50_0_13",
        "hq=2,d=8,mask=cu_5x9_70x33+causal_br", "b=2,sq=5,sk=0,d=8",
        "hq=2,sq=33,sk=40,d=6,alibi=standard,strides=interleaved"}) {
    INFO(text);
    const Outcome found = over_lists(text);
    CHECK(found.diagnoses.empty());
    CHECK(found == over_pairs(text));
  }
}

// The problems are what they are said to be.
TEST_CASE("block lists: there are blocks of every size and masks with empty lists",
          "[gpu][block_flash2]") {
  int smaller = 0, equal = 0, larger = 0, across = 0, nothing = 0, empty_rows = 0, empty_keys = 0;
  for (const char* text : testing::block_problems()) {
    const Call call(text, block_flash2_kernel().description().features);
    const attest_problem& problem = *call.form.get();
    REQUIRE(problem.mask.blocks != nullptr);
    const attest_block_mask& mask = *problem.mask.blocks;
    smaller += mask.block_q < kRows ? 1 : 0;
    equal += mask.block_q == kRows && mask.block_k == kRows ? 1 : 0;
    larger += mask.block_q > kRows && mask.block_k > kRows ? 1 : 0;
    across += kRows % mask.block_k != 0 && mask.block_k % kRows != 0 ? 1 : 0;
    const auto empty_lists = [](const attest_lists& lists, std::int64_t lines) {
      int empty = 0;
      for (std::int64_t i = 0; i < lines; ++i) {
        empty += lists.offsets[i] == lists.offsets[i + 1] ? 1 : 0;
      }
      return empty;
    };
    const std::int64_t rows = tiles_of(problem.seqlen_q, mask.block_q);
    const std::int64_t columns = tiles_of(problem.seqlen_k, mask.block_k);
    nothing += mask.by_query.offsets[rows] == 0 ? 1 : 0;
    if (mask.by_query.offsets[rows] == 0) continue;
    empty_rows += empty_lists(mask.by_query, rows);
    empty_keys += empty_lists(mask.by_key, columns);
  }
  for (const int kind : {smaller, equal, larger, across, nothing, empty_rows, empty_keys}) {
    CHECK(kind > 0);
  }
}

TEST_CASE("block lists: blocks of any extent", "[gpu][block_flash2]") {
  const std::vector<std::int64_t> offsets{0, 1};
  const std::vector<std::int32_t> indices{0};
  const attest_lists one{offsets.data(), indices.data()};
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const attest_block_mask all{sizeof all, kLargest, kLargest, one, one};
  const char* const text = "hq=2,sq=40,sk=70,d=8,mask=causal_br";
  CHECK(over_lists(text, {}, &all) == over_pairs(text));
}

// The deliberately wrong subject: each direction walks the other's lists.
TEST_CASE("block lists: a mask whose lists are exchanged gives other bits", "[gpu][block_flash2]") {
  const auto exchanged = [](const char* text) {
    const Call call(text, block_flash2_kernel().description().features);
    attest_block_mask mask = *call.form.get()->mask.blocks;
    std::swap(mask.by_query, mask.by_key);
    return over_lists(text, {}, &mask);
  };
  const char* const symmetric = "sq=70,sk=70,d=4,mask=blockband_16_1";
  CHECK(exchanged(symmetric) == over_pairs(symmetric));
  const char* const text = "sq=70,sk=70,d=4,mask=block_16_40_1";
  CHECK_FALSE(exchanged(text) == over_pairs(text));
}

// Words of the lists that tiles of so many rows meet: of each list two offsets and every index.
std::int64_t words_of_lists(const attest_lists& lists, std::int64_t block, std::int64_t rows) {
  std::int64_t words = 0;
  for (std::int64_t first = 0; first < rows; first += kRows) {
    const std::int64_t last = std::min(first + kRows, rows) - 1;
    for (std::int64_t line = first / block; line <= last / block; ++line) {
      words += 4 + lists.offsets[line + 1] - lists.offsets[line];
    }
  }
  return words;
}

// Words of the lists of one query head and all sequences.
struct ListWords {
  std::int64_t by_query = 0, by_key = 0;
};

ListWords list_words(const Call& call) {
  const attest_block_mask& mask = *call.form.get()->mask.blocks;
  ListWords words;
  for (const attest::Sequence& sequence : call.problem.sequences()) {
    words.by_query += words_of_lists(mask.by_query, mask.block_q, sequence.q_length);
    words.by_key += words_of_lists(mask.by_key, mask.block_k, sequence.k_length);
  }
  return words;
}

// Counts the words of the schedule's lists of tiles: two offsets for each block, a word for each
// tile, and the pairs of partial tiles as bits.
std::int64_t words_of_tile_lists(std::int64_t blocks, const testing::TileWords& tiles) {
  return 2 * blocks + tiles.tiles + tiles.bit_words;
}

// Words that launches moved, and among them those of the lists.
struct Moved {
  MovedWords all;
  ListWords lists;
};

Moved moved_by(const simt::GlobalMemory& memory, const simt::LaunchReport& report) {
  MovedByTensor moved = moved_by_tensor(memory, report.traffic, DType::f32);
  const auto of = [&](const std::string& lists) {
    return moved[lists + " offsets"].reads + moved[lists + " indices"].reads;
  };
  return {total(moved), {of("by_query"), of("by_key")}};
}

// Nothing where they are: what launches moved beside a schedule, lists taken out of both.
bool same_but_lists(const Moved& moved, const std::string& schedule, const Problem& problem,
                    std::int64_t tile_lists, const MovedWords& saved = {}) {
  MovedWords left = moved.all + saved, counted = testing::counted_words(schedule, problem);
  left.reads -= moved.lists.by_query + moved.lists.by_key;
  counted.reads -= tile_lists;
  return left == counted;
}

bool forward_words_are_those_of(const std::string& schedule, const char* text) {
  const EmulatedKernel& kernel = block_flash2_kernel();
  Call call(text, kernel.description().features);
  EmulatedForward forward(call.forward_arguments(kernel.abi()));
  const Moved moved = moved_by(forward.memory, kernel.directions().forward.run(forward, {}));
  const std::int64_t heads = call.problem.num_heads_q;
  CHECK(moved.lists.by_query == heads * list_words(call).by_query);
  CHECK(moved.lists.by_key == 0);
  const testing::TileWords tiles = testing::visited_tiles(call.problem, kRows, kRows);
  return same_but_lists(moved, schedule, call.problem,
                        heads * words_of_tile_lists(tiles.query_blocks, tiles));
}

TEST_CASE("block lists: words moved forward are those of the schedule but for the lists",
          "[gpu][block_flash2][words]") {
  const char* const named = block_flash2_kernel().description().schedule;
  for (const char* text : testing::block_problems()) {
    INFO(text);
    CHECK(forward_words_are_those_of(named, text));
  }
  // The deliberately wrong subjects.
  const char* const text = testing::block_problems().front();
  CHECK_FALSE(forward_words_are_those_of("block_flash2:bq=32,bk=64", text));
  CHECK_FALSE(forward_words_are_those_of("block_flash2:bq=16,bk=32", text));
}

TEST_CASE("block lists: words moved backward are those of the schedule but for the lists",
          "[gpu][block_flash2][words]") {
  const EmulatedKernel& kernel = block_flash2_kernel();
  for (const char* text : testing::block_problems()) {
    for (const bool dlse : {false, true}) {
      INFO(text << (dlse ? " with dLSE" : ""));
      Call call(text, kernel.description().features);
      const Problem& p = call.problem;
      attest_backward_args args = call.backward_arguments(kernel.abi());
      if (!dlse) args.dLSE = nullptr;
      EmulatedBackward backward(args);
      const Moved moved = moved_by(backward.memory, kernel.directions().backward.run(backward, {}));
      CHECK(moved.lists.by_query == p.num_heads_q * list_words(call).by_query);
      CHECK(moved.lists.by_key == p.num_heads_q * list_words(call).by_key);
      const AttentionShape& shape = backward.arguments.shape;
      const std::int64_t passing = passing_rows(shape);
      const testing::TileWords rows = testing::visited_tiles(p, kRows, passing),
                               columns = testing::visited_tiles(p, passing, kRows);
      const std::int64_t tile_lists =
          p.num_heads_q * (words_of_tile_lists(rows.query_blocks, rows) +
                           words_of_tile_lists(columns.key_blocks, columns));
      const std::string schedule = block_two_pass_schedule(shape) + (dlse ? ",dlse=given" : "");
      CHECK(same_but_lists(moved, schedule, p, tile_lists,
                           testing::group_savings(p, passing, kRows)));
    }
  }
}

TEST_CASE("block lists: shared memory is what the emulation saw", "[gpu][block_flash2]") {
  const EmulatedKernel& kernel = block_flash2_kernel();
  Call call("sq=37,d=33,mask=block_8_50_1", kernel.description().features);
  EmulatedForward forward(call.forward_arguments(kernel.abi()));
  EmulatedBackward backward(call.backward_arguments(kernel.abi()));
  const auto planned = [](const LaunchPlan& plan) {
    std::int64_t most = 0;
    for (const PlannedLaunch& launch : plan.launches()) {
      most = std::max(most, launch.line.dynamic_shared_bytes + launch.line.static_shared_bytes);
    }
    return most;
  };
  const AttentionShape& shape = forward.arguments.shape;
  const EmulatedDirections& both = kernel.directions();
  CHECK(both.forward.run(forward, {}).shared_bytes == planned(both.forward.plan(shape)));
  CHECK(both.backward.run(backward, {}).shared_bytes == planned(both.backward.plan(shape)));
}

TEST_CASE("a form of a mask that a kernel does not claim is refused", "[gpu][block_flash2]") {
  const auto status = [](const EmulatedKernel& kernel, std::uint32_t features, const char* text) {
    Call call(text, features);
    const attest_status forward = call.forward(kernel.abi());
    CHECK(call.backward(kernel.abi()) == forward);
    const std::vector<std::uint64_t> bits = call.O.bits();
    CHECK(testing::unwritten(bits) == (forward == ATTEST_OK ? 0 : std::ssize(bits)));
    return forward;
  };
  const char *const blocks = "sq=9,d=4,mask=block_4_50_1", *const nm = "sq=9,d=4,mask=nm_1_2_1";
  CHECK(status(block_flash2_kernel(), ATTEST_BLOCK_MASK, blocks) == ATTEST_OK);
  CHECK(status(block_flash2_kernel(), ATTEST_BOOLEAN_MASK, blocks) == ATTEST_UNSUPPORTED);
  CHECK(status(flash2_kernel(), ATTEST_BOOLEAN_MASK, blocks) == ATTEST_OK);
  CHECK(status(flash2_kernel(), ATTEST_BLOCK_MASK, blocks) == ATTEST_UNSUPPORTED);
  CHECK(status(flash2_kernel(), ATTEST_CSR_MASK, blocks) == ATTEST_UNSUPPORTED);
  CHECK(status(flash2_kernel(), ATTEST_NM_MASK, nm) == ATTEST_UNSUPPORTED);
}

}  // namespace
}  // namespace attest::gpu
