#include <algorithm>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "io/bounds/dense/forward.hpp"

namespace attest::io {
namespace {

TEST_CASE("a report is approved", "[io][bounds]") {
  const KernelClass kernel;
  CHECK(report(kernel, forward_bounds(dense_extent(1024, 1024, 16, 16), kernel, 1025)) ==
        R"(class
  K1  fast memory is empty at the start and counts every word arithmetic touches
  K2  every score, every dP and every output is a sum of its own products
  K3  Q, K, V and dO do not share storage
  K4  only rows with at least two visible keys are counted
  K5  segments are whole numbers of transfers, rounded outward
  K6  one fast memory, or blocks that could run one after another
bounds
  compulsory_forward: lower bound (proved): 65,536 words  [rows>=2 d_k + columns>=2 d_k + columns d_v + q d_v; docs/theory/bounds/compulsory.md]
  scores_only: not applicable: range: fast_words is 1025; it must be at most 1024  [max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X) - Z, T = Z d_k, F(B) = (B/3)^(3/2), X d_k >= F(M+X); docs/theory/bounds/scores.md]
  scores_only_large: lower bound (proved): 262,666 words  [max_{X,Y} Y + X (h - 1) + 1, h = ceil((Z - F(Y))/F(M+X)) >= 1, F(B) = max(B, (B/2d_k)^2); at least Z d_k^2/M for M >= 2 d_k^2; docs/theory/bounds/scores.md]
  theorem_a: lower bound (proved): 1,047,793 words  [max_{X,Y} Y + X (h - 1) + 1, h = ceil((Z d_v - F(Y))/F(M+X)) >= 1; docs/theory/bounds/theorem-a.md]
  theorem_a_large: lower bound (proved): 1,047,553 words  [4Z d^2/M; docs/theory/bounds/theorem-a.md]
  theorem_b: not applicable: range: fast_words is 1025; it must be at most 1024  [max_X max(X (T - F(X)), M F(M+X) + X (T - F(M)))/F(M+X) - Z, T = Z (d_k + d_v), F(B) = (B/3)^(3/2), X d_k >= F(M+X); docs/theory/bounds/theorem-b.md]
  theorem_b_once: not applicable: once: the kernel may recompute; it does not declare that it evaluates once  [max_{X,Y} Y + X (h - 1) + 1 - Z, h = ceil((Z (d_k + d_v) - F(Y))/F(M+X)) >= 1, F(B) = (B/3)^(3/2); docs/theory/bounds/theorem-b.md]
greatest lower bound: 1,047,793 words, theorem_a
)");
}

TEST_CASE("a report tells what is declared", "[io][bounds]") {
  const KernelClass declares{.evaluation = Evaluation::once,
                             .movement = RowMovement::whole_index,
                             .saved = SavedOutputs::read};
  const std::string text = report(declares, {});
  CHECK_THAT(text, Catch::Contains("  declared: no score, P or dP is evaluated twice\n"
                                   "  declared: all rows of an index enter and leave together\n"
                                   "  declared: O and LSE of the forward pass are read\n"));
  CHECK_THAT(text, Catch::EndsWith("no lower bound applies\n"));
}

TEST_CASE("the greatest lower bound", "[io][bounds]") {
  CHECK_FALSE(greatest({}));
  const std::vector<Bound> bounds = forward_bounds(dense_extent(512, 512, 16, 16), {}, 64);
  std::int64_t words = 0;
  for (const Bound& bound : bounds) words = std::max(words, bound.words);
  REQUIRE(greatest(bounds));
  CHECK(greatest(bounds)->words == words);
  CHECK(greatest(bounds)->name == "theorem_b");
}

TEST_CASE("words of fast memory from bytes", "[io][bounds]") {
  CHECK(words_of_bytes(1000, 2) == 500);
  CHECK(words_of_bytes(7, 4) == 1);
  CHECK_THROWS_AS(words_of_bytes(3, 4), InvalidProblem);
  CHECK_THROWS_AS(words_of_bytes(3, 0), InvalidProblem);
}

}  // namespace
}  // namespace attest::io
