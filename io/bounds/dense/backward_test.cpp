#include "io/bounds/dense/backward.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/segments.hpp"

namespace attest::io {
namespace {

TEST_CASE("compulsory backward traffic", "[io][bounds]") {
  const KernelClass kernel;
  CHECK(compulsory_backward(dense_extent(4, 6, 2, 3), kernel).words == (4 + 6) * 5 + 4 * 2 + 6 * 5);
  // One-key rows: dS = 0, and dV sums dO.
  CHECK(compulsory_backward(dense_extent(4, 1, 2, 3), kernel).words == 4 * 3 + 4 * 2 + 5);
  const Extent causal = extent_of(Problem::parse("sq=3,sk=3,d=1,mask=causal_tl"));
  CHECK(compulsory_backward(causal, kernel).words == (2 + 3) * 2 + 1 + 3 + 3 * 2);
}

// Which words of one operand are usable, at random: rows x head_dim.
std::vector<std::vector<int>> usable(Rng& rng, std::int64_t rows, std::int64_t head_dim,
                                     std::int64_t percent) {
  std::vector<std::vector<int>> words(static_cast<std::size_t>(rows));
  for (auto& row : words) {
    for (std::int64_t c = 0; c < head_dim; ++c) row.push_back(rng.between(0, 99) < percent ? 1 : 0);
  }
  return words;
}

int sum(const std::vector<std::vector<int>>& words) {
  int total = 0;
  for (const auto& row : words) {
    for (const int word : row) total += word;
  }
  return total;
}

bool whole(const std::vector<int>& row) {
  for (const int word : row) {
    if (word == 0) return false;
  }
  return true;
}

TEST_CASE("G is the segment maximum of theorem C", "[io][bounds]") {
  Rng rng(5);
  const std::int64_t chances[] = {0, 50, 90, 100};
  const auto chance = [&] { return chances[rng.between(0, 3)]; };
  double closest = 0;
  for (int trial = 0; trial < 60000; ++trial) {
    const std::int64_t d = rng.between(1, 3);
    const std::int64_t rows = rng.between(1, 5);
    const std::int64_t columns = rng.between(1, 5);
    const auto q = usable(rng, rows, d, chance()), target = usable(rng, rows, d, chance()),
               dq = usable(rng, rows, d, chance());
    const auto k = usable(rng, columns, d, chance()), v = usable(rng, columns, d, chance()),
               dk = usable(rng, columns, d, chance()), dv = usable(rng, columns, d, chance());
    int words = sum(q) + sum(target) + sum(dq) + sum(k) + sum(v) + sum(dk) + sum(dv);
    int value = 0;
    const std::int64_t carried = rng.between(0, 2) * 40;
    for (std::size_t i = 0; i < q.size(); ++i) {
      for (std::size_t j = 0; j < k.size(); ++j) {
        const auto carry = [&] {
          const int word = rng.between(0, 99) < carried ? 1 : 0;
          words += word;
          return word == 1;
        };
        const bool weight = carry() || (whole(q[i]) && whole(k[j]));
        const bool product = carry() || (whole(target[i]) && whole(v[j]));
        const bool difference = carry() || (weight && product);
        for (std::size_t c = 0; c < static_cast<std::size_t>(d); ++c) {
          if (difference) value += 4 * (k[j][c] * dq[i][c] + q[i][c] * dk[j][c]);
          if (weight) value += 4 * (target[i][c] * dv[j][c]);
        }
      }
    }
    if (words == 0) continue;
    const double share =
        static_cast<double>(value) / static_cast<double>(d) / backward_segment_maximum(words, d);
    closest = std::max(closest, share);
    REQUIRE(share <= 1);
  }
  CHECK(closest > 0.95);  // it is reached: whole rows of everything
}

TEST_CASE("theorem C and its corollary", "[io][bounds]") {
  const KernelClass kernel;
  const Extent extent = dense_extent(16384, 16384, 16, 16);
  const auto pairs = static_cast<double>(extent.pairs);
  for (const std::int64_t theta : {5, 8, 16, 64}) {
    const std::int64_t fast_words = theta * 256;
    const Bound corollary = theorem_c_large(extent, kernel, fast_words);
    REQUIRE(corollary.is_lower_bound());
    CHECK(static_cast<double>(corollary.words) ==
          std::ceil(12 * pairs / static_cast<double>(theta)));
    // The lengths tried are 1/64 apart, and near the best length the value is flat.
    CHECK(theorem_c(extent, kernel, fast_words).words >=
          corollary.words - corollary.words / (64 * 64));
    // two_pass_row's leading term is 14/12 of it.
    CHECK(static_cast<double>(theorem_c(extent, kernel, fast_words).words) <=
          14 * pairs / static_cast<double>(theta));
  }
  // 128/27 d^2 = 1213.6
  CHECK_FALSE(theorem_c_large(extent, kernel, 1213).applies());
  CHECK(theorem_c_large(extent, kernel, 1214).applies());
  // d is the smaller head dimension.
  CHECK(theorem_c(dense_extent(512, 512, 16, 64), kernel, 2048).words ==
        theorem_c(dense_extent(512, 512, 16, 16), kernel, 2048).words);
}

// Products, of the five, that a segment does with the words that it can use.
struct Segment {
  double words = 0;
  BackwardProducts done;
};

// Every product of usable words, of random ones.
Segment random_segment(Rng& rng) {
  const std::int64_t chances[] = {0, 50, 100};
  const auto chance = [&] { return chances[rng.between(0, 2)]; };
  const std::int64_t d = rng.between(1, 5), rows = rng.between(1, 5), columns = rng.between(1, 5);
  const auto q = usable(rng, rows, d, chance()), target = usable(rng, rows, d, chance()),
             dq = usable(rng, rows, d, chance());
  const auto k = usable(rng, columns, d, chance()), v = usable(rng, columns, d, chance()),
             dk = usable(rng, columns, d, chance()), dv = usable(rng, columns, d, chance());
  const auto first = usable(rng, rows, columns, chance()),
             second = usable(rng, rows, columns, chance());
  Segment segment;
  for (const auto& operand : {q, target, dq, k, v, dk, dv, first, second}) {
    segment.words += sum(operand);
  }
  for (std::size_t i = 0; i < q.size(); ++i) {
    for (std::size_t j = 0; j < k.size(); ++j) {
      for (std::size_t c = 0; c < static_cast<std::size_t>(d); ++c) {
        segment.done.scores += first[i][j] * q[i][c] * k[j][c];
        segment.done.score_gradients += second[i][j] * (k[j][c] * dq[i][c] + q[i][c] * dk[j][c]);
        segment.done.values += second[i][j] * target[i][c] * v[j][c];
        segment.done.values += first[i][j] * target[i][c] * dv[j][c];
      }
    }
  }
  return segment;
}

TEST_CASE("a segment does no more of the five products than of one", "[io][bounds]") {
  Rng rng(7);
  // y, v: those of backward_small, of sparse inputs with few and many products into scores, and
  // two that are too great.
  const auto of = [](double scores, double gradients) {
    return best_backward_weights({scores, gradients, 0});
  };
  const BackwardWeights proved[] = {of(1, 2), of(0, 1), of(1, 0), of(1, 20)};
  const BackwardWeights too_great[] = {{1, 1}, {0.95, 0.95}};
  double closest = 0, beyond[] = {0, 0};
  const auto share = [](const Segment& segment, const BackwardWeights& weights) {
    const BackwardProducts& done = segment.done;
    return (weights.scores * done.scores + weights.score_gradients * done.score_gradients +
            done.values) /
           product_segment_maximum(segment.words);
  };
  for (int trial = 0; trial < 60000; ++trial) {
    const Segment segment = random_segment(rng);
    if (segment.words == 0) continue;
    for (const BackwardWeights& weights : proved) {
      const double of_maximum = share(segment, weights);
      REQUIRE(of_maximum <= 1);
      closest = std::max(closest, of_maximum);
    }
    for (std::size_t n = 0; n < 2; ++n) {
      beyond[n] = std::max(beyond[n], share(segment, too_great[n]));
    }
  }
  CHECK(closest == Approx(1));  // one product alone, of a cube
  CHECK(beyond[0] > 1);
  CHECK(beyond[1] > 1);
}

TEST_CASE("the weights make the bound the greatest", "[io][bounds]") {
  const BackwardWeights dense = best_backward_weights({1, 2, 0});
  CHECK(dense.scores == Approx(std::sqrt(0.75)));
  CHECK(dense.score_gradients == Approx(std::sqrt(0.75)));
  for (const double scores : {0., 0.1, 1., 10.}) {
    const BackwardWeights best = best_backward_weights({scores, 1, 0});
    const double value = best.scores * scores + best.score_gradients;
    for (int step = 0; step <= 100; ++step) {
      const double v = std::sqrt(0.5 + 0.005 * step);
      CHECK(2 * v * std::sqrt(1 - v * v) * scores + v <= rounded_up(value));
    }
    CHECK(backward_weighted_products({scores, 1, 3}) == Approx(value + 3));
  }
}

TEST_CASE("backward with a small cache", "[io][bounds]") {
  const KernelClass kernel;
  KernelClass once;
  once.evaluation = Evaluation::once;
  const Extent extent = dense_extent(4096, 4096, 64, 64);
  const auto pairs = static_cast<double>(extent.pairs);
  const auto per_pair = [&](std::int64_t fast_words) {
    const auto words = static_cast<double>(backward_small(extent, kernel, fast_words).words);
    return std::lround((words + 2 * static_cast<double>(fast_words)) / pairs * 10);
  };
  // (3 sqrt(3) + 4) a - 2 words a pair less 2M.
  CHECK(per_pair(64) == 716);
  CHECK(per_pair(1024) == 164);
  CHECK(per_pair(4096) == 72);
  // Recomputation is allowed up to 3 d_k^2 and 4 d_v^2 words.
  CHECK(backward_small(extent, kernel, 3 * 4096).applies());
  CHECK_FALSE(backward_small(extent, kernel, 3 * 4096 + 1).applies());
  const Extent narrow = dense_extent(512, 512, 64, 32);
  CHECK(backward_small(narrow, kernel, 4 * 1024).applies());
  CHECK_FALSE(backward_small(narrow, kernel, 4 * 1024 + 1).applies());
  CHECK(backward_small(narrow, once, 4 * 1024 + 1).applies());
  CHECK(backward_small(extent, once, 1024).words >= backward_small(extent, kernel, 1024).words);
  // Beyond it theorem C has more.
  CHECK(backward_small(extent, kernel, 2 * 4096).words > theorem_c(extent, kernel, 2 * 4096).words);
  CHECK(backward_small(extent, kernel, 3 * 4096).words < theorem_c(extent, kernel, 3 * 4096).words);
}

TEST_CASE("saved outputs that are read count beside all else", "[io][bounds]") {
  const Extent extent = extent_of(Problem::parse("sq=64,sk=64,d=8,dv=6,mask=causal_br"));
  KernelClass kernel;
  for (const std::int64_t fast_words : {16, 64, 4096}) {
    const std::vector<Bound> others = backward_bounds(extent, kernel, fast_words);
    CHECK(backward_saved_outputs(extent, kernel, fast_words, others).why_not() ==
          "saved: delta may come of P and dP");
    KernelClass reads;
    reads.saved = SavedOutputs::read;
    const Bound bound = backward_saved_outputs(extent, reads, fast_words, others);
    REQUIRE(bound.is_lower_bound());
    CHECK(bound.words == greatest(others)->words + 63 * (6 + 1));  // the first row sees one key
    reads.storage = Storage::unknown;
    CHECK_FALSE(backward_saved_outputs(extent, reads, fast_words, others).applies());
  }
}

TEST_CASE("rows with fewer than two keys count beside the others, backward", "[io][bounds]") {
  // 60 rows see a key each, two none, the last two 62 keys between them.
  Extent extent = dense_extent(64, 64, 8, 6);
  extent.rows_many = 2;
  extent.rows_one = 60;
  extent.columns_many = 61;
  extent.columns_seen = 63;
  extent.pairs = 62;
  const std::int64_t other = 62 * 8 + 60 * 6 + 3 * (8 + 6);
  for (const std::int64_t fast_words : {16, 64}) {
    const std::vector<Bound> others = backward_bounds(extent, {}, fast_words);
    std::int64_t most = 0;
    for (const Bound& bound : others) {
      if (bound.is_lower_bound() && bound.name != "compulsory_backward") {
        most = std::max(most, bound.words);
      }
    }
    const Bound bound = backward_other_rows(extent, {}, fast_words, others);
    REQUIRE(bound.is_lower_bound());
    CHECK(bound.words == most + other);
    // The bound takes nothing of itself, nor of one that counts all rows already.
    CHECK(backward_other_rows(extent, {}, fast_words, {bound, others.front()}).words == other);
  }
}

TEST_CASE("schedules that move whole indices have the bound with 14", "[io][bounds]") {
  KernelClass whole_index;
  const Extent extent = dense_extent(8192, 8192, 16, 16);
  CHECK_FALSE(backward_row_atomic(extent, whole_index, 4096).applies());
  whole_index.movement = RowMovement::whole_index;
  const Bound bound = backward_row_atomic(extent, whole_index, 4096);
  REQUIRE(bound.is_lower_bound());
  CHECK(bound.words == 14 * 8192 * 512 - 3 * 8192 * 16);
  // Two passes, for dQ and for dK and dV, reach its leading term (words of the schedule by hand:
  // query rows of 3d + 2 words against one key, key rows of 4d against one query).
  const std::int64_t queries = (4096 - 2 * 16 - 2) / (3 * 16 + 2);
  const std::int64_t keys = (4096 - 2 * 16 - 4) / (4 * 16);
  const auto passes = [](std::int64_t block) { return (8192 + block - 1) / block; };
  const std::int64_t moved = 8192 * (3 * 16 + 1) + passes(queries) * 8192 * 32 + 8192 * 17 +
                             8192 * 32 + passes(keys) * 8192 * 34 + 8192 * 32;
  CHECK(moved >= bound.words);
  CHECK(moved * 100 <= bound.words * 115);
  const Bound conjecture = backward_conjecture(extent, {}, 4096);
  CHECK(conjecture.leading == 14. * 8192 * 512);
  CHECK(conjecture.label() == "leading order, no lower bound (conjectured)");
}

TEST_CASE("a single pass of whole rows has the bound with 16", "[io][bounds]") {
  const Extent extent = dense_extent(8192, 8192, 16, 16);
  const std::int64_t once = 7 * 8192 * 16;
  const auto bound_of = [&](const KernelClass& kernel, std::int64_t fast_words) {
    return backward_single_pass(extent, kernel, fast_words,
                                backward_bounds(extent, kernel, fast_words));
  };
  KernelClass kernel;
  kernel.evaluation = Evaluation::once;
  CHECK(bound_of(kernel, 4096).why_not() == "rows: rows may move word by word");
  kernel.movement = RowMovement::whole_index;
  const Bound bound = bound_of(kernel, 4096);
  REQUIRE(bound.is_lower_bound());
  const std::int64_t events = theorem_c(extent, kernel, 4096).words;
  CHECK(3 * bound.words >= 4 * events - once);
  CHECK(3 * bound.words < 4 * events - once + 3);
  CHECK(bound.words > backward_row_atomic(extent, kernel, 4096).words);
  CHECK(bound.words >= 16 * 8192 * 512 - once / 3);
  // With fast memory for everything nothing comes twice.
  CHECK(bound_of(kernel, std::int64_t{1} << 40).words == once);
  // Key blocks that stay move little more (words by hand: key rows of 4d against one query of 3d).
  const std::int64_t keys = (4096 - 3 * 16 - 2) / (4 * 16), passes = (8192 + keys - 1) / keys;
  const std::int64_t moved = 8192 * 4 * 16 + 8192 * (4 * passes - 1) * 16;
  CHECK(moved >= bound.words);
  CHECK(moved * 100 <= bound.words * 105);
  // A kernel that recomputes has no such bound, and a bound that counts more than events says
  // nothing of it.
  kernel.evaluation = Evaluation::may_recompute;
  CHECK_FALSE(bound_of(kernel, 4096).applies());
  kernel.evaluation = Evaluation::once;
  Bound small = backward_small(extent, kernel, 64);
  CHECK(small.words > 2 * backward_single_pass(extent, kernel, 4096, {small}).words);
  CHECK(backward_single_pass(extent, kernel, 4096, {small}).words == once);
}

// The proof's table: the value of a visit against the cost of an arrival times the size of what is
// present, for every choice of what is updated.
TEST_CASE("no visit is worth more than it is charged", "[io][bounds]") {
  for (const int d_q : {0, 1}) {
    for (const int d_k : {0, 1}) {
      for (const int d_v : {0, 1}) {
        const int value = 6 * d_q + 4 * d_k + 4 * d_v;
        const int difference = d_q + d_k > 0 ? 1 : 0;  // dS is formed: v is needed
        const int query_size = 2 + d_q, query_cost = 2 + 2 * d_q;
        const int key_size = 1 + difference + d_k + d_v;
        const int key_cost = 1 + difference + 2 * (d_k + d_v);
        CHECK(value <= key_cost * query_size);
        CHECK(value <= query_cost * key_size);
      }
    }
  }
}

TEST_CASE("backward bounds are monotone in fast_words", "[io][bounds]") {
  KernelClass once;
  once.evaluation = Evaluation::once;
  for (const char* text :
       {"sq=64,sk=64,d=8", "sq=33,sk=129,d=16,dv=5", "hq=4,hkv=2,sq=40,sk=40,d=6,mask=causal_br"}) {
    const Extent extent = extent_of(Problem::parse(text));
    std::vector<Bound> before = backward_bounds(extent, once, 1);
    for (std::int64_t fast_words = 2; fast_words <= 4000; fast_words += 1 + fast_words / 16) {
      const std::vector<Bound> now = backward_bounds(extent, once, fast_words);
      for (std::size_t index = 0; index < now.size(); ++index) {
        if (!now[index].applies() || !before[index].applies()) continue;
        INFO(text << " " << now[index].name << " fast_words " << fast_words);
        CHECK(now[index].words <= before[index].words);
      }
      before = now;
    }
  }
  CHECK_THROWS_AS(backward_bounds(dense_extent(2, 2, 1, 1), {}, 0), InvalidProblem);
}

}  // namespace
}  // namespace attest::io
