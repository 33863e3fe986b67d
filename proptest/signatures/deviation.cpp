#include "proptest/signatures/deviation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace attest::proptest {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct Key {
  std::int64_t position = 0;  // in the tensors; negative: zero-filled padding
  std::int64_t tile = 0;
  double score = 0, slope = 1, magnitude = 0;  // slope: of the softcap
};

// One query of one head. Positions in the tensors.
struct Row {
  std::int64_t batch = 0, query = 0, head = 0, kv_head = 0, index = 0;
  std::vector<Key> keys;
  double sink = kMinusInfinity;

  double maximum() const {
    double most = sink;
    for (const Key& key : keys) most = std::max(most, key.score);
    return most;
  }
  double weight_of_sink(double maximum) const {
    return sink == kMinusInfinity ? 0 : std::exp(sink - maximum);
  }
};

// The rows of a tensor of inputs in float64, each of its last axis.
class InputRows {
 public:
  explicit InputRows(const Tensor& tensor)
      : length_(tensor.view().extent(1)),
        heads_(tensor.view().extent(2)),
        columns_(tensor.view().extent(3)) {
    values_.reserve(static_cast<std::size_t>(tensor.view().size()));
    for (std::int64_t b = 0; b < tensor.view().extent(0); ++b) {
      for (std::int64_t s = 0; s < length_; ++s) {
        for (std::int64_t h = 0; h < heads_; ++h) {
          for (std::int64_t c = 0; c < columns_; ++c) values_.push_back(tensor(b, s, h, c));
        }
      }
    }
  }

  const double* operator()(std::int64_t b, std::int64_t s, std::int64_t h) const {
    return values_.data() + ((b * length_ + s) * heads_ + h) * columns_;
  }

 private:
  std::int64_t length_, heads_, columns_;
  std::vector<double> values_;
};

Tensor like(std::string_view name, const std::vector<Axis>& axes) {
  return Tensor(name, DType::f64, axes);
}

Weighed weighed(std::string_view name, const std::vector<Axis>& axes) {
  return {like(name, axes), like(name, axes)};
}

// A row of a result, to which terms are added.
struct WeighedRow {
  double *value, *magnitude;

  WeighedRow(Weighed& of, std::int64_t b, std::int64_t s, std::int64_t h) {
    const TensorView& view = of.value.view();
    const std::int64_t first = ((b * view.extent(1) + s) * view.extent(2) + h) * view.extent(3);
    value = of.value.doubles() + first;
    magnitude = of.magnitude.doubles() + first;
  }

  void add(std::int64_t c, double term, double size) const {
    value[c] += term;
    magnitude[c] += size;
  }
};

class Scorer {
 public:
  Scorer(const Problem& problem, const InputValues& values, Deviation deviation)
      : p_(problem),
        Q_(values.Q),
        K_(values.K),
        deviation_(deviation),
        scale_(problem.scale()),
        slopes_(problem.alibi_slopes()),
        sinks_(problem.sink_scores()) {}

  double sink(std::int64_t head) const {
    const std::int64_t of = deviation_ == Deviation::sink_of_first_head ? 0 : head;
    const double sink = sinks_.empty() ? kMinusInfinity : sinks_[static_cast<std::size_t>(of)];
    if (sink == kMinusInfinity) return sink;
    if (deviation_ == Deviation::sink_scaled) return scale_ * sink;
    const bool capped = deviation_ == Deviation::sink_softcapped && p_.softcap > 0;
    return capped ? p_.softcap * std::tanh(sink / p_.softcap) : sink;
  }

  Key key(const Row& row, const Sequence& sequence, std::int64_t j) const {
    Key key;
    key.position = sequence.k_begin + j;
    if (!p_.mask.visible(sequence, row.index, j)) {
      key.score = -p_.softcap;  // only with softcap_after_mask
      key.slope = 0;
      return key;
    }
    const std::int64_t head = deviation_ == Deviation::keys_of_first_head ? 0 : row.kv_head;
    const double* const q = Q_(row.batch, row.query, row.head);
    const double* const k = K_(row.batch, key.position, head);
    for (std::int64_t l = 0; l < p_.head_dim_qk; ++l) {
      const double term = q[l] * k[l];
      key.score += term;
      key.magnitude += std::abs(term);
    }
    const double term = p_.bias_at(sequence.number, row.head, row.index, j);
    const bool early = deviation_ == Deviation::bias_before_scale;
    if (early) key.score += term;
    key.score *= scale_;
    key.magnitude *= std::abs(scale_);
    if (p_.softcap > 0) {
      const double t = std::tanh(key.score / p_.softcap);
      key.score = p_.softcap * t;
      key.slope = 1 - t * t;
    }
    if (!slopes_.empty()) {
      const std::int64_t of = deviation_ == Deviation::alibi_first_slope ? 0 : row.head;
      const double bias =
          static_cast<double>(slopes_[static_cast<std::size_t>(of)]) *
          static_cast<double>(std::abs(p_.mask.aligned_key(sequence, row.index) - j));
      key.score -= deviation_ == Deviation::alibi_sign ? -bias : bias;
      key.magnitude += bias;
    }
    if (!early) key.score += term;
    key.magnitude += std::abs(term);
    return key;
  }

 private:
  const Problem& p_;
  InputRows Q_, K_;
  Deviation deviation_;
  double scale_;
  std::vector<float> slopes_, sinks_;
};

void add_padding(const Sequence& sequence, const Tiling& tiling, Row& row) {
  const std::int64_t keys = tiling.tiles == Tiles::of_positions
                                ? sequence.visible_keys
                                : static_cast<std::int64_t>(row.keys.size());
  const std::int64_t last = keys / tiling.block_k;
  for (std::int64_t j = keys; j % tiling.block_k != 0; ++j) {
    Key key;
    key.position = -1;
    key.tile = last;
    row.keys.push_back(key);
  }
}

void for_each_row(const Problem& p, const InputValues& values, Deviation deviation,
                  const Tiling& tiling, const std::function<void(const Row&)>& visit) {
  const Scorer scorer(p, values, deviation);
  const bool keeps_masked = deviation == Deviation::softcap_after_mask && p.softcap > 0;
  const std::int64_t dropped = deviation == Deviation::last_key_dropped ? 1 : 0;
  for (const Sequence& sequence : p.sequences()) {
    for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
      for (std::int64_t i = 0; i < sequence.q_length; ++i) {
        const bool exists = i < sequence.queries();
        Row row{sequence.tensor_batch,
                sequence.q_begin + i,
                h,
                h / p.group_size(),
                i,
                {},
                exists ? scorer.sink(h) : kMinusInfinity};
        const std::int64_t keys = std::max(sequence.visible_keys - dropped,
                                           std::min<std::int64_t>(sequence.visible_keys, 1));
        for (std::int64_t j = 0; exists && j < keys; ++j) {
          if (!keeps_masked && !p.mask.visible(sequence, i, j)) continue;
          if (!p.shows(sequence.number, h, i, j)) continue;
          Key key = scorer.key(row, sequence, j);
          const auto count = static_cast<std::int64_t>(row.keys.size());
          key.tile = (tiling.tiles == Tiles::of_positions ? j : count) / tiling.block_k;
          row.keys.push_back(key);
        }
        if (deviation == Deviation::padding_counted && !row.keys.empty()) {
          add_padding(sequence, tiling, row);
        }
        visit(row);
      }
    }
  }
}

// Weights where each half of the keys has a softmax of its own and the halves are averaged.
std::vector<double> halved_weights(const std::vector<Key>& keys) {
  const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2);
  std::vector<double> P;
  for (const auto& [begin, end] :
       {std::pair{keys.begin(), middle}, std::pair{middle, keys.end()}}) {
    double maximum = kMinusInfinity, sum = 0;
    for (auto key = begin; key != end; ++key) maximum = std::max(maximum, key->score);
    for (auto key = begin; key != end; ++key) sum += std::exp(key->score - maximum);
    for (auto key = begin; key != end; ++key) {
      P.push_back(std::exp(key->score - maximum) / (2 * sum));
    }
  }
  return P;
}

// Weights of the keys, divided by their true sum.
std::vector<double> weights(const Row& row, Deviation deviation) {
  if (deviation == Deviation::halves_unweighted && row.keys.size() > 1) {
    return halved_weights(row.keys);
  }
  const double maximum = row.maximum();
  std::vector<double> P;
  double sum = row.weight_of_sink(maximum);
  for (const Key& key : row.keys) sum += std::exp(key.score - maximum);
  // The running maximum of every tile, when its weights are formed.
  double running = kMinusInfinity;
  for (std::size_t k = 0; k < row.keys.size(); ++k) {
    const std::int64_t tile = row.keys[k].tile;
    if (k == 0 || row.keys[k - 1].tile != tile) {
      for (std::size_t l = k; l < row.keys.size() && row.keys[l].tile == tile; ++l) {
        running = std::max(running, row.keys[l].score);
      }
    }
    const double shift = deviation == Deviation::missing_rescale ? running : maximum;
    P.push_back(std::exp(row.keys[k].score - shift) / sum);
  }
  return P;
}

double lse_of_keys(Row row) {
  row.sink = kMinusInfinity;
  const double maximum = row.maximum();
  double sum = 0;
  for (const Key& key : row.keys) sum += std::exp(key.score - maximum);
  return maximum + std::log(sum);
}

}  // namespace

DeviantForward deviant_forward(const Problem& problem, const InputValues& values,
                               Deviation deviation, const Tiling& tiling) {
  DeviantForward result{weighed("O", problem.o_axes()), weighed("LSE", problem.lse_axes())};
  const TensorView& lse = result.LSE.value.view();
  for (std::int64_t e = 0; e < lse.size(); ++e) result.LSE.value.doubles()[e] = kMinusInfinity;
  const InputRows V(values.V);
  for_each_row(problem, values, deviation, tiling, [&](const Row& row) {
    if (row.maximum() == kMinusInfinity) return;
    const WeighedRow O(result.O, row.batch, row.query, row.head);
    const std::vector<double> P = weights(row, deviation);
    double maximum = row.maximum(), sum = row.weight_of_sink(maximum), largest = 1;
    for (std::size_t k = 0; k < row.keys.size(); ++k) {
      const Key& key = row.keys[k];
      sum += std::exp(key.score - maximum);
      largest = std::max(largest, key.magnitude);
      if (key.position < 0) continue;
      const double* const v = V(row.batch, key.position, row.kv_head);
      for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
        const double term = P[k] * v[c];
        O.add(c, term, std::abs(term));
      }
    }
    if (deviation == Deviation::lse_without_maximum) maximum = 0;
    const double stored =
        deviation == Deviation::lse_without_sink ? lse_of_keys(row) : maximum + std::log(sum);
    result.LSE.value.set(stored, row.batch, row.head, row.query);
    result.LSE.magnitude.set(largest, row.batch, row.head, row.query);
  });
  return result;
}

DeviantBackward deviant_backward(const Problem& p, const InputValues& values,
                                 const reference::Cotangents& cotangents,
                                 const reference::Forward& stored, Deviation deviation) {
  DeviantBackward result{weighed("dQ", p.q_axes()), weighed("dK", p.k_axes()),
                         weighed("dV", p.v_axes())};
  const InputRows Q(values.Q), K(values.K), V(values.V);
  const double scale = p.scale();
  std::vector<double> dO(static_cast<std::size_t>(p.head_dim_v));
  for_each_row(p, values, deviation, {}, [&](const Row& row) {
    const std::int64_t b = row.batch, i = row.query, h = row.head;
    const bool previous = deviation == Deviation::lse_of_previous_row && row.index > 0;
    const double lse = stored.LSE(b, h, i - (previous ? 1 : 0));
    double delta = cotangents.dLSE == nullptr ? 0 : -(*cotangents.dLSE)(b, h, i);
    double delta_terms = std::abs(delta);
    for (std::size_t c = 0; c < dO.size(); ++c) {
      const auto column = static_cast<std::int64_t>(c);
      dO[c] = cotangents.dO(b, i, h, column);
      const double term = dO[c] * stored.O(b, i, h, column);
      delta += term;
      delta_terms += std::abs(term);
    }
    const double* const q = Q(b, i, h);
    const WeighedRow dQ(result.dQ, b, i, h);
    for (const Key& key : row.keys) {
      const double* const k = K(b, key.position, row.kv_head);
      const double* const v = V(b, key.position, row.kv_head);
      const WeighedRow dK(result.dK, b, key.position, row.kv_head);
      const WeighedRow dV(result.dV, b, key.position, row.kv_head);
      const double P = std::exp(key.score - lse);
      double dP = 0, dP_terms = 0;
      for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
        const double cotangent = dO[static_cast<std::size_t>(c)];
        const double term = cotangent * v[c];
        dP += term;
        dP_terms += std::abs(term);
        dV.add(c, P * cotangent, std::abs(P * cotangent));
      }
      const double slope = deviation == Deviation::softcap_slope_omitted ? 1 : key.slope;
      const double dS = scale * slope * P * (dP - delta);
      // Terms that cancel within dS round too.
      const double terms = std::abs(scale * slope) * P * (dP_terms + delta_terms);
      for (std::int64_t l = 0; l < p.head_dim_qk; ++l) {
        dQ.add(l, dS * k[l], terms * std::abs(k[l]));
        dK.add(l, dS * q[l], terms * std::abs(q[l]));
      }
    }
  });
  return result;
}

}  // namespace attest::proptest
