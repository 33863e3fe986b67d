#include "core/problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/features/pages.hpp"
#include "core/features/problem_values.hpp"
#include "core/features/score_features.hpp"
#include "core/rng.hpp"

namespace attest {
namespace {

void require_at_least(std::string_view what, std::int64_t value, std::int64_t least) {
  if (value < least) {
    throw InvalidProblem(std::string(what) + " is " + std::to_string(value) +
                         "; it must be at least " + std::to_string(least));
  }
}

void require_product(std::string_view what, std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  std::string shape;
  for (const std::int64_t factor : factors) {
    shape += (shape.empty() ? "" : " x ") + std::to_string(factor);
  }
  // Bytes, not only elements, must be countable: eight per element at most.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 8;
  for (const std::int64_t factor : factors) {
    if (factor != 0 && product > kMost / factor) {
      throw InvalidProblem(std::string(what) + ": " + shape +
                           " elements overflow 2^63 bytes; make an axis smaller");
    }
    product *= factor;
  }
}

void require_list(std::string_view what, std::size_t got, std::int64_t batch) {
  if (static_cast<std::int64_t>(got) != batch) {
    throw InvalidProblem("mask: " + std::string(what) + " for " + std::to_string(got) +
                         " batch entries, but batch is " + std::to_string(batch) +
                         "; pass b=" + std::to_string(got) + " or one entry for each");
  }
}

std::int64_t longest(const std::vector<std::int32_t>& cu_seqlens) {
  std::int64_t most = 0;
  for (std::size_t b = 0; b + 1 < cu_seqlens.size(); ++b) {
    most = std::max<std::int64_t>(most, cu_seqlens[b + 1] - cu_seqlens[b]);
  }
  return most;
}

void validate_packed(const Problem& problem) {
  const Pattern& mask = problem.mask;
  if (mask.cu_seqlens_q.size() != mask.cu_seqlens_k.size()) {
    throw InvalidProblem("mask: cu_seqlens_q has " + std::to_string(mask.cu_seqlens_q.size()) +
                         " entries and cu_seqlens_k " + std::to_string(mask.cu_seqlens_k.size()) +
                         "; both need batch + 1");
  }
  require_list("packed sequences", mask.cu_seqlens_q.size() - 1, problem.batch);
  for (const auto* list : {&mask.cu_seqlens_q, &mask.cu_seqlens_k}) {
    if (list->front() != 0 || !std::is_sorted(list->begin(), list->end())) {
      throw InvalidProblem("mask: cu_seqlens must begin at 0 and never decrease");
    }
  }
  if (longest(mask.cu_seqlens_q) != problem.seqlen_q ||
      longest(mask.cu_seqlens_k) != problem.seqlen_k) {
    throw InvalidProblem("seqlen_q=" + std::to_string(problem.seqlen_q) +
                         ", seqlen_k=" + std::to_string(problem.seqlen_k) +
                         ", but the longest packed sequence has " +
                         std::to_string(longest(mask.cu_seqlens_q)) + " queries and " +
                         std::to_string(longest(mask.cu_seqlens_k)) +
                         " keys; leave sq and sk out, they follow from the mask");
  }
  if (problem.layout != Layout::thd) {
    throw InvalidProblem("layout is " + std::string(name(problem.layout)) +
                         ", but packed sequences have layout=thd; leave layout out");
  }
  if (!mask.key_lengths.empty()) {
    throw InvalidProblem(
        "mask: key lengths and packed sequences together; give the packed "
        "sequences the lengths they have");
  }
}

// Axes of what is the same along some of them: of extent 1 there, of no element without it.
std::vector<Axis> axes_of_feature(const Problem& p, bool some, const std::array<bool, 4>& axes) {
  const auto extent = [&](std::size_t axis, std::int64_t whole) -> std::int64_t {
    return !some ? 0 : axes[axis] ? whole : 1;
  };
  return {{"batch", extent(0, p.batch), 0},
          {"num_heads_q", extent(1, p.num_heads_q), 0},
          {"seqlen_q", extent(2, p.seqlen_q), 0},
          {"seqlen_k", extent(3, p.seqlen_k), 0}};
}

}  // namespace

std::string_view name(Alibi alibi) {
  if (alibi == Alibi::none) return "none";
  return alibi == Alibi::standard ? "standard" : "drawn";
}

std::string_view name(Sinks sinks) {
  if (sinks == Sinks::none) return "none";
  if (sinks == Sinks::given) return "given";
  return sinks == Sinks::off ? "off" : "drawn";
}

std::string_view name(SharedKv shared) {
  switch (shared) {
    case SharedKv::none:
      return "none";
    case SharedKv::first:
      return "first";
    case SharedKv::last:
      return "last";
    case SharedKv::first_apart:
      return "first_apart";
    case SharedKv::last_apart:
      return "last_apart";
  }
  throw InternalError("a way to share K and V without a name");
}

double Problem::scale() const {
  return softmax_scale ? *softmax_scale : 1.0 / std::sqrt(static_cast<double>(head_dim_qk));
}

std::vector<float> Problem::alibi_slopes() const {
  std::vector<float> slopes;
  if (alibi == Alibi::none) return slopes;
  constexpr std::uint64_t kStream = 0x736c6f7065u;
  Rng rng(alibi_seed, kStream);
  for (std::int64_t h = 0; h < num_heads_q; ++h) {
    if (alibi == Alibi::drawn) {  // without a libm, whose last bits differ
      const auto binade = static_cast<int>(rng.between(1, 8));
      slopes.push_back(static_cast<float>(std::ldexp(1 + rng.uniform(), -binade)));
      continue;
    }
    const double exponent = -8.0 * static_cast<double>(h + 1) / static_cast<double>(num_heads_q);
    slopes.push_back(static_cast<float>(std::exp2(exponent)));
  }
  return slopes;
}

std::vector<float> Problem::sink_scores() const {
  if (sinks == Sinks::none) return {};
  if (sinks == Sinks::given) return given_sinks;
  constexpr float kOff = -std::numeric_limits<float>::infinity();
  std::vector<float> scores(static_cast<std::size_t>(num_heads_q), kOff);
  if (sinks == Sinks::off) return scores;
  constexpr std::uint64_t kStream = 0x73696e6b73u;
  Rng rng(sinks_seed, kStream);
  for (float& score : scores) {
    const std::int64_t kind = rng.between(1, 8);
    const double usual = 8 * rng.uniform() - 4;
    if (kind == 1) continue;
    score = static_cast<float>(kind == 2 ? usual + 12 : usual);
  }
  return scores;
}

std::vector<Sequence> Problem::sequences() const {
  std::vector<Sequence> all;
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto index = static_cast<std::size_t>(b);
    Sequence sequence;
    sequence.number = b;
    if (mask.packed()) {
      sequence.q_begin = mask.cu_seqlens_q[index];
      sequence.q_length = mask.cu_seqlens_q[index + 1] - sequence.q_begin;
      sequence.k_begin = mask.cu_seqlens_k[index];
      sequence.k_length = mask.cu_seqlens_k[index + 1] - sequence.k_begin;
    } else {
      sequence.tensor_batch = b;
      sequence.q_length = seqlen_q;
      sequence.k_length = seqlen_k;
    }
    sequence.absent = sequence.q_length - query_lengths(b, sequence.q_length);
    sequence.visible_keys = mask.key_lengths.empty() ? sequence.k_length : mask.key_lengths[index];
    all.push_back(sequence);
  }
  return all;
}

std::int64_t Problem::tensor_batch() const { return mask.packed() ? 1 : batch; }
std::int64_t Problem::tensor_seqlen_q() const {
  return mask.packed() ? mask.cu_seqlens_q.back() : seqlen_q;
}
std::int64_t Problem::tensor_seqlen_k() const {
  return mask.packed() ? mask.cu_seqlens_k.back() : seqlen_k;
}

std::vector<Axis> Problem::q_axes() const {
  return {{"batch", tensor_batch(), 0},
          {"seqlen_q", tensor_seqlen_q(), 0},
          {"num_heads_q", num_heads_q, 0},
          {"head_dim_qk", head_dim_qk, 0}};
}

std::vector<Axis> Problem::k_axes() const {
  return {{"batch", tensor_batch(), 0},
          {"seqlen_k", tensor_seqlen_k(), 0},
          {"num_heads_kv", num_heads_kv, 0},
          {"head_dim_qk", head_dim_qk, 0}};
}

std::vector<Axis> Problem::v_axes() const {
  auto axes = k_axes();
  axes[3] = {"head_dim_v", head_dim_v, 0};
  return axes;
}

std::vector<Axis> Problem::o_axes() const {
  auto axes = q_axes();
  axes[3] = {"head_dim_v", head_dim_v, 0};
  return axes;
}

std::vector<Axis> Problem::lse_axes() const {
  return {{"batch", tensor_batch(), 0},
          {"num_heads_q", num_heads_q, 0},
          {"seqlen_q", tensor_seqlen_q(), 0}};
}

SharedColumns Problem::shared_columns() const {
  const std::int64_t wider = head_dim_qk - head_dim_v;
  const bool last = shared_kv == SharedKv::last || shared_kv == SharedKv::last_apart;
  return {wider >= 0, last ? std::abs(wider) : 0};
}

std::vector<Axis> Problem::sinks_axes() const {
  return {{"num_heads_q", sinks == Sinks::none ? 0 : num_heads_q, 0}};
}

std::vector<Axis> Problem::bias_axes() const {
  return axes_of_feature(*this, bias.kind != Bias::Kind::none, bias.axes);
}

std::vector<Axis> Problem::head_mask_axes() const {
  return axes_of_feature(*this, head_mask.kind != HeadMask::Kind::none, head_mask.axes);
}

std::int64_t Problem::visible_pairs() const {
  std::int64_t pairs = 0;
  for (const Sequence& sequence : sequences()) {
    for (std::int64_t i = 0; i < sequence.q_length; ++i) {
      const KeyRange range = mask.band(sequence, i);
      if (!mask.boolean) {
        pairs += range.end - range.begin;
        continue;
      }
      for (std::int64_t j = range.begin; j < range.end; ++j) {
        pairs += mask.visible(sequence, i, j) ? 1 : 0;
      }
    }
  }
  return pairs;
}

void Problem::validate() const {
  require_at_least("batch (b)", batch, 1);
  require_at_least("num_heads_q (hq)", num_heads_q, 1);
  require_at_least("num_heads_kv (hkv)", num_heads_kv, 1);
  require_at_least("seqlen_q (sq)", seqlen_q, 0);
  require_at_least("seqlen_k (sk)", seqlen_k, 0);
  require_at_least("head_dim_qk (d)", head_dim_qk, 1);
  require_at_least("head_dim_v (dv)", head_dim_v, 1);
  if (num_heads_q % num_heads_kv != 0) {
    throw InvalidProblem("num_heads_q is " + std::to_string(num_heads_q) +
                         ", which is not a multiple of num_heads_kv=" +
                         std::to_string(num_heads_kv) + "; pass hkv that divides hq");
  }
  require_product("Q", {batch, seqlen_q, num_heads_q, head_dim_qk});
  require_product("O", {batch, seqlen_q, num_heads_q, head_dim_v});
  require_product("K", {batch, seqlen_k, num_heads_kv, head_dim_qk});
  require_product("V", {batch, seqlen_k, num_heads_kv, head_dim_v});
  require_product("S", {batch, num_heads_q, seqlen_q, seqlen_k});
  if (is_paged(*this)) {
    // Pages that no key fills and one more for each batch entry; at least as many as are asked for.
    const std::int64_t pages = std::max(paged_kv.pages, seqlen_k / paged_kv.page_size + 2);
    require_product("K in pages", {batch, pages, paged_kv.page_size, num_heads_kv, head_dim_qk});
    require_product("V in pages", {batch, pages, paged_kv.page_size, num_heads_kv, head_dim_v});
  }
  if (softmax_scale && !std::isfinite(*softmax_scale)) {
    throw InvalidProblem("scale is not finite; pass a finite softmax_scale or 1/sqrt(d)");
  }
  if (dtype != DType::f64) require_normal_float32("scale", softmax_scale.value_or(0), "1/sqrt(d)");
  for (const ScoreFeature& feature : score_features()) feature.validate(*this);
  require_at_least("num_splits (splits)", num_splits, 0);
  if (mask.packed()) {
    validate_packed(*this);
  } else if (layout == Layout::thd) {
    throw InvalidProblem("layout=thd needs packed sequences; pass mask=cu_QxK_… or layout=bshd");
  }
  if (!mask.key_lengths.empty()) {
    require_list("key lengths", mask.key_lengths.size(), batch);
    const auto most = *std::max_element(mask.key_lengths.begin(), mask.key_lengths.end());
    if (most > seqlen_k) {
      throw InvalidProblem("mask: key length " + std::to_string(most) + " exceeds seqlen_k=" +
                           std::to_string(seqlen_k) + "; pass sk of at least the longest");
    }
  }
  if (mask.boolean && (mask.boolean->rows != seqlen_q || mask.boolean->columns != seqlen_k)) {
    throw InvalidProblem("mask: the boolean mask is " + std::to_string(mask.boolean->rows) + " x " +
                         std::to_string(mask.boolean->columns) + ", but seqlen_q x seqlen_k is " +
                         std::to_string(seqlen_q) + " x " + std::to_string(seqlen_k));
  }
}

}  // namespace attest
