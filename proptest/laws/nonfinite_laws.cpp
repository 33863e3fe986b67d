// Laws of NaN and infinities (docs/theory/laws.md).
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype/dtype_range.hpp"
#include "core/features/score_features.hpp"
#include "core/rng.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/demands.hpp"
#include "proptest/laws/trials/trial.hpp"
#include "proptest/values/kept_keys.hpp"

namespace attest::proptest {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Exponents of large numbers of f16 and of the other dtypes, and one beyond them.
constexpr int kMostOfHalf = 15, kMostOfFloat = 120, kBeyond = 10000;

// A query of a sequence, a key that it sees, heads and columns.
struct Place {
  Sequence sequence;
  std::int64_t query, key, head, kv_head, column, column_v;

  std::int64_t b() const { return sequence.tensor_batch; }
  std::int64_t q_row() const { return sequence.q_begin + query; }
  std::int64_t k_row() const { return sequence.k_begin + key; }
};

// Masks, one of heads and a bias leave the pair.
bool sees(const Problem& p, const Sequence& s, std::int64_t h, std::int64_t i, std::int64_t j) {
  return p.mask.visible(s, i, j) && p.shows(s.number, h, i, j);
}

std::optional<std::int64_t> seen_key(const Problem& p, const Sequence& s, std::int64_t h,
                                     std::int64_t i, Rng& rng) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < s.visible_keys; ++j) {
    if (sees(p, s, h, i, j)) keys.push_back(j);
  }
  if (keys.empty()) return std::nullopt;
  return keys[static_cast<std::size_t>(rng.between(0, static_cast<std::int64_t>(keys.size()) - 1))];
}

void require_nonfinite(const attest_kernel& kernel) {
  require_feature(kernel, ATTEST_NONFINITE, "NaN and infinities");
  require_deterministic(kernel);
}

// One place in each sequence that has one.
std::vector<Place> drawn_places(const Problem& p, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x6e616eu;
  Rng rng(seed, kStream);
  std::vector<Place> places;
  for (const Sequence& s : p.sequences()) {
    const std::int64_t first = rng.between(0, std::max<std::int64_t>(s.q_length - 1, 0)),
                       kv_head = rng.between(0, p.num_heads_kv - 1),
                       head = kv_head * p.group_size() + rng.between(0, p.group_size() - 1),
                       column = rng.between(0, p.head_dim_qk - 1),
                       column_v = rng.between(0, p.head_dim_v - 1);
    for (std::int64_t k = 0; k < s.q_length; ++k) {
      const std::int64_t i = (first + k) % s.q_length;
      const auto key = seen_key(p, s, head, i, rng);
      if (!key) continue;
      places.push_back({s, i, *key, head, kv_head, column, column_v});
      break;
    }
  }
  return places;
}

// Visits the rows that see the key of a place, with the heads that read it.
template <class Visit>
void for_seeing_rows(const Problem& p, const Place& at, const Visit& visit) {
  const std::int64_t first = at.kv_head * p.group_size();
  for (std::int64_t i = 0; i < at.sequence.q_length; ++i) {
    for (std::int64_t h = first; h < first + p.group_size(); ++h) {
      if (sees(p, at.sequence, h, i, at.key)) visit(i, h);
    }
  }
}

// The memory of an element is its own.
Problem own_memory(Problem p) {
  if (p.strides == Strides::broadcast || p.strides == Strides::huge) p.strides = Strides::packed;
  return p;
}

// Calls with finite inputs and with others, of one problem.
struct Calls {
  Calls(const attest_kernel& called, const Problem& p, const Case& of)
      : kernel(called), problem(p), c(of), values(make_values(p, Values::normal, of.seed)) {
    require_pairs(kernel, problem, Direction::forward);
    places = drawn_places(problem, c.seed);
  }

  KernelRun run(const InputValues& in) const {
    return complete(kernel, problem, in, Direction::forward, c);
  }

  const attest_kernel& kernel;
  const Problem& problem;
  const Case& c;
  InputValues values;
  std::vector<Place> places;
};

// One change of the inputs and what it asks for.
struct Change {
  const char* what;
  InputValues values;
  Demands demands;
};

// The first column of Q is 1: a key with a number in its own first column has a score of its size.
void fill_first_column(InputValues& values) {
  const TensorView& Q = values.Q.view();
  for (std::int64_t b = 0; b < Q.extent(0); ++b) {
    for (std::int64_t s = 0; s < Q.extent(1); ++s) {
      for (std::int64_t h = 0; h < Q.extent(2); ++h) values.Q.set(1, b, s, h, 0);
    }
  }
}

// A power of two that makes a score of weight 0 in the first column of K: between -1500 and -3000,
// where exp underflows in every type and log2(e) times the score has a small rounding error.
// Nothing where the dtype has none.
std::optional<double> far_number(const Problem& p) {
  constexpr double kScore = 1500;
  const double scale = std::abs(p.scale());
  const int exponent = scale == 0 ? kBeyond : std::ilogb(kScore / scale) + 1;
  if (exponent > (has_narrow_range(p.dtype) ? kMostOfHalf : kMostOfFloat)) return std::nullopt;
  return std::ldexp(p.scale() < 0 ? 1 : -1, exponent);
}

double sign_of(double value) { return value < 0 ? -1 : 1; }

// ---- NaN ----

std::vector<Change> nan_changes(const Calls& calls) {
  const Problem& p = calls.problem;
  const Change unchanged{"", calls.values, Demands(p)};
  Change of_v = unchanged, of_k = unchanged, of_q = unchanged, of_weightless = unchanged;
  of_v.what = "a NaN in V";
  of_k.what = "a NaN in K";
  of_q.what = "a NaN in Q";
  of_weightless.what = "a NaN in V at a key with a weight of 0";
  fill_first_column(of_weightless.values);
  for (const Sequence& s : p.sequences()) {  // all other keys and weights are others
    for (std::int64_t i = 0; i < s.q_length; ++i) {
      for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
        of_weightless.demands.ask_row(Demand::none, s.tensor_batch, s.q_begin + i, h);
      }
    }
  }
  for (const Place& at : calls.places) {
    of_v.values.V.set(kNan, at.b(), at.k_row(), at.kv_head, at.column_v);
    of_k.values.K.set(kNan, at.b(), at.k_row(), at.kv_head, at.column);
    of_q.values.Q.set(kNan, at.b(), at.q_row(), at.head, at.column);
    of_q.demands.ask_row(Demand::nan, at.b(), at.q_row(), at.head);
    of_weightless.values.V.set(kNan, at.b(), at.k_row(), at.kv_head, at.column_v);
    of_weightless.values.K.set(far_number(p).value_or(0), at.b(), at.k_row(), at.kv_head, 0);
    for_seeing_rows(p, at, [&](std::int64_t i, std::int64_t h) {
      const std::int64_t row = at.sequence.q_begin + i;
      of_v.demands.ask(Demand::nan, at.b(), row, h, at.column_v);
      of_k.demands.ask_row(Demand::nan, at.b(), row, h);
      of_weightless.demands.ask(Demand::nan, at.b(), row, h, at.column_v);
    });
  }
  return {of_v, of_k, of_q, of_weightless};
}

LawResult judged_changes(const Calls& calls, const std::vector<Change>& changes) {
  const KernelRun before = calls.run(calls.values);
  LawResult result;
  for (const Change& change : changes) {
    result = change.demands.judge(before, calls.run(change.values), change.what);
    if (result.verdict != Verdict::passed) return result;
  }
  return result;
}

LawResult check_nan(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_nonfinite(kernel);
    const Problem p = own_memory(c.problem);
    const Calls calls(kernel, p, c);
    return judged_changes(calls, nan_changes(calls));
  });
}

// ---- infinities ----

// The type that weights meet V in.
DType weights_dtype(const attest_numerics& n, DType tensors) {
  const std::int32_t type = n.p_cast != 0 ? n.p_cast : n.accumulator;
  if (type == ATTEST_INPUT_DTYPE) return tensors;
  if (type > 0) return dtype_of(type - 1);
  return tensors == DType::f64 ? DType::f64 : DType::f32;
}

// The weight of the key of a place in a row, without features of the scores.
double weight(const Calls& calls, const Place& at, std::int64_t i, std::int64_t h) {
  const Problem& p = calls.problem;
  const auto score = [&](std::int64_t j) {
    double sum = 0;
    for (std::int64_t c = 0; c < p.head_dim_qk; ++c) {
      sum += calls.values.Q(at.b(), at.sequence.q_begin + i, h, c) *
             calls.values.K(at.b(), at.sequence.k_begin + j, at.kv_head, c);
    }
    return p.scale() * sum;
  };
  const double own = score(at.key);
  double sum = 0;
  for (std::int64_t j = 0; j < at.sequence.visible_keys; ++j) {
    if (p.mask.visible(at.sequence, i, j)) sum += std::exp(score(j) - own);
  }
  return 1 / sum;
}

Change infinite_value(const Calls& calls, const attest_numerics& numerics, double sign) {
  const Problem& p = calls.problem;
  // Above it a weight is no subnormal number, whatever rounding does to its score.
  const double large = std::sqrt(smallest_normal(weights_dtype(numerics, p.dtype)));
  Change change{"an infinity in V", calls.values, Demands(p)};
  for (const Place& at : calls.places) {
    change.values.V.set(sign * kInfinity, at.b(), at.k_row(), at.kv_head, at.column_v);
    for_seeing_rows(p, at, [&](std::int64_t i, std::int64_t h) {
      const bool heavy = weight(calls, at, i, h) >= large;
      change.demands.ask(heavy ? Demand::infinite : Demand::infinite_or_nan, at.b(),
                         at.sequence.q_begin + i, h, at.column_v, sign);
    });
  }
  return change;
}

// The first column of Q is 1.
Change infinite_score(const Calls& calls) {
  const Problem& p = calls.problem;
  Change change{"an infinity in K that makes a score +inf", calls.values, Demands(p)};
  for (const Place& at : calls.places) {
    change.values.K.set(sign_of(p.scale()) * kInfinity, at.b(), at.k_row(), at.kv_head, 0);
    for_seeing_rows(p, at, [&](std::int64_t i, std::int64_t h) {
      change.demands.ask_row(Demand::nan, at.b(), at.sequence.q_begin + i, h);
    });
  }
  return change;
}

Change infinite_query(const Calls& calls) {
  const Problem& p = calls.problem;
  Change change{"an infinity in Q", calls.values, Demands(p)};
  for (const Place& at : calls.places) {
    change.values.Q.set(kInfinity, at.b(), at.q_row(), at.head, 0);
    bool above = false;  // some score is +inf, or NaN
    for (std::int64_t j = 0; j < at.sequence.visible_keys; ++j) {
      const double K = calls.values.K(at.b(), at.sequence.k_begin + j, at.kv_head, 0);
      above = above || (p.mask.visible(at.sequence, at.query, j) && sign_of(p.scale()) * K >= 0);
    }
    change.demands.ask_row(above ? Demand::nan : Demand::none, at.b(), at.q_row(), at.head);
  }
  return change;
}

bool sees_another(const Problem& p, const Place& at, std::int64_t i) {
  for (std::int64_t j = 0; j < at.sequence.visible_keys; ++j) {
    if (j != at.key && p.mask.visible(at.sequence, i, j)) return true;
  }
  return false;
}

// A score of -inf is one so low that its weight is 0, to the bit.
LawResult judged_low_score(const Calls& calls, double far) {
  const Problem& p = calls.problem;
  InputValues low = calls.values, lowest = calls.values;
  Demands demands(p);
  for (const Place& at : calls.places) {
    low.K.set(far, at.b(), at.k_row(), at.kv_head, 0);
    lowest.K.set(std::copysign(kInfinity, far), at.b(), at.k_row(), at.kv_head, 0);
    for_seeing_rows(p, at, [&](std::int64_t i, std::int64_t h) {
      if (sees_another(p, at, i)) return;
      demands.ask_row(Demand::none, at.b(), at.sequence.q_begin + i, h);
    });
  }
  return demands.judge(calls.run(low), calls.run(lowest),
                       "an infinity in K that makes a score -inf");
}

LawResult check_infinity(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_nonfinite(kernel);
    Problem p = own_memory(c.problem);
    remove_score_features(p);
    Calls calls(kernel, p, c);
    fill_first_column(calls.values);
    std::vector<Change> changes{
        infinite_value(calls, kernel.description.numerics, (mix(c.seed, 1) & 1u) != 0 ? 1 : -1)};
    // 0 times infinity is NaN, or is not formed.
    if (p.scale() != 0)
      changes.insert(changes.end(), {infinite_score(calls), infinite_query(calls)});
    LawResult result = judged_changes(calls, changes);
    const std::optional<double> far = far_number(p);
    return result.verdict == Verdict::passed && far ? judged_low_score(calls, *far) : result;
  });
}

// ---- keys that a row does not see ----

void fill_key(const Problem& p, const Sequence& s, std::int64_t key, InputValues& values) {
  constexpr double kSpecial[] = {kNan, kInfinity, -kInfinity};
  const auto fill = [&](Tensor& tensor, std::int64_t columns) {
    for (std::int64_t h = 0; h < p.num_heads_kv; ++h) {
      for (std::int64_t x = 0; x < columns; ++x) {
        tensor.set(kSpecial[(x + key) % 3], s.tensor_batch, s.k_begin + key, h, x);
      }
    }
  };
  fill(values.K, p.head_dim_qk);
  fill(values.V, p.head_dim_v);
}

// The problem; one of six without a bias gets one that hides keys, as few drawn problems have it.
Problem with_holes(const attest_kernel& kernel, Problem p, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x686f6c65u, kOneOf = 6, kSeeds = 1000;
  const std::uint64_t draw = mix(seed, kStream);
  const bool biased = (kernel.description.features & ATTEST_BIAS) != 0;
  if (!biased || p.bias.kind != Bias::Kind::none || draw % kOneOf != 0) return p;
  p.bias = Bias::parse("hqk_holes_" + std::to_string(draw / kOneOf % kSeeds));
  keep_a_key_in_each_row(kernel.description, p);
  return p;
}

LawResult check_hidden(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_nonfinite(kernel);
    const Problem p = with_hidden_keys(kernel, with_holes(kernel, own_memory(c.problem), c.seed));
    require_claimed(kernel, p, Direction::forward);
    require_hidden_keys(kernel);
    const Calls calls(kernel, p, c);
    Change change{"NaN and infinities in a key that the row does not see", calls.values,
                  Demands(p)};
    std::int64_t blind = 0;
    for (const Sequence& s : p.sequences()) {
      const auto drawn = static_cast<std::int64_t>(
          mix(c.seed, 0x6b6579u) %
          static_cast<std::uint64_t>(std::max<std::int64_t>(s.k_length, 1)));
      for (std::int64_t j = 0; j < s.k_length; ++j) {
        std::vector<std::pair<std::int64_t, std::int64_t>> seeing;  // rows and heads
        for (std::int64_t i = 0; i < s.q_length; ++i) {
          for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
            if (sees(p, s, h, i, j)) seeing.emplace_back(i, h);
          }
        }
        if (!seeing.empty() && j != drawn) continue;
        blind += s.q_length * p.num_heads_q - static_cast<std::int64_t>(seeing.size());
        fill_key(p, s, j, change.values);
        for (const auto& [i, h] : seeing) {
          change.demands.ask_row(Demand::none, s.tensor_batch, s.q_begin + i, h);
        }
      }
    }
    if (blind == 0) stop(Verdict::vacuous, "every row sees the key drawn");
    return judged_changes(calls, {change});
  });
}

}  // namespace

std::vector<Law> nonfinite_laws() {
  std::vector<Law> all{
      {"nan_propagation", "a NaN makes NaN of the results that it enters and changes no other bit",
       check_nan},
      {"infinity_propagation", "an infinity makes of results what IEEE arithmetic makes of them",
       check_infinity},
      {"hidden_nonfinite", "NaN and infinities change no bit of rows that do not see their key",
       check_hidden}};
  for (Law& law : all) {
    law.features = ATTEST_NONFINITE;
    law.directions = ATTEST_FORWARD;
  }
  return all;
}

}  // namespace attest::proptest
