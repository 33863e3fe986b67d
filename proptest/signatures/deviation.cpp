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

  double maximum() const {
    double most = kMinusInfinity;
    for (const Key& key : keys) most = std::max(most, key.score);
    return most;
  }
};

Tensor like(std::string_view name, const std::vector<Axis>& axes) {
  return Tensor(name, DType::f64, axes);
}

Weighed weighed(std::string_view name, const std::vector<Axis>& axes) {
  return {like(name, axes), like(name, axes)};
}

void add(Weighed& to, double term, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t c) {
  to.value.set(to.value(b, s, h, c) + term, b, s, h, c);
  to.magnitude.set(to.magnitude(b, s, h, c) + std::abs(term), b, s, h, c);
}

class Scorer {
 public:
  Scorer(const Problem& problem, const InputValues& values, Deviation deviation)
      : p_(problem), values_(values), deviation_(deviation), slopes_(problem.alibi_slopes()) {}

  Key key(const Row& row, const Sequence& sequence, std::int64_t j) const {
    Key key;
    key.position = sequence.k_begin + j;
    if (!p_.mask.visible(sequence, row.index, j)) {
      key.score = -p_.softcap;  // only with softcap_after_mask
      key.slope = 0;
      return key;
    }
    const std::int64_t head = deviation_ == Deviation::keys_of_first_head ? 0 : row.kv_head;
    for (std::int64_t l = 0; l < p_.head_dim_qk; ++l) {
      const double term = values_.Q(row.batch, row.query, row.head, l) *
                          values_.K(row.batch, key.position, head, l);
      key.score += term;
      key.magnitude += std::abs(term);
    }
    key.score *= p_.scale();
    key.magnitude *= std::abs(p_.scale());
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
    return key;
  }

 private:
  const Problem& p_;
  const InputValues& values_;
  Deviation deviation_;
  std::vector<float> slopes_;
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
        Row row{sequence.tensor_batch, sequence.q_begin + i, h, h / p.group_size(), i, {}};
        const std::int64_t keys = std::max(sequence.visible_keys - dropped,
                                           std::min<std::int64_t>(sequence.visible_keys, 1));
        for (std::int64_t j = 0; j < keys; ++j) {
          if (!keeps_masked && !p.mask.visible(sequence, i, j)) continue;
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
  double sum = 0;
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

}  // namespace

DeviantForward deviant_forward(const Problem& problem, const InputValues& values,
                               Deviation deviation, const Tiling& tiling) {
  DeviantForward result{weighed("O", problem.o_axes()), weighed("LSE", problem.lse_axes())};
  const TensorView& lse = result.LSE.value.view();
  for (std::int64_t e = 0; e < lse.size(); ++e) result.LSE.value.doubles()[e] = kMinusInfinity;
  for_each_row(problem, values, deviation, tiling, [&](const Row& row) {
    if (row.keys.empty()) return;
    const std::vector<double> P = weights(row, deviation);
    double maximum = row.maximum(), sum = 0, largest = 1;
    for (std::size_t k = 0; k < row.keys.size(); ++k) {
      const Key& key = row.keys[k];
      sum += std::exp(key.score - maximum);
      largest = std::max(largest, key.magnitude);
      if (key.position < 0) continue;
      for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
        add(result.O, P[k] * values.V(row.batch, key.position, row.kv_head, c), row.batch,
            row.query, row.head, c);
      }
    }
    if (deviation == Deviation::lse_without_maximum) maximum = 0;
    result.LSE.value.set(maximum + std::log(sum), row.batch, row.head, row.query);
    result.LSE.magnitude.set(largest, row.batch, row.head, row.query);
  });
  return result;
}

DeviantBackward deviant_backward(const Problem& p, const InputValues& values,
                                 const reference::Cotangents& cotangents,
                                 const reference::Forward& stored, Deviation deviation) {
  DeviantBackward result{weighed("dQ", p.q_axes()), weighed("dK", p.k_axes()),
                         weighed("dV", p.v_axes())};
  for_each_row(p, values, deviation, {}, [&](const Row& row) {
    const std::int64_t b = row.batch, i = row.query, h = row.head;
    const bool previous = deviation == Deviation::lse_of_previous_row && row.index > 0;
    const double lse = stored.LSE(b, h, i - (previous ? 1 : 0));
    double delta = cotangents.dLSE == nullptr ? 0 : -(*cotangents.dLSE)(b, h, i);
    double delta_terms = std::abs(delta);
    for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
      const double term = cotangents.dO(b, i, h, c) * stored.O(b, i, h, c);
      delta += term;
      delta_terms += std::abs(term);
    }
    for (const Key& key : row.keys) {
      const double P = std::exp(key.score - lse);
      double dP = 0, dP_terms = 0;
      for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
        const double dO = cotangents.dO(b, i, h, c);
        const double term = dO * values.V(b, key.position, row.kv_head, c);
        dP += term;
        dP_terms += std::abs(term);
        add(result.dV, P * dO, b, key.position, row.kv_head, c);
      }
      const double slope = deviation == Deviation::softcap_slope_omitted ? 1 : key.slope;
      const double dS = p.scale() * slope * P * (dP - delta);
      const double terms = std::abs(p.scale() * slope) * P * (dP_terms + delta_terms);
      for (std::int64_t l = 0; l < p.head_dim_qk; ++l) {
        const double k = values.K(b, key.position, row.kv_head, l), q = values.Q(b, i, h, l);
        add(result.dQ, dS * k, b, i, h, l);
        add(result.dK, dS * q, b, key.position, row.kv_head, l);
        // What cancels within dS rounds too.
        const auto widen = [&](Weighed& of, double by, std::int64_t s, std::int64_t head) {
          of.magnitude.set(of.magnitude(b, s, head, l) + by, b, s, head, l);
        };
        widen(result.dQ, (terms - std::abs(dS)) * std::abs(k), i, h);
        widen(result.dK, (terms - std::abs(dS)) * std::abs(q), key.position, row.kv_head);
      }
    }
  });
  return result;
}

}  // namespace attest::proptest
