// Probes with an exact answer: no tolerance at all (docs/theory/error-bounds/exact-probes.md).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/exactness.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

constexpr std::int64_t kBase = 3;  // of the digits of a key, each of which has so many columns

std::int64_t digits_for(std::int64_t keys) {
  std::int64_t digits = 1;
  for (std::int64_t reach = kBase; reach < keys; reach *= kBase) ++digits;
  return digits;
}

std::int64_t digit(std::int64_t j, std::int64_t position) {
  for (; position > 0; --position) j /= kBase;
  return j % kBase;
}

// A permutation of 0 .. n-1.
std::int64_t permuted(std::int64_t i, std::int64_t n, std::uint64_t seed) {
  auto step = static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(n)) | 1;
  while (std::gcd(step, n) != 1) step += 2;
  return (step * i + static_cast<std::int64_t>(seed / 7 % static_cast<std::uint64_t>(n))) % n;
}

// Sets the only scale of a kernel with one, which must be a power of two as well; where the scale
// follows from the head dimension, sets a dimension that gives a power of two.
void set_only_scale(const attest_description& description, std::int64_t needed, Problem& p) {
  const attest_limits* const limits = description.limits;
  if (limits == nullptr || (limits->only & ATTEST_ONLY_ONE_SCALE) == 0) return;
  const auto power_of_two = [](double scale) {
    int exponent = 0;
    return scale > 0 && std::frexp(scale, &exponent) == 0.5;
  };
  p.softmax_scale.reset();
  if (limits->softmax_scale != 0) p.softmax_scale = limits->softmax_scale;
  const bool equal = p.head_dim_v == p.head_dim_qk;
  constexpr std::int64_t kLargest = 1024;
  for (std::int64_t dim = 4; !power_of_two(p.scale()) && dim <= kLargest; dim *= 4) {
    if (dim < needed || !claims_head_dim(description, dim)) continue;
    p.head_dim_qk = dim;
    if (equal) p.head_dim_v = dim;
  }
  if (power_of_two(p.scale())) return;
  stop(Verdict::unsupported, "not claimed: a softmax_scale that is a power of two");
}

// The key that has all the weight of query i: of those it sees one of the last, so that few
// queries have the same; without a mask each has its own.
std::int64_t target_of(const Problem& p, std::int64_t i, std::uint64_t seed) {
  if (!p.mask.banded()) return permuted(i, p.seqlen_k, seed);
  constexpr std::int64_t kNear = 4;
  const KeyRange range = p.mask.band(p.sequences().front(), i);
  const std::int64_t reach = std::min(range.end - range.begin, kNear);
  const std::uint64_t back =
      mix(seed, static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(reach);
  return range.end - 1 - static_cast<std::int64_t>(back);
}

Problem probe_problem(const attest_kernel& kernel, const Case& c) {
  Problem p = plain_problem(c.problem);
  p.seqlen_q = p.seqlen_k = std::max(p.seqlen_q, p.seqlen_k);
  p = within_limits(kernel.description, p);
  const std::int64_t needed = kBase * digits_for(p.seqlen_k);
  if (p.head_dim_qk < needed) p.head_dim_qk = nearest_head_dim(kernel.description, needed);
  if ((kernel.description.features & ATTEST_HEAD_DIM_V) == 0) p.head_dim_v = p.head_dim_qk;
  p.softmax_scale = 0.125;  // a power of two: folding it into Q stays exact
  set_only_scale(kernel.description, needed, p);
  if (p.head_dim_qk < needed) stop(Verdict::unsupported, "not claimed: so wide a head");
  return p;
}

bool every_row_sees(const Problem& p) {
  const Sequence sequence = p.sequences().front();
  for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
    const KeyRange range = p.mask.band(sequence, i);
    if (range.begin == range.end) return false;
  }
  return true;
}

double odd_integer(Rng& rng) {  // never 0: an exp that does not reach 0 would leak unseen
  const auto odd = static_cast<double>(2 * rng.between(0, 3) + 1);
  return rng.between(0, 1) == 0 ? odd : -odd;
}

// Factor of Q that makes scores of other keys small enough at any scale.
double steepness(const Problem& p) {
  constexpr double kScale = 0.125;
  return (p.dtype == DType::f64 ? 256 : 64) * (kScale / p.scale());
}

// For the key that query i points at a score of exactly 0, whatever Q is multiplied with before:
// every product is 0. At most -256 for every other (-1024 in f64, where exp(-256) is not 0): one of
// its digits differs, and each that does adds as much. All numbers are powers of two.
InputValues one_hot_values(const Problem& p, std::uint64_t seed) {
  InputValues in = make_values(p, Values::integers, seed);
  const std::int64_t columns = kBase * digits_for(p.seqlen_k);
  const double steep = steepness(p);
  const auto has_digit = [](std::int64_t key, std::int64_t column) {
    return digit(key, column / kBase) == column % kBase;
  };
  in.K = mapped(in.K, [&](auto, auto j, auto, auto c) -> double {
    return c < columns && has_digit(j, c) ? 32 : 0;
  });
  in.Q = mapped(in.Q, [&](auto, auto i, auto, auto c) -> double {
    return c < columns && !has_digit(target_of(p, i, seed), c) ? -steep : 0;
  });
  Rng rng(seed, 11);
  in.V = mapped(in.V, [&](auto, auto, auto, auto) { return odd_integer(rng); });
  in.dO = mapped(in.dO, [&](auto, auto, auto, auto) { return odd_integer(rng); });
  in.dLSE = mapped(in.dLSE, [](auto, auto, auto, auto) { return 0.0; });
  return in;
}

constexpr double kLargestValue = 7;  // of odd_integer

// Tells whether the contract promises every result of the one-hot probe bit for bit.
bool one_hot_is_exact(const Numerics& numerics, const Problem& p, Direction direction) {
  const double values = kLargestValue * kLargestValue * static_cast<double>(p.head_dim_v);
  const double group = kLargestValue * static_cast<double>(p.group_size());
  if (!weighs_exactly(numerics) || !adds_exactly(numerics, {kLargestValue, kLargestValue})) {
    return false;
  }
  if (direction == Direction::forward) return true;
  // dP = delta, and dV: of each head of a group one dO.
  return adds_exactly(numerics, {kLargestValue, std::max(values, group)}) &&
         holds_integers(numerics.dp_roundoff, values) &&
         holds_integers(numerics.gqa_partial_roundoff, kLargestValue) &&
         holds_integers(numerics.dkv_roundoff, group) &&
         holds_integers(numerics.gqa_sum_roundoff, group);
}

// dV of the one-hot probe: of each key the sum of dO over the rows that point at it.
Tensor collected_dO(const Problem& p, const InputValues& in, const Tensor& like,
                    std::uint64_t seed) {
  Tensor sums = mapped(no_error(like).sigma, [](auto, auto, auto, auto) { return 0.0; });
  mapped(in.dO, [&](auto b, auto i, auto h, auto x) {
    const std::int64_t j = target_of(p, i, seed), kv = h / p.group_size();
    sums.set(sums(b, j, kv, x) + in.dO(b, i, h, x), b, j, kv, x);
    return 0.0;
  });
  return mapped(
      like, [&](auto b, auto j, auto h, auto x) { return round_to(p.dtype, sums(b, j, h, x)); });
}

// Where a contract does not promise the exact result, what it does promise.
LawResult judged_within_bounds(const attest_kernel& kernel, const Problem& p, const InputValues& in,
                               Direction direction, const Case& c) {
  const Solved solved(kernel, p, in, direction, c);
  return judged(solved.truth.judge(solved.run));
}

LawResult check_one_hot(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const Problem p = probe_problem(kernel, c);
    const Direction direction = furthest(kernel, p);
    require_claimed(kernel, p, direction);
    if (p.seqlen_k < 2) stop(Verdict::vacuous, "one key has all the weight anyway");
    if (const double steep = steepness(p); round_to(p.dtype, steep) != steep) {
      stop(Verdict::unsupported,
           "not claimed: a scale at which such scores are numbers of the type");
    }
    if (p.mask.banded() && !every_row_sees(p)) stop(Verdict::vacuous, "a query sees no key");
    const InputValues in = one_hot_values(p, c.seed);
    if (!one_hot_is_exact(resolve(kernel.description.numerics, p.dtype), p, direction)) {
      return judged_within_bounds(kernel, p, in, direction, c);
    }
    const KernelRun run = complete(kernel, p, in, direction, c);
    std::vector<Comparison> found;
    const Tensor O = mapped(run.O, [&](auto b, auto i, auto h, auto x) {
      return in.V(b, target_of(p, i, c.seed), h / p.group_size(), x);
    });
    found.push_back(compare_bits(run.O.view(), O.view()));
    if ((kernel.description.features & ATTEST_LSE) != 0) {
      const Tensor zero = mapped(run.LSE, [](auto, auto, auto, auto) { return 0.0; });
      found.push_back(compare_bits(run.LSE.view(), zero.view()));
    }
    if (direction == Direction::forward) return judged(found);
    found.push_back(compare_bits(run.dV.view(), collected_dO(p, in, run.dV, c.seed).view()));
    for (const Tensor* gradient : {&run.dQ, &run.dK}) {
      const Tensor zero = mapped(*gradient, [](auto, auto, auto, auto) { return 0.0; });
      found.push_back(compare_bits(gradient->view(), zero.view()));
    }
    return judged(found);
  });
}

// Tells whether the contract promises the mean of so many equal weights to the last bit: integers
// of at most 4 are added, and their sum divided by a power of two.
bool mean_is_exact(const Numerics& numerics, std::int64_t keys) {
  constexpr double kLargest = 4, kLeastNormalHalf = 0x1p-14;
  const auto count = static_cast<double>(keys);
  // A weight 1 / n is normal in whatever P is cast to.
  const bool normal = numerics.normalize == CastOrder::after || numerics.p_underflow == 0 ||
                      count * kLeastNormalHalf <= 1;
  return normal && weighs_exactly(numerics) && numerics.lse_splits == 0 &&
         adds_exactly(numerics, {kLargest, kLargest * count});
}

// The most keys, a power of two, that are not above `keys` and claimed; where none is, the fewest
// above. Stops where no power of two is.
std::int64_t uniform_keys(const attest_kernel& kernel, std::int64_t keys) {
  const Range claimed = claimed_keys(kernel.description);
  constexpr std::int64_t kMostAbove = 4096;
  std::int64_t found = 0;
  for (std::int64_t power = 1; power <= (found == 0 ? kMostAbove : keys); power *= 2) {
    if (claimed.contains(power)) found = power;
  }
  if (found < 2 && claimed.most < 2) stop(Verdict::unsupported, "not claimed: several keys");
  if (found == 0) stop(Verdict::unsupported, "not claimed: 2^n keys");
  return found;
}

LawResult check_uniform(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    Problem p = plain_problem(kernel, c.problem);
    const std::int64_t keys = uniform_keys(kernel, p.seqlen_k);
    if (keys == 1) stop(Verdict::vacuous, "one key");
    const bool equal = p.seqlen_q == p.seqlen_k;
    if (equal && claimed_queries(kernel.description).contains(keys)) p.seqlen_q = keys;
    p.seqlen_k = keys;
    require_claimed(kernel, p, Direction::forward);
    InputValues in = make_values(p, Values::integers, c.seed);
    in.Q = mapped(in.Q, [](auto, auto, auto, auto) { return 0.0; });
    if (!mean_is_exact(resolve(kernel.description.numerics, p.dtype), keys)) {
      return judged_within_bounds(kernel, p, in, Direction::forward, c);
    }
    const KernelRun run = complete(kernel, p, in, Direction::forward, c);
    const Sequence sequence = p.sequences().front();
    const Tensor O = mapped(run.O, [&](auto b, auto i, auto h, auto x) {
      const KeyRange seen = p.mask.band(sequence, i);
      const std::int64_t count = seen.end - seen.begin;
      // Under a causal mask some rows see 2^n keys.
      if (count == 0 || (count & (count - 1)) != 0) return run.O(b, i, h, x);
      double sum = 0;
      for (std::int64_t j = seen.begin; j < seen.end; ++j) sum += in.V(b, j, h / p.group_size(), x);
      return sum / static_cast<double>(count);
    });
    return judged({compare_bits(run.O.view(), O.view())});
  });
}

}  // namespace

std::vector<Law> probe_laws() {
  return {replacing_mask(
              {"one_hot_probe",
               "score 0 for one key and below -200 for all others: O is that row of V, LSE = 0, dV "
               "collects dO, dQ = dK = 0, all exactly where the contract promises it",
               check_one_hot}),
          replacing_mask({"uniform_probe",
                          "Q = 0 over 2^n keys: O is the mean of integer V, rounded once",
                          check_uniform})};
}

}  // namespace attest::proptest
