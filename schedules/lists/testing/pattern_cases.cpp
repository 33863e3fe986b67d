#include "schedules/lists/testing/pattern_cases.hpp"

#include <algorithm>
#include <vector>

#include "schedules/register.hpp"

namespace attest::schedules::testing {
namespace {

std::string text(std::int64_t value) { return std::to_string(value); }

// Two documents of lengths that add up.
std::string two_documents(Rng& rng, std::int64_t queries, std::int64_t keys) {
  const std::int64_t q = rng.between(0, queries), k = rng.between(0, keys);
  return "documents_" + text(q) + "x" + text(k) + "_" + text(queries - q) + "x" + text(keys - k);
}

std::string random_pattern(Rng& rng, std::int64_t queries, std::int64_t keys) {
  const auto number = [&rng](std::int64_t least, std::int64_t most) {
    return text(rng.between(least, most));
  };
  const std::string blocks = number(1, 6) + "x" + number(1, 6), percent = number(0, 70);
  const std::string seed = number(0, 99);
  switch (rng.between(0, 11)) {
    case 0:
      return "block_" + blocks + "_0_1";
    case 1:
      return "blockband_" + blocks + "_" + number(0, 2);
    case 2:
      return "butterfly_" + blocks;
    case 3:
      return "rows_" + percent + "_" + seed;
    case 4:
      return "columns_" + percent + "_" + seed;
    case 5:
      return "global_" + number(0, 2) + "_" + number(0, 4) + "_" + number(0, 4);
    case 6: {
      const std::int64_t group = rng.between(0, 4) == 0 ? rng.between(6, 256) : rng.between(1, 5);
      return "nm_" + number(1, group) + "_" + text(group) + "_" + seed;
    }
    case 7:
      return "pairs_" + percent + "_" + seed;
    case 8: {
      const std::string left = number(0, 6), right = number(0, 6);
      return "dilated_" + left + "_" + right + "_" + number(1, 4);
    }
    case 9:
      return two_documents(rng, queries, keys);
    default:
      return "block_" + blocks + "_" + percent + "_" + seed;
  }
}

std::string small_band(Rng& rng) {
  const std::string widths = text(rng.between(0, 7)) + "_" + text(rng.between(0, 7));
  switch (rng.between(0, 3)) {
    case 0:
      return "causal_br";
    case 1:
      return "causal_tl";
    case 2:
      return "window_" + widths;
    default:
      return "window_tl_" + widths;
  }
}

}  // namespace

Problem random_pattern_problem(Rng& rng, Direction direction) {
  const auto length = [&] { return rng.between(0, 19) == 0 ? 0 : rng.between(1, 19); };
  const std::int64_t heads = rng.between(1, 2);
  const std::int64_t group = rng.between(0, 3) == 0 ? rng.between(2, 3) : 1;
  const std::int64_t queries = length(), keys = length();
  std::string problem = "b=" + text(rng.between(1, 2)) + ",sq=" + text(queries) +
                        ",sk=" + text(keys) + ",d=" + text(rng.between(1, 9)) +
                        ",dv=" + text(rng.between(1, 9)) + ",hkv=" + text(heads) +
                        ",hq=" + text(group * heads) + ",mask=";
  if (rng.between(0, 4) == 0) {
    problem += small_band(rng);
  } else {
    problem += random_pattern(rng, queries, keys) + (rng.between(0, 4) == 0 ? "+causal_br" : "");
  }
  if (rng.between(0, 3) == 0) problem += ",alibi=standard";
  if (direction == Direction::forward && rng.between(0, 3) == 0) problem += ",softcap=2";
  if (rng.between(0, 3) == 0) problem += ",scale=-0.5";
  return Problem::parse(problem);
}

Problem random_problem_for(Rng& rng, const io::ScheduleFamily& family) {
  while (true) {
    Problem problem = random_pattern_problem(rng, family.direction());
    const AbiProblem form(problem, 1);
    try {
      family.make({family.name(), {}}, *form.get(), {});
      return problem;
    } catch (const io::NotForProblem&) {
      continue;  // another
    }
  }
}

const io::ScheduleRegistry& sparse_schedules() {
  static const io::ScheduleRegistry registry = [] {
    io::ScheduleRegistry all;
    register_list_schedules(all);
    return all;
  }();
  return registry;
}

ListWords list_words(const Problem& problem, const Sequence& sequence, std::int64_t block_q,
                     std::int64_t block_k) {
  const std::int64_t q = sequence.q_length, k = sequence.k_length;
  ListWords words;
  words.key_blocks = (k + block_k - 1) / block_k;
  for (std::int64_t row = 0; row < q; row += block_q) {
    ++words.query_blocks;
    const std::int64_t before = words.tiles;
    for (std::int64_t column = 0; column < k; column += block_k) {
      std::int64_t visible = 0, pairs = 0;
      for (std::int64_t i = row; i < std::min(row + block_q, q); ++i) {
        for (std::int64_t j = column; j < std::min(column + block_k, k); ++j) {
          ++pairs;
          if (problem.mask.visible(sequence, i, j)) ++visible;
        }
      }
      if (visible == 0) continue;
      ++words.tiles;
      if (visible < pairs) words.bits += (pairs + 31) / 32;
    }
    if (words.tiles == before) ++words.idle_query_blocks;
  }
  return words;
}

}  // namespace attest::schedules::testing
