// Identities that hold within the sum of the bounds of the results involved.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/features/score_features.hpp"
#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "core/rng.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/reversed.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

using reference::ErrorBound;

Tensor combined(const Tensor& a, double factor_a, const Tensor& b, double factor_b) {
  Tensor sum = mapped(no_error(a).sigma, [&](auto i, auto j, auto k, auto l) {
    return factor_a * a(i, j, k, l) + factor_b * b(i, j, k, l);
  });
  return sum;
}

ErrorBound added(const ErrorBound& a, const ErrorBound& b) {
  return {combined(a.deterministic, 1, b.deterministic, 1),
          combined(a.probabilistic, 1, b.probabilistic, 1), combined(a.sigma, 1, b.sigma, 1)};
}

InputValues without_dlse(InputValues in) {
  in.dLSE = mapped(in.dLSE, [](auto, auto, auto, auto) { return 0.0; });
  return in;
}

using Reversal = Problem (*)(const Problem&);

// Returns the reversed problem. A kernel without lists and boolean masks cannot be asked for a band
// in another order.
Problem reversed_as_claimed(const attest_kernel& kernel, const Problem& problem,
                            Direction direction, Reversal reversal) {
  constexpr std::int64_t kMostPairs = std::int64_t{1} << 26;  // the pattern names each
  const bool masked = problem.mask.banded() || problem.mask.boolean != nullptr;
  if (masked && problem.seqlen_q > kMostPairs / problem.seqlen_k) {
    stop(Verdict::unsupported, "no list of so many pairs in another order is made");
  }
  Problem reversed = reversal(problem);
  if (!unclaimed(kernel.description, reversed, direction).empty()) {
    stop(Verdict::unsupported, "not claimed: the pairs of a mask in another order");
  }
  return reversed;
}

// Stops where the kernel serves no two. Before a check for content.
void require_several(const Range& range, const char* what) {
  if (range.most < 2) stop(Verdict::unsupported, std::string("not claimed: ") + what);
}

LawResult check_key_permutation(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_unmasked(kernel);
    require_several(claimed_keys(kernel.description), "several keys");
    const Problem p = unpacked_problem(c.problem);
    require_pairs(kernel, p, Direction::forward);
    if (p.seqlen_k < 2) stop(Verdict::vacuous, "one key");
    const Direction direction = furthest(kernel, p);
    const Problem other = reversed_as_claimed(kernel, p, direction, with_reversed_keys);
    const Solved first(kernel, p, make_values(p, c.values, c.seed), direction, c);
    const auto reversed = [&](const Tensor& t) {
      return mapped(t,
                    [&](auto b, auto j, auto h, auto x) { return t(b, p.seqlen_k - 1 - j, h, x); });
    };
    InputValues in = first.values;
    in.K = reversed(in.K);
    in.V = reversed(in.V);
    KernelRun run = complete(kernel, other, in, direction, c);
    if (direction == Direction::backward) {
      run.dK = reversed(run.dK);
      run.dV = reversed(run.dV);
    }
    return judged_with_truth(first.truth.agreement(run, first.run), first);
  });
}

LawResult check_query_permutation(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_unmasked(kernel);
    require_several(claimed_queries(kernel.description), "several queries");
    const Problem p = unpacked_problem(c.problem);
    require_pairs(kernel, p, Direction::forward);
    if (p.seqlen_q < 2) stop(Verdict::vacuous, "one query");
    const Direction direction = furthest(kernel, p);
    const Problem other = reversed_as_claimed(kernel, p, direction, with_reversed_queries);
    const Solved first(kernel, p, without_dlse(make_values(p, c.values, c.seed)), direction, c);
    const auto reversed = [&](const Tensor& t) {
      return mapped(t,
                    [&](auto b, auto i, auto h, auto x) { return t(b, p.seqlen_q - 1 - i, h, x); });
    };
    InputValues in = first.values;
    in.Q = reversed(in.Q);
    in.dO = reversed(in.dO);
    KernelRun run = complete(kernel, other, in, direction, c);
    run.O = reversed(run.O);
    if (run.LSE.view().rank() > 0) {
      const Tensor lse = run.LSE;
      run.LSE =
          mapped(lse, [&](auto b, auto h, auto i, auto) { return lse(b, h, p.seqlen_q - 1 - i); });
    }
    if (direction == Direction::backward) run.dQ = reversed(run.dQ);
    return judged_with_truth(first.truth.agreement(run, first.run), first);
  });
}

LawResult check_linear_v(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    if (c.problem.visible_pairs() == 0) stop(Verdict::vacuous, "no query sees a key");
    const InputValues one = make_values(c.problem, Values::integers, c.seed);
    InputValues other = one, sum = one;
    other.V = make_values(c.problem, Values::integers, c.seed + 1).V;
    sum.V = combined(one.V, 1, other.V, 1);  // integers: exact in every dtype
    const Solved a(kernel, c.problem, one, Direction::forward, c),
        b(kernel, c.problem, other, Direction::forward, c),
        s(kernel, c.problem, sum, Direction::forward, c);
    const ErrorBound bound = added(a.truth.forward_bounds().O, b.truth.forward_bounds().O);
    return judged_with_truth({compare_pair(s.run.O.view(), combined(a.run.O, 1, b.run.O, 1).view(),
                                           s.truth.forward_bounds().O, bound)},
                             a);
  });
}

LawResult check_linear_dO(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_claimed(kernel, c.problem, Direction::backward);
    if (c.problem.visible_pairs() == 0) stop(Verdict::vacuous, "no query sees a key");
    const InputValues one = without_dlse(make_values(c.problem, Values::integers, c.seed));
    InputValues other = one, sum = one;
    other.dO = make_values(c.problem, Values::integers, c.seed + 1).dO;
    sum.dO = combined(one.dO, 1, other.dO, 1);
    const Solved a(kernel, c.problem, one, Direction::backward, c),
        b(kernel, c.problem, other, Direction::backward, c),
        s(kernel, c.problem, sum, Direction::backward, c);
    const auto ba = a.truth.backward_bounds(a.run), bb = b.truth.backward_bounds(b.run),
               bs = s.truth.backward_bounds(s.run);
    const auto pair = [](const Tensor& whole, const Tensor& x, const Tensor& y,
                         const ErrorBound& bw, const ErrorBound& bx, const ErrorBound& by) {
      return compare_pair(whole.view(), combined(x, 1, y, 1).view(), bw, added(bx, by));
    };
    return judged_with_truth({pair(s.run.dQ, a.run.dQ, b.run.dQ, bs.dQ, ba.dQ, bb.dQ),
                              pair(s.run.dK, a.run.dK, b.run.dK, bs.dK, ba.dK, bb.dK),
                              pair(s.run.dV, a.run.dV, b.run.dV, bs.dV, ba.dV, bb.dV)},
                             a);
  });
}

// Keys first .. first+count-1 of K or V.
Tensor some_keys(const Tensor& t, const std::vector<Axis>& axes, std::int64_t first) {
  const Tensor part(t.view().name(), DType::f64, axes);
  return mapped(part, [&](auto b, auto j, auto h, auto x) { return t(b, first + j, h, x); });
}

// A part without weight adds nothing, not even where no bound is proved for it.
double weighted(double weight, double bound) { return weight == 0 ? 0 : weight * bound; }

// Bounds the error of two parts merged by weights that are off by at most e^(2 lse): the weights
// move the result between oa and ob, and enlarge the parts' own error. Equal parts do not move,
// however wrong the weights; an infinite bound refuses nothing.
double merge_bound(double lse, double oa, double ob, double parts) {
  const double weights = oa == ob ? 0 : std::expm1(2 * lse) * std::abs(oa - ob);
  const double enlarged = parts == 0 ? 0 : std::exp(2 * lse) * parts;
  const bool finite = std::isfinite(oa) && std::isfinite(ob);
  const double bound = finite ? weights + enlarged : std::numeric_limits<double>::infinity();
  if (std::isnan(bound)) {
    throw InternalError("split_merge: the bound is NaN for bound of LSE " + std::to_string(lse) +
                        ", parts " + std::to_string(oa) + " and " + std::to_string(ob) +
                        " and their bound " + std::to_string(parts));
  }
  return bound;
}

// Before a check for content: what is not claimed is not without content.
void require_cross_lengths(const attest_kernel& kernel) {
  if ((kernel.description.features & ATTEST_CROSS_LENGTHS) != 0) return;
  stop(Verdict::unsupported, "not claimed: seqlen_q != seqlen_k");
}

// About as many keys as the problem has, of which the kernel serves two parts as well; the first
// has as many as are returned.
std::int64_t set_keys_of_two_parts(const attest_kernel& kernel, Problem& p) {
  const Range keys = claimed_keys(kernel.description);
  if (keys.empty()) return p.seqlen_k / 2;
  const std::int64_t left = std::max<std::int64_t>(keys.nearest(p.seqlen_k / 2), 1);
  const std::int64_t right = p.seqlen_k - left;
  if (!keys.contains(right) || right < 1) p.seqlen_k = 2 * left;
  return left;
}

LawResult check_split_merge(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    if ((kernel.description.features & ATTEST_LSE) == 0) {
      stop(Verdict::unsupported, "not claimed: LSE");
    }
    require_cross_lengths(kernel);
    require_unmasked(kernel);
    Problem p = plain_problem(kernel, c.problem);
    if (kernel.description.limits == nullptr && p.seqlen_k < 2) stop(Verdict::vacuous, "one key");
    const std::int64_t first_keys = set_keys_of_two_parts(kernel, p);
    Problem left = p, right = p;
    left.seqlen_k = first_keys;
    right.seqlen_k = p.seqlen_k - left.seqlen_k;
    for (const Problem* part : std::initializer_list<const Problem*>{&p, &left, &right}) {
      require_claimed(kernel, *part, Direction::forward);
    }
    const Solved whole(kernel, p, make_values(p, c.values, c.seed), Direction::forward, c);
    const auto part = [&](const Problem& half, std::int64_t first) {
      InputValues in = whole.values;
      in.K = some_keys(in.K, half.k_axes(), first);
      in.V = some_keys(in.V, half.v_axes(), first);
      return Solved(kernel, half, in, Direction::forward, c);
    };
    const Solved a = part(left, 0), b = part(right, left.seqlen_k);
    require_right(a, "the first half of the keys alone: ");
    require_right(b, "the second half of the keys alone: ");
    const bool base_two = kernel.description.numerics.lse_base_two != 0;
    const auto natural = [&](double lse) { return base_two ? lse * std::log(2.0) : lse; };
    Tensor merged = no_error(whole.run.O).sigma;
    ErrorBound bound = no_error(whole.run.O);
    mapped(merged, [&](auto s, auto i, auto h, auto x) {
      const double la = natural(a.run.LSE(s, h, i)), lb = natural(b.run.LSE(s, h, i));
      const double top = std::max(la, lb);
      const double ea = std::exp(la - top), eb = std::exp(lb - top), sum = ea + eb;
      const double oa = a.run.O(s, i, h, x), ob = b.run.O(s, i, h, x);
      merged.set((ea * oa + eb * ob) / sum, s, i, h, x);
      // Weights are off by at most e^(2 B_LSE); the two parts by their own bounds.
      const auto combine = [&](const Tensor ErrorBound::*strength) {
        const double l = std::max(natural((a.truth.forward_bounds().LSE.*strength)(s, h, i)),
                                  natural((b.truth.forward_bounds().LSE.*strength)(s, h, i)));
        return merge_bound(l, oa, ob,
                           (weighted(ea, (a.truth.forward_bounds().O.*strength)(s, i, h, x)) +
                            weighted(eb, (b.truth.forward_bounds().O.*strength)(s, i, h, x))) /
                               sum);
      };
      bound.deterministic.set(combine(&ErrorBound::deterministic), s, i, h, x);
      bound.probabilistic.set(combine(&ErrorBound::probabilistic), s, i, h, x);
      bound.sigma.set(combine(&ErrorBound::sigma), s, i, h, x);
      return 0.0;
    });
    return judged_with_truth(
        {compare_pair(whole.run.O.view(), merged.view(), whole.truth.forward_bounds().O, bound)},
        whole);
  });
}

LawResult check_duplicate_keys(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_unmasked(kernel);
    Problem p = plain_problem(kernel, c.problem);
    const Range keys = claimed_keys(kernel.description);
    if (!keys.contains(2 * p.seqlen_k)) p.seqlen_k = std::max<std::int64_t>(keys.nearest(1), 1);
    Problem twice = p;
    twice.seqlen_k *= 2;
    require_claimed(kernel, p, Direction::forward);
    require_claimed(kernel, twice, Direction::forward);
    const Solved once(kernel, p, make_values(p, c.values, c.seed), Direction::forward, c);
    InputValues in = once.values;
    const auto doubled = [&](const Tensor& t, const std::vector<Axis>& axes) {
      const Tensor like(t.view().name(), DType::f64, axes);
      return mapped(like,
                    [&](auto b, auto j, auto h, auto x) { return t(b, j % p.seqlen_k, h, x); });
    };
    in.K = doubled(in.K, twice.k_axes());
    in.V = doubled(in.V, twice.v_axes());
    const Solved other(kernel, twice, in, Direction::forward, c);
    return judged_with_truth(
        {compare_pair(other.run.O.view(), once.run.O.view(), other.truth.forward_bounds().O,
                      once.truth.forward_bounds().O)},
        once);
  });
}

// Adding one vector to all keys shifts every score of a row alike: O and dQ do not move.
LawResult check_row_shift(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    Problem p = c.problem;
    remove_features_not_additive(p);
    if (p.visible_pairs() == 0) stop(Verdict::vacuous, "no query sees a key");
    const Direction direction = furthest(kernel, p);
    const Solved first(kernel, p, without_dlse(make_values(p, Values::integers, c.seed)), direction,
                       c);
    InputValues in = first.values;
    in.K = mapped(in.K, [&](auto b, auto j, auto h, auto l) {
      return in.K(b, j, h, l) + static_cast<double>(l % 3) + 1;
    });
    const Solved shifted(kernel, p, in, direction, c);
    std::vector<Comparison> found{compare_pair(shifted.run.O.view(), first.run.O.view(),
                                               shifted.truth.forward_bounds().O,
                                               first.truth.forward_bounds().O)};
    if (direction == Direction::backward) {
      const auto &a = first.truth.backward_bounds(first.run),
                 b = shifted.truth.backward_bounds(shifted.run);
      found.push_back(compare_pair(shifted.run.dQ.view(), first.run.dQ.view(), b.dQ, a.dQ));
    }
    return judged_with_truth(found, first);
  });
}

LawResult check_repeated_heads(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    Problem grouped = c.problem;
    if (grouped.strides == Strides::broadcast) grouped.strides = Strides::packed;
    if (grouped.group_size() == 1) {
      // Fewer K/V heads for a kernel of few heads, so that a group has two.
      const attest_limits* const limits = kernel.description.limits;
      const std::int64_t most = limits == nullptr ? 0 : limits->most_heads_q;
      if (most > 1) grouped.num_heads_kv = std::min(grouped.num_heads_kv, most / 2);
      grouped.num_heads_q = 2 * grouped.num_heads_kv;
    }
    const std::int64_t group = grouped.group_size();
    Problem repeated = grouped;
    repeated.num_heads_kv = repeated.num_heads_q;
    require_claimed(kernel, grouped, Direction::forward);
    require_pairs(kernel, repeated, Direction::forward);
    const Direction direction = furthest(kernel, grouped);
    const Solved few(kernel, grouped, make_values(grouped, c.values, c.seed), direction, c);
    InputValues in = few.values;
    const auto repeat = [&](const Tensor& t, const std::vector<Axis>& axes) {
      const Tensor like(t.view().name(), DType::f64, axes);
      return mapped(like, [&](auto b, auto j, auto h, auto x) { return t(b, j, h / group, x); });
    };
    in.K = repeat(in.K, repeated.k_axes());
    in.V = repeat(in.V, repeated.v_axes());
    const Solved many(kernel, repeated, in, direction, c);
    std::vector<Comparison> found{compare_pair(many.run.O.view(), few.run.O.view(),
                                               many.truth.forward_bounds().O,
                                               few.truth.forward_bounds().O)};
    if ((kernel.description.features & ATTEST_LSE) != 0) {
      found.push_back(compare_pair(many.run.LSE.view(), few.run.LSE.view(),
                                   many.truth.forward_bounds().LSE,
                                   few.truth.forward_bounds().LSE));
    }
    if (direction == Direction::forward) return judged_with_truth(found, few);
    const auto bf = few.truth.backward_bounds(few.run), bm = many.truth.backward_bounds(many.run);
    const auto summed = [&](const Tensor& t, const Tensor& like) {
      return mapped(no_error(like).sigma, [&](auto b, auto j, auto h, auto x) {
        double sum = 0;
        for (std::int64_t g = 0; g < group; ++g) sum += t(b, j, h * group + g, x);
        return sum;
      });
    };
    const auto pair = [&](const Tensor& m, const Tensor& f, const ErrorBound& of_many,
                          const ErrorBound& of_few) {
      const ErrorBound sum{summed(of_many.deterministic, f), summed(of_many.probabilistic, f),
                           summed(of_many.sigma, f)};
      return compare_pair(f.view(), summed(m, f).view(), of_few, sum);
    };
    found.push_back(compare_pair(many.run.dQ.view(), few.run.dQ.view(), bm.dQ, bf.dQ));
    found.push_back(pair(many.run.dK, few.run.dK, bm.dK, bf.dK));
    found.push_back(pair(many.run.dV, few.run.dV, bm.dV, bf.dV));
    return judged_with_truth(found, few);
  });
}

// Returns the pairs that the band leaves, with either alignment; families of patterns have one.
std::shared_ptr<const BooleanMask> pairs_of_band(const Problem& problem) {
  const Sequence sequence = problem.sequences().front();
  RangeForm form;
  for (std::int64_t i = 0; i < problem.seqlen_q; ++i) {
    const KeyRange keys = problem.mask.band(sequence, i);
    if (keys.begin < keys.end) form.ranges.push_back(keys);
    form.row_offsets.push_back(static_cast<std::int64_t>(form.ranges.size()));
  }
  return mask_of({problem.seqlen_q, problem.seqlen_k, std::move(form), "band"});
}

// The same visible pairs, spelled as a band and as a pattern: lists for kernels that take those of
// any pattern, else a boolean mask. A kernel that takes neither has a band of all pairs, and none.
LawResult check_mask_forms(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    Problem band = c.problem;
    if (band.mask.packed()) band.layout = Layout::bshd;
    band.mask = {};
    band.query_lengths = QueryLengths{};  // a band of another alignment for each batch entry
    const attest_limits* const limits = kernel.description.limits;
    const bool top_left = limits != nullptr && (limits->only & ATTEST_ONLY_TOP_LEFT) != 0;
    const CausalAlign align = top_left ? CausalAlign::top_left : CausalAlign::bottom_right;
    band.mask.align = align;
    Problem other = band;
    const bool takes_any =
        (kernel.description.features & (ATTEST_CSR_MASK | ATTEST_BOOLEAN_MASK)) != 0;
    if (!takes_any || c.seed % 3 == 0) {
      band.mask.window_left = band.mask.window_right = band.seqlen_q + band.seqlen_k;
    } else {
      const bool causal = c.seed % 3 == 1;
      constexpr std::uint64_t kStream = 0x62616e64u;
      Rng rng(c.seed, kStream);
      const std::int64_t left = rng.between(0, band.seqlen_k), right = rng.between(0, left);
      if (!causal) band.mask.window_left = left;
      band.mask.window_right = causal ? 0 : right;
      other.mask.boolean = pairs_of_band(band);
    }
    // An unclaimed form is no case for this law, even where the form would be empty.
    for (const Problem* form : {&band, &other}) {
      const std::string missing = unclaimed(kernel.description, *form, Direction::forward);
      if (!missing.empty()) stop(Verdict::unsupported, "not claimed: " + missing);
    }
    if (band.visible_pairs() == 0) stop(Verdict::vacuous, "no query sees a key");
    const Direction direction = furthest(kernel, other);
    const Solved first(kernel, band, make_values(band, c.values, c.seed), direction, c);
    return judged_with_truth(
        first.truth.agreement(complete(kernel, other, first.values, direction, c), first.run),
        first);
  });
}

}  // namespace

std::vector<Law> algebra_laws() {
  return {
      {"key_permutation", "reversing keys and values changes nothing but the order of dK, dV",
       check_key_permutation},
      {"query_permutation", "reversing queries reverses O, LSE and dQ and leaves dK, dV",
       check_query_permutation},
      {"linearity_in_v", "O(V + W) = O(V) + O(W)", check_linear_v},
      {"linearity_in_do", "gradients of dO + dO' are sums of gradients", check_linear_dO},
      replacing_mask({"split_merge", "two halves of the keys, merged through LSE, give the whole",
                      check_split_merge}),
      replacing_mask({"duplicate_keys", "every key twice gives the same O", check_duplicate_keys}),
      {"row_shift", "one vector added to all keys changes neither O nor dQ", check_row_shift},
      {"repeated_heads", "grouped heads equal repeated heads, dK and dV summed",
       check_repeated_heads},
      replacing_mask({"mask_forms", "a band equals its pattern, a wide window equals no mask",
                      check_mask_forms})};
}

}  // namespace attest::proptest
