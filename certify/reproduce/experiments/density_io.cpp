// Block-sparse attention: words against the density of the blocks.
#include <fmt/format.h>

#include <array>
#include <set>

#include "certify/reproduce/counted.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kHeadDim = 64, kBlock = 64, kFastWords = 6 * kHeadDim * kHeadDim;

// Block-sparse FlashAttention and its order of loops turned round.
struct ListedSchedule {
  const char* name;
  const char* dense;
  bool keys_stay;
};

constexpr std::array kListed{ListedSchedule{"block_flash1", "flash1", true},
                             ListedSchedule{"block_flash2", "flash2", false}};

// Tiles are the blocks of the pattern.
std::string tiled(const std::string& schedule) {
  return fmt::format("{}:bq={},bk={}", schedule, kBlock, kBlock);
}

Problem block_sparse(std::int64_t seqlen, int percent) {
  return Problem::parse(
      fmt::format("sq={},d={},mask=block_{}_{}_1", seqlen, kHeadDim, kBlock, percent));
}

std::int64_t words_of(const Laboratory& lab, const std::string& schedule, const Problem& problem) {
  const auto counted = count_words(lab.schedules, tiled(schedule), problem, kFastWords);
  return counted ? counted->words : 0;
}

// Blocks that hold a pair, and the query and key blocks that do.
struct Occupied {
  std::int64_t blocks = 0, query_blocks = 0, key_blocks = 0;
};

Occupied occupied_of(const Problem& problem) {
  const CsrForm blocks = problem.mask.sparsity()->tiles(kBlock, kBlock).occupied;
  Occupied occupied;
  std::set<std::int32_t> keys(blocks.columns.begin(), blocks.columns.end());
  for (std::size_t row = 0; row + 1 < blocks.row_offsets.size(); ++row) {
    occupied.query_blocks += blocks.row_offsets[row + 1] > blocks.row_offsets[row] ? 1 : 0;
  }
  occupied.blocks = static_cast<std::int64_t>(blocks.columns.size());
  occupied.key_blocks = static_cast<std::int64_t>(keys.size());
  return occupied;
}

// Words of the lists: those of each block that stays begin and end somewhere, and name a block
// each.
std::int64_t list_words(const ListedSchedule& schedule, const Problem& problem) {
  const Occupied occupied = occupied_of(problem);
  const std::int64_t lines = schedule.keys_stay ? occupied.key_blocks : occupied.query_blocks;
  return 2 * lines + occupied.blocks;
}

// Proposition 4 says Theta(N d + N^2 d^2 s/M): a constant, what a block row or column costs that
// holds any block, and what a block costs. Three patterns give the three numbers, and then every
// other count must be theirs exactly.
Claim proportional(const Laboratory& lab, const ListedSchedule& schedule,
                   const std::vector<Problem>& problems, Curve& curve) {
  const std::int64_t seqlen = problems.front().seqlen_q;
  const std::int64_t none = words_of(lab, schedule.name, block_sparse(seqlen, 0));
  std::vector<std::int64_t> words, staying, blocks;
  for (const Problem& problem : problems) {
    const Occupied occupied = occupied_of(problem);
    blocks.push_back(occupied.blocks);
    staying.push_back(schedule.keys_stay ? occupied.key_blocks : occupied.query_blocks);
    words.push_back(words_of(lab, schedule.name, problem));
    curve.points.emplace_back(problem.mask.sparsity()->density(),
                              static_cast<double>(words.back()));
  }
  // The densest two have a block in every block row and column.
  const std::size_t last = problems.size() - 1;
  const std::int64_t added = blocks[last] - blocks[last - 1];
  const std::int64_t each = added > 0 ? (words[last] - words[last - 1]) / added : 0;
  const std::int64_t once = (words[last] - none - each * blocks[last]) / staying[last];
  std::size_t exact = 0;
  for (std::size_t k = 0; k <= last; ++k) {
    exact += none + once * staying[k] + each * blocks[k] == words[k] ? 1 : 0;
  }
  const double square = static_cast<double>(kBlock * kBlock),
               order = static_cast<double>(kHeadDim * kHeadDim) / static_cast<double>(kFastWords);
  return {fmt::format("{}: Theta(N d) words, and as many for each block", schedule.name),
          "Dao et al. 2022, Proposition 4",
          fmt::format("{} + {} for each of the {} blocks that stay + {} for each block, exactly at "
                      "{} of {} densities; {} words for a block are {:.2f} N^2 d^2 s/M",
                      none, once, schedule.keys_stay ? "key" : "query", each, exact,
                      problems.size(), each, static_cast<double>(each) / square / order),
          exact == problems.size() && each > 0 ? Outcome::reproduced : Outcome::not_reproduced};
}

Claim dense_is_density_one(const Laboratory& lab, std::int64_t seqlen) {
  const Problem all = block_sparse(seqlen, 100);
  int equal = 0, compared = 0;
  std::string words;
  for (const ListedSchedule& schedule : kListed) {
    const std::int64_t listed = words_of(lab, schedule.name, all),
                       lists = list_words(schedule, all),
                       masked = words_of(lab, schedule.dense, all),
                       dense = words_of(lab, schedule.dense, square_problem(seqlen, kHeadDim));
    compared += 2;
    equal += (listed == dense + lists ? 1 : 0) + (masked == dense && dense > 0 ? 1 : 0);
    words += fmt::format(
        "{}{} {}, {} of them its lists', {} {} with a mask of all pairs and {} "
        "without",
        words.empty() ? "" : "; ", schedule.name, listed, lists, schedule.dense, masked, dense);
  }
  return {"dense attention is block-sparse attention of density 1", "Dao et al. 2022, section 3.3",
          "words of all blocks: " + words,
          equal == compared ? Outcome::reproduced : Outcome::not_reproduced};
}

Curve level(const std::string& name, const Curve& beside, double y) {
  Curve curve{name, Curve::Kind::measured, {}};
  for (const auto& point : beside.points) curve.points.emplace_back(point.first, y);
  return curve;
}

Findings run(const Laboratory& lab) {
  const std::int64_t seqlen = lab.seqlen_or(1024, 4096);
  std::vector<Problem> problems;
  for (const int percent : {5, 10, 20, 40, 70, 100}) {
    problems.push_back(block_sparse(seqlen, percent));
  }
  const std::string title = fmt::format("N = {}, d = {}, blocks of {}", seqlen, kHeadDim, kBlock);
  Plot words{
      "density_io", title + fmt::format(", M = {}", kFastWords), "density", "words moved", {}};
  Findings findings;
  for (const ListedSchedule& schedule : kListed) {
    Curve curve{schedule.name, Curve::Kind::measured, {}};
    findings.claims.push_back(proportional(lab, schedule, problems, curve));
    const auto dense =
        static_cast<double>(words_of(lab, schedule.dense, square_problem(seqlen, kHeadDim)));
    const std::string name = std::string(schedule.dense) + ", dense";
    words.curves.push_back(level(name, curve, dense));
    words.curves.push_back(std::move(curve));
  }
  Curve bound{"greatest lower bound", Curve::Kind::bound, {}};
  for (const Problem& problem : problems) {
    bound.points.emplace_back(
        problem.mask.sparsity()->density(),
        static_cast<double>(lower_bound(Direction::forward, problem, kFastWords)));
  }
  words.curves.push_back(std::move(bound));
  findings.claims.push_back(dense_is_density_one(lab, seqlen));
  findings.plots = {std::move(words)};
  return findings;
}

}  // namespace

Experiment density_io_experiment() {
  return {"density_io",
          "words of block-sparse attention against density",
          {{"seqlen", 512, 16384, kBlock}},
          run,
          13};
}

}  // namespace attest::certify
