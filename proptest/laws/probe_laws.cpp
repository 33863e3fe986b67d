// Probes with an exact answer: no tolerance at all (docs/theory/error-bounds.md, "Exact probes").
#include <algorithm>
#include <numeric>

#include "core/rng.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trial.hpp"

namespace attest::proptest {
namespace {

constexpr std::int64_t kBase = 8;
constexpr std::int64_t kCoordinates = 3;  // per digit

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

Problem probe_problem(const attest_kernel& kernel, const Case& c) {
  Problem p = plain_problem(c.problem);
  p.seqlen_q = p.seqlen_k = std::max(p.seqlen_q, p.seqlen_k);
  const std::int64_t multiple = std::max<std::int64_t>(kernel.description.head_dim_multiple, 1);
  const std::int64_t needed = kCoordinates * digits_for(p.seqlen_k);
  if (p.head_dim_qk < needed) p.head_dim_qk = (needed + multiple - 1) / multiple * multiple;
  if ((kernel.description.features & ATTEST_HEAD_DIM_V) == 0) p.head_dim_v = p.head_dim_qk;
  p.softmax_scale = 0.125;  // a power of two: folding it into Q stays exact
  return p;
}

double odd_integer(Rng& rng) {  // never 0: an exp that does not reach 0 would leak unseen
  const auto odd = static_cast<double>(2 * rng.between(0, 3) + 1);
  return rng.between(0, 1) == 0 ? odd : -odd;
}

// Scores of exactly 0 for key permuted(i), at most -256 for every other (-1024 in f64, where
// exp(-256) is not 0): per digit q.k = -2048 (j - t)^2, and every partial sum is exact in every
// dtype and order.
InputValues one_hot_values(const Problem& p, std::uint64_t seed) {
  InputValues in = make_values(p, Values::integers, seed);
  const std::int64_t digits = digits_for(p.seqlen_k);
  const double steep = p.dtype == DType::f64 ? 256 : 64;
  in.K = mapped(in.K, [&](auto, auto j, auto, auto c) -> double {
    if (c >= kCoordinates * digits) return 0;
    const auto x = static_cast<double>(digit(j, c / kCoordinates));
    return 32 * (c % kCoordinates == 0 ? -x * x : c % kCoordinates == 1 ? 2 * x : -1);
  });
  in.Q = mapped(in.Q, [&](auto, auto i, auto, auto c) -> double {
    if (c >= kCoordinates * digits) return 0;
    const std::int64_t target = permuted(i, p.seqlen_k, seed);
    const auto t = static_cast<double>(digit(target, c / kCoordinates));
    return steep * (c % kCoordinates == 0 ? 1 : c % kCoordinates == 1 ? t : t * t);
  });
  Rng rng(seed, 11);
  in.V = mapped(in.V, [&](auto, auto, auto, auto) { return odd_integer(rng); });
  in.dO = mapped(in.dO, [&](auto, auto, auto, auto) { return odd_integer(rng); });
  in.dLSE = mapped(in.dLSE, [](auto, auto, auto, auto) { return 0.0; });
  return in;
}

LawResult check_one_hot(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const Problem p = probe_problem(kernel, c);
    if (p.seqlen_k < 2) stop(Verdict::vacuous, "one key has all the weight anyway");
    const Direction direction = furthest(kernel, p);
    const InputValues in = one_hot_values(p, c.seed);
    const KernelRun run = complete(kernel, p, in, direction, c);
    const std::int64_t group = p.group_size();
    std::vector<Comparison> found;
    const Tensor O = mapped(run.O, [&](auto b, auto i, auto h, auto x) {
      return in.V(b, permuted(i, p.seqlen_k, c.seed), h / group, x);
    });
    found.push_back(compare_bits(run.O.view(), O.view()));
    if ((kernel.description.features & ATTEST_LSE) != 0) {
      const Tensor zero = mapped(run.LSE, [](auto, auto, auto, auto) { return 0.0; });
      found.push_back(compare_bits(run.LSE.view(), zero.view()));
    }
    if (direction == Direction::forward) return judged(found);
    Tensor dV = mapped(run.dV, [](auto, auto, auto, auto) { return 0.0; });
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        const std::int64_t j = permuted(i, p.seqlen_k, c.seed);
        for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
          for (std::int64_t x = 0; x < p.head_dim_v; ++x) {
            dV.set(dV(b, j, h / group, x) + in.dO(b, i, h, x), b, j, h / group, x);
          }
        }
      }
    }
    found.push_back(compare_bits(run.dV.view(), dV.view()));
    for (const Tensor* gradient : {&run.dQ, &run.dK}) {
      const Tensor zero = mapped(*gradient, [](auto, auto, auto, auto) { return 0.0; });
      found.push_back(compare_bits(gradient->view(), zero.view()));
    }
    return judged(found);
  });
}

LawResult check_uniform(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const attest_numerics& numerics = kernel.description.numerics;
    if (numerics.exp_zero_not_one != 0 || numerics.lse_splits != 0) {
      stop(Verdict::unsupported, "not claimed: exp(0) = 1 without a merge of splits through LSE");
    }
    Problem p = plain_problem(c.problem);
    std::int64_t keys = 1;
    while (2 * keys <= p.seqlen_k) keys *= 2;
    if (keys == 1) stop(Verdict::vacuous, "one key");
    if (p.seqlen_q == p.seqlen_k) p.seqlen_q = keys;
    p.seqlen_k = keys;
    InputValues in = make_values(p, Values::integers, c.seed);
    in.Q = mapped(in.Q, [](auto, auto, auto, auto) { return 0.0; });
    const KernelRun run = complete(kernel, p, in, Direction::forward, c);
    const Tensor O = mapped(run.O, [&](auto b, auto, auto h, auto x) {
      double sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) sum += in.V(b, j, h / p.group_size(), x);
      return sum / static_cast<double>(keys);
    });
    return judged({compare_bits(run.O.view(), O.view())});
  });
}

}  // namespace

std::vector<Law> probe_laws() {
  return {replacing_mask(
              {"one_hot_probe",
               "score 0 for one key and below -200 for all others: O is that row of V, LSE = 0, dV "
               "collects dO, dQ = dK = 0, all exactly",
               check_one_hot}),
          replacing_mask({"uniform_probe",
                          "Q = 0 over 2^n keys: O is the mean of integer V, rounded once",
                          check_uniform})};
}

}  // namespace attest::proptest
