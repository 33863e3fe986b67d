#include "proptest/values/values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "core/dtype/dtype_range.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/text/suggest.hpp"
#include "proptest/judge/recent.hpp"

namespace attest::proptest {
namespace {

struct Entry {
  Values values;
  std::string_view name, reason;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table{
      {Values::normal, "normal", "the plain case: every key matters a little"},
      {Values::x4, "x4", "queries times 4: a few keys dominate each row"},
      {Values::x10, "x10", "queries times 10: exposes errors of scale and score precision"},
      {Values::all_positive, "all_positive", "no cancellation: exposes truncation and drift"},
      {Values::one_hot, "one_hot", "one key has all the weight: selection and indexing"},
      {Values::uniform, "uniform", "nearly equal weights: row sums and masks"},
      {Values::cancelling, "cancelling", "values of +-1000 cancel: exposes lost low bits"},
      {Values::rising_maximum, "rising_maximum", "the maximum rises in every tile: rescaling"},
      {Values::halves, "halves", "values +100 then -100: a missed rescale moves the mean"},
      {Values::ties, "ties", "entries in {-1, 0, 1}: many equal scores"},
      {Values::logits_1e4, "logits_1e4", "scores of 10^4: overflow without maximum subtraction"},
      {Values::duplicate_keys, "duplicate_keys", "keys repeat: coherent rounding"},
      {Values::indicator, "indicator", "V is [j mod d = c]: the strongest check for lost keys"},
      {Values::ones, "ones", "V = 1: O must be 1 whatever the scores"},
      {Values::positive_v, "positive_v", "V in [0, 1): accumulation without cancellation"},
      {Values::negative_logits, "negative_logits",
       "all scores far below 0: a maximum started at 0"},
      {Values::maximum_last, "maximum_last", "the last key dominates: the last tile must count"},
      {Values::denormals, "denormals", "values near the smallest normal number: flushing"},
      {Values::integers, "integers", "small integers: exact products, easy to read"}};
  return table;
}

const std::vector<Entry>& refused_entries() {
  static const std::vector<Entry> table{
      {Values::nan, "nan", "a NaN in V: refused, no contract says what it gives"},
      {Values::infinite, "inf", "an infinity in V: refused likewise"}};
  return table;
}

const Entry& entry(Values values) {
  for (const auto* table : {&entries(), &refused_entries()}) {
    for (const Entry& e : *table) {
      if (e.values == values) return e;
    }
  }
  throw InternalError("a family of values without an entry");
}

std::vector<Values> families(const std::vector<Entry>& table) {
  std::vector<Values> list;
  list.reserve(table.size());
  for (const Entry& e : table) list.push_back(e.values);
  return list;
}

// Visits every element of a rank-4 tensor.
void for_each(Tensor& tensor,
              const std::function<double(std::int64_t b, std::int64_t s, std::int64_t h,
                                         std::int64_t c, double old)>& value) {
  const TensorView& view = tensor.view();
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t s = 0; s < view.extent(1); ++s) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) {
        for (std::int64_t c = 0; c < view.extent(3); ++c) {
          view.set(value(b, s, h, c, view(b, s, h, c)), b, s, h, c);
        }
      }
    }
  }
}

Tensor drawn(std::string_view name, const std::vector<Axis>& axes, std::uint64_t seed,
             std::uint64_t stream, const std::function<double(Rng&)>& draw) {
  Tensor tensor(name, DType::f64, axes);
  Rng rng(seed, stream);
  double* values = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) values[e] = draw(rng);
  return tensor;
}

// Q row i becomes a multiple of one key, so that its scaled score is `logit`.
void point_at_one_key(const Problem& problem, double logit, InputValues& in) {
  const std::int64_t keys = in.K.view().extent(1), group = problem.group_size();
  const double scale = problem.scale() == 0 ? 1 : problem.scale();
  if (keys == 0) return;
  const TensorView K = in.K.view();
  for_each(in.Q, [&](auto b, auto i, auto h, auto l, double) {
    const std::int64_t key = (i * 7919 + 3) % keys;
    double square = 0;
    for (std::int64_t c = 0; c < K.extent(3); ++c)
      square += K(b, key, h / group, c) * K(b, key, h / group, c);
    return square == 0 ? 0 : K(b, key, h / group, l) * (logit / square / scale);
  });
}

void shape(const Problem& problem, Values values, std::uint64_t seed, InputValues& in) {
  const std::int64_t keys = std::max<std::int64_t>(in.K.view().extent(1), 1);
  const auto count = static_cast<double>(keys);
  const auto scale_q = [&](double factor) {
    for_each(in.Q, [=](auto, auto, auto, auto, double x) { return x * factor; });
  };
  Rng rng(seed, 7);
  // f16 ends at 65504: products and sums of a correct kernel must stay well below.
  const bool half = has_narrow_range(problem.dtype);
  switch (values) {
    case Values::normal:
    case Values::all_positive:
    case Values::ties:
    case Values::integers:
      break;
    case Values::x4:
      scale_q(4);
      break;
    case Values::x10:
      scale_q(10);
      break;
    case Values::one_hot:
      point_at_one_key(problem, 600, in);
      break;
    case Values::uniform:
      scale_q(0x1p-10);
      break;
    case Values::cancelling: {
      const double size = half ? 100 : 1000;
      for_each(in.V,
               [=](auto, auto j, auto, auto, double x) { return x + (j % 2 ? size : -size); });
      break;
    }
    case Values::rising_maximum:
      for_each(in.K, [&](auto, auto j, auto, auto, double) {
        return (0.2 * rng.normal() + 1) * static_cast<double>(j + 1) * 30 / count;
      });
      for_each(in.Q, [](auto, auto, auto, auto, double x) { return std::abs(x); });
      break;
    case Values::halves:
      for_each(in.V,
               [=](auto, auto j, auto, auto, double x) { return x + (2 * j < keys ? 100 : -100); });
      break;
    case Values::logits_1e4:
      scale_q(half ? 300 : 3000);
      break;
    case Values::duplicate_keys: {
      const std::int64_t distinct = (keys + 7) / 8;
      const Tensor K = in.K;
      for_each(in.K,
               [&](auto b, auto j, auto h, auto c, double) { return K(b, j % distinct, h, c); });
      break;
    }
    case Values::indicator:
      for_each(in.V, [&](auto, auto j, auto, auto c, double) {
        return j % problem.head_dim_v == c ? 1.0 : 0.0;
      });
      break;
    case Values::ones:
      for_each(in.V, [](auto, auto, auto, auto, double) { return 1.0; });
      break;
    case Values::positive_v:
      for_each(in.V, [&](auto, auto, auto, auto, double) { return rng.uniform(); });
      break;
    case Values::negative_logits:
      for_each(in.Q, [&](auto, auto, auto, auto, double x) { return 4 + std::abs(x); });
      for_each(in.K, [](auto, auto, auto, auto, double x) { return -4 - std::abs(x); });
      break;
    case Values::maximum_last:
      for_each(in.Q, [](auto, auto, auto, auto, double x) { return 1 + std::abs(x); });
      for_each(in.K, [&](auto, auto j, auto, auto, double x) { return j + 1 == keys ? 4.0 : x; });
      break;
    case Values::denormals: {
      const double tiny = has_narrow_range(problem.dtype) ? 0x1p-15 : 0x1p-120;
      for_each(in.V, [=](auto, auto, auto, auto, double x) { return x * tiny; });
      break;
    }
    case Values::nan:
    case Values::infinite: {
      using Double = std::numeric_limits<double>;
      const double special = values == Values::nan ? Double::quiet_NaN() : Double::infinity();
      for_each(in.V, [=](auto, auto j, auto, auto c, double x) {
        return j + 1 == keys && c == 0 ? special : x;
      });
      break;
    }
  }
}

// Tells whether some query sees the key at this place of K or V.
bool seen(const Problem& problem, std::int64_t tensor_batch, std::int64_t position) {
  for (const Sequence& sequence : problem.sequences()) {
    const std::int64_t key = position - sequence.k_begin;
    if (sequence.tensor_batch != tensor_batch || key < 0 || key >= sequence.k_length) continue;
    for (std::int64_t i = 0; i < sequence.q_length; ++i) {
      if (problem.mask.visible(sequence, i, key)) return true;
    }
  }
  return false;
}

std::string spelled(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

enum class Holds { keys, other };

void require_finite(const Problem& problem, const Tensor& tensor, Holds holds) {
  const TensorView& view = tensor.view();
  const auto extent = [&](std::size_t axis) {
    return axis < view.rank() ? view.extent(axis) : std::int64_t{1};
  };
  for (std::int64_t e = 0; e < view.size(); ++e) {
    const double value = tensor.doubles()[e];
    if (std::isfinite(value)) continue;
    std::array<std::int64_t, 4> index{};
    std::int64_t rest = e;
    for (std::size_t axis = view.rank(); axis-- > 0; rest /= extent(axis)) {
      index[axis] = rest % extent(axis);
    }
    std::string place(view.name());
    for (std::size_t axis = 0; axis < view.rank(); ++axis) {
      place += (axis == 0 ? "[" : ", ") + std::string(view.axis(axis).name) + "=" +
               std::to_string(index[axis]);
    }
    const bool hidden = holds == Holds::keys && !seen(problem, index[0], index[1]);
    throw InvalidProblem(place + "] is " + spelled(value) +
                         (hidden ? " in a key that no query sees, and 0 * " + spelled(value) +
                                       " is NaN in many correct kernels"
                                 : ", and no contract says what attention gives then") +
                         "; pass finite values");
  }
}

void round_all(Tensor& tensor, DType dtype) {
  double* values = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) {
    double value = values[e];
    // Largest finite f16 with room for sums: legitimate kernels must not overflow.
    constexpr double kRoom = 2048;
    if (has_narrow_range(dtype) && std::isfinite(value)) value = std::clamp(value, -kRoom, kRoom);
    values[e] = round_to(dtype, value);
  }
}

}  // namespace

std::string_view name(Values values) { return entry(values).name; }
std::string_view reason(Values values) { return entry(values).reason; }

const std::vector<Values>& all_values() {
  static const std::vector<Values> all = families(entries());
  return all;
}

const std::vector<Values>& refused_values() {
  static const std::vector<Values> refused = families(refused_entries());
  return refused;
}

Values parse_values(std::string_view text) {
  std::vector<std::string> names;
  for (const auto* table : {&entries(), &refused_entries()}) {
    for (const Entry& e : *table) {
      if (e.name == text) return e.values;
      names.emplace_back(e.name);
    }
  }
  throw InvalidProblem("unknown value family '" + std::string(text) + "'" +
                       did_you_mean(text, names) + " (`attest list values` shows all)");
}

namespace {}  // namespace

bool share_memory(const Problem& problem, const InputValues& values) {
  if (problem.shared_kv == SharedKv::none) return false;
  const SharedColumns columns = problem.shared_columns();
  const TensorView wide = (columns.of_k ? values.K : values.V).view(),
                   narrow = (columns.of_k ? values.V : values.K).view();
  for (std::int64_t b = 0; b < narrow.extent(0); ++b) {
    for (std::int64_t s = 0; s < narrow.extent(1); ++s) {
      for (std::int64_t h = 0; h < narrow.extent(2); ++h) {
        for (std::int64_t c = 0; c < narrow.extent(3); ++c) {
          if (narrow(b, s, h, c) != wide(b, s, h, columns.first + c)) return false;
        }
      }
    }
  }
  return true;
}

namespace {

InputValues drawn_values(const Problem& problem, Values values, std::uint64_t seed) {
  const auto draw = [values](Rng& rng) {
    if (values == Values::all_positive) return rng.uniform();
    if (values == Values::ties) return static_cast<double>(rng.between(-1, 1));
    if (values == Values::integers) return static_cast<double>(rng.between(-4, 4));
    return rng.normal();
  };
  const auto normal = [](Rng& rng) { return rng.normal(); };
  const bool plain_dO = values == Values::all_positive;
  InputValues in{drawn("Q", problem.q_axes(), seed, 1, draw),
                 drawn("K", problem.k_axes(), seed, 2, draw),
                 drawn("V", problem.v_axes(), seed, 3, draw),
                 plain_dO ? drawn("dO", problem.o_axes(), seed, 4, normal)
                          : drawn("dO", problem.o_axes(), seed, 4, draw),
                 drawn("dLSE", problem.lse_axes(), seed, 5, normal)};
  shape(problem, values, seed, in);
  if (has_narrow_range(problem.dtype)) {
    for_each(in.dO, [](auto, auto, auto, auto, double x) { return x / 8; });
  }
  if (problem.strides == Strides::broadcast) {
    for (Tensor* tensor : {&in.K, &in.V}) {
      const TensorView view = tensor->view();
      for_each(*tensor, [&](auto b, auto s, auto, auto c, double) { return view(b, s, 0, c); });
    }
    const TensorView dO = in.dO.view();
    for_each(in.dO, [&](auto b, auto, auto h, auto c, double) { return dO(b, 0, h, c); });
  }
  for (Tensor* tensor : {&in.Q, &in.K, &in.V, &in.dO}) round_all(*tensor, problem.dtype);
  if (problem.shared_kv != SharedKv::none) {
    const SharedColumns columns = problem.shared_columns();
    const TensorView wide = (columns.of_k ? in.K : in.V).view();
    for_each(columns.of_k ? in.V : in.K, [&](auto b, auto s, auto h, auto c, double) {
      return wide(b, s, h, columns.first + c);
    });
  }
  round_all(in.dLSE, problem.dtype == DType::f64 ? DType::f64 : DType::f32);
  return in;
}

struct Made {
  std::string problem;
  Values values;
  std::uint64_t seed;
  InputValues made;
};

std::size_t bytes_of(const InputValues& in) {
  std::int64_t elements = 0;
  for (const Tensor* tensor : {&in.Q, &in.K, &in.V, &in.dO, &in.dLSE}) {
    elements += tensor->view().size();
  }
  return static_cast<std::size_t>(elements) * sizeof(double);
}

}  // namespace

// The laws of a case ask for the same values one after another.
InputValues make_values(const Problem& problem, Values values, std::uint64_t seed) {
  thread_local Recent<Made> recent(std::size_t{1} << 26);
  const std::string spelling = problem.to_string();
  const auto same = [&](const Made& known) {
    return known.values == values && known.seed == seed && known.problem == spelling;
  };
  if (const auto known = recent.find(same)) return known->made;
  auto made = std::make_shared<const Made>(
      Made{spelling, values, seed, drawn_values(problem, values, seed)});
  recent.add(made, bytes_of(made->made));
  return made->made;
}

void require_answer(const Problem& problem, const InputValues& values) {
  for (const Tensor* tensor : {&values.Q, &values.dO, &values.dLSE}) {
    require_finite(problem, *tensor, Holds::other);
  }
  for (const Tensor* tensor : {&values.K, &values.V}) {
    require_finite(problem, *tensor, Holds::keys);
  }
}

}  // namespace attest::proptest
