#include "certify/reproduce/claims/sparse_meeting.hpp"

#include <cmath>

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

// Words of schedules that move nnz^2 / M^nested and nnz sqrt(Z) / M^outer beyond what they must,
// with M cut to the last of every so many sizes, four to a factor of two.
struct Powers {
  double nested = 1, outer = 0.5;
  int rung = 1;
};

SparseSubject subject(std::int64_t entries, Powers powers) {
  constexpr std::int64_t kSeqlen = 512, kHeadDim = 128;
  SparseSubject made{kSeqlen, kHeadDim, entries, {}};
  made.words.nonzeros = 2 * kSeqlen * entries;
  made.words.pairs = kSeqlen * kSeqlen;
  const auto nnz = static_cast<double>(kSeqlen * entries);
  const auto pairs = static_cast<double>(made.words.pairs);
  made.dividing = {product_dividing_point(made.words)};
  for (int step = 0; step <= 120; ++step) {  // the last in one tile
    const double size = std::exp2(step / 4.0);
    const auto words = [&](double order, double power) {
      const double used = std::exp2((step - step % powers.rung) / 4.0);
      return made.words.nonzeros + std::llround(order / std::pow(used, power));
    };
    made.words.nested.push_back({words(nnz * nnz, powers.nested), std::llround(size)});
    made.words.outer.push_back({words(nnz * std::sqrt(pairs), powers.outer), std::llround(size)});
  }
  return made;
}

std::vector<Outcome> outcomes(Powers powers, int steps = 4) {
  std::vector<SparseSubject> subjects;
  for (const std::int64_t entries : {8, 16, 32, 64, 128})
    subjects.push_back(subject(entries, powers));
  std::vector<Outcome> found;
  const SparseForms forms{"words", "one", "other", "file", {{"nnz^2 / Z", "orders"}}};
  for (const Claim& claim : sparse_findings(subjects, steps, forms).claims)
    found.push_back(claim.outcome);
  return found;
}

TEST_CASE("the theorem's own words confirm it and altered words do not", "[reproduce]") {
  CHECK(outcomes({}) == std::vector{Outcome::reproduced, Outcome::reproduced, Outcome::corrected});
  CHECK(outcomes({.nested = 0.5})[0] == Outcome::not_reproduced);
  CHECK(outcomes({.outer = 1})[1] == Outcome::not_reproduced);
  // Five sizes and one step between them leave open which multiple of a half it is.
  CHECK(outcomes({.rung = 16}, 1)[1] == Outcome::not_compared);
  CHECK(outcomes({}, 1)[1] != Outcome::not_compared);
  CHECK(outcomes({.outer = 1}, 1)[1] == Outcome::not_reproduced);
  // The large-cache case always below the other.
  CHECK(outcomes({.nested = 1.5})[2] == Outcome::not_reproduced);
}

TEST_CASE("at the dividing point both orders are equal", "[reproduce]") {
  const io::AttentionEntries entries{5000, 64, 2000, 9000};
  const double words = dividing_point(entries);
  const auto order = [&](std::int64_t fast_words) {
    return io::sparse_attention_order(entries, {}, fast_words).leading;
  };
  // Below it 1/sqrt(M), above it 1/M: four times the memory is half and a quarter of the words.
  const auto near = static_cast<std::int64_t>(words);
  CHECK(order(near / 16) == Approx(2 * order(near / 16 * 4)));
  CHECK(order(4 * near) == Approx(4 * order(16 * near)));
  CHECK(order(near - 1) >= order(near + 1));
  // Dense, with Q, K and V of N d entries: 9 d^2 to leading order.
  const std::int64_t n = std::int64_t{1} << 30, d = 64;
  CHECK(std::lround(dividing_point({3 * n * d, d, n * d, n * n})) == 9 * d * d);
}

TEST_CASE("with a dense output the orders of the schedules are equal there", "[reproduce]") {
  const double nnz = 5000, dense = 40000, pairs = 9000;
  const double words = dense_output_dividing_point(nnz, dense, pairs);
  CHECK(nnz * (nnz + dense) / words ==
        Approx((nnz * std::sqrt(pairs) + std::sqrt(pairs * nnz * dense)) / std::sqrt(words)));
  // Dense inputs: d^2, where those of one product are.
  const double n = 1024, d = 64;
  CHECK(dense_output_dividing_point(n * d, n * d, n * n) == Approx(d * d));
}

TEST_CASE("dense attention as a special case is a constant ratio", "[reproduce]") {
  const auto curve = [](double factor, double power) {
    Curve made{"", Curve::Kind::measured, {}};
    for (int size = 64; size <= 4096; size *= 2) {
      made.points.emplace_back(size, factor * std::pow(size, power));
    }
    return made;
  };
  CHECK(dense_special_case("", curve(3e9, -1), curve(1e9, -1)).outcome == Outcome::reproduced);
  CHECK(dense_special_case("", curve(3e9, -0.5), curve(1e9, -1)).outcome ==
        Outcome::not_reproduced);
  Curve shorter = curve(1e9, -1);
  shorter.points.pop_back();
  CHECK(dense_special_case("", curve(3e9, -1), shorter).outcome == Outcome::not_compared);
}

}  // namespace
}  // namespace attest::certify
