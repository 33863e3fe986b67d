#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <utility>

#include "core/features/pages.hpp"
#include "core/features/score_features.hpp"
#include "proptest/signatures/alternative.hpp"
#include "proptest/signatures/deviation.hpp"
#include "proptest/signatures/exchanged.hpp"
#include "proptest/signatures/level_alternatives.hpp"
#include "proptest/signatures/misread.hpp"

namespace attest::proptest {
namespace {

using reference::ErrorBound;

Tensor times(const Tensor& tensor, double factor) {
  Tensor product = tensor;
  for (std::int64_t e = 0; e < product.view().size(); ++e) product.doubles()[e] *= factor;
  return product;
}

// K or V with head `of(h)` of the given one as head h.
Tensor with_heads(const Tensor& tensor, std::vector<Axis> axes, std::int64_t heads,
                  const std::function<std::int64_t(std::int64_t)>& of) {
  axes[2].extent = heads;
  Tensor result(tensor.view().name(), DType::f64, axes);
  for (std::int64_t b = 0; b < axes[0].extent; ++b) {
    for (std::int64_t s = 0; s < axes[1].extent; ++s) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t c = 0; c < axes[3].extent; ++c) {
          result.set(tensor(b, s, of(h), c), b, s, h, c);
        }
      }
    }
  }
  return result;
}

// Which rows hold a mean of V.
enum class Averaged : std::uint8_t { every_row, rows_without_a_key };

class Forwards {
 public:
  Forwards(const Scene& scene, Suspects only)
      : scene_(scene),
        only_(only),
        conventions_(conventions_of(scene.description)),
        numerics_(resolve(scene.description.numerics, scene.problem.dtype)),
        has_lse_((scene.description.features & ATTEST_LSE) != 0) {}

  std::vector<Alternative> take() { return std::move(alternatives_); }

  bool wanted(const std::string& name, const std::string& words) const {
    return only_ == nullptr || only_->count({name, statement(words)}) > 0;
  }

  // The exact result of another problem or other inputs, with its own bounds.
  void other(const std::string& name, const std::string& words, const Problem& problem,
             const InputValues& values) {
    if (!wanted(name, words)) return;
    const TensorView &Q = values.Q.view(), &K = values.K.view(), &V = values.V.view();
    const reference::Forward exact = reference::forward(problem, conventions_, Q, K, V);
    const reference::ForwardBounds bounds =
        reference::forward_bounds(problem, conventions_, numerics_, Q, K, V, exact);
    add(name, words, {{"O", exact.O, bounds.O}, {"LSE", exact.LSE, bounds.LSE}});
  }

  void other(const std::string& name, const std::string& words,
             const std::function<void(Problem&)>& change) {
    Problem problem = scene_.problem;
    change(problem);
    other(name, words, problem, scene_.values);
  }

  // O of the problem with equal scores in some rows, the truth in the others.
  void averages(const std::string& name, const std::string& words, Averaged rows,
                const std::function<void(Problem&)>& change) {
    if (!wanted(name, words)) return;
    Problem problem = scene_.problem;
    problem.softmax_scale = 0.0;
    remove_score_features(problem);
    change(problem);
    const InputValues& in = scene_.values;
    const TensorView &Q = in.Q.view(), &K = in.K.view(), &V = in.V.view();
    reference::Forward mean = reference::forward(problem, conventions_, Q, K, V);
    reference::ForwardBounds bounds =
        reference::forward_bounds(problem, conventions_, numerics_, Q, K, V, mean);
    if (rows == Averaged::every_row) {
      add(name, words, {{"O", mean.O, bounds.O}, true_lse()});
      return;
    }
    keep_visible_rows(mean.O, bounds.O);
    add(name, words, {{"O", mean.O, bounds.O}});
  }

  void deviant(const std::string& name, const std::string& words, Deviation deviation,
               const Tiling& tiling = {}) {
    if (!wanted(name, words)) return;
    if (!plain_) plain_ = deviant_forward(scene_.problem, scene_.values, Deviation::none);
    DeviantForward wrong = deviant_forward(scene_.problem, scene_.values, deviation, tiling);
    const reference::ForwardBounds& truth = scene_.truth.forward_bounds();
    const Expected O{"O", wrong.O.value,
                     bound_like(truth.O, plain_->O.magnitude, wrong.O.value, wrong.O.magnitude,
                                scene_.run.O.view().dtype())};
    Expected LSE{"LSE", wrong.LSE.value,
                 bound_like(truth.LSE, plain_->LSE.magnitude, wrong.LSE.value, wrong.LSE.magnitude,
                            scene_.run.LSE.view().dtype())};
    as_convention_says(LSE);
    add(name, words, {with_empty_rows(O), LSE});
  }

  void lse_times(const std::string& name, const std::string& words, double factor) {
    if (!wanted(name, words)) return;
    const ErrorBound& bound = scene_.truth.forward_bounds().LSE;
    add(name, words,
        {true_o(),
         {"LSE",
          times(scene_.truth.forward().LSE, factor),
          {times(bound.deterministic, factor), times(bound.probabilistic, factor),
           times(bound.sigma, factor)}}});
  }

  // The right O and an LSE stored otherwise.
  void stored_lse(const std::string& name, const std::string& words,
                  const std::function<StoredLse(const StoredLse&)>& stored) {
    if (!wanted(name, words)) return;
    const Expected truth = true_lse();
    const StoredLse lse = stored({truth.value, truth.bound});
    add(name, words, {true_o(), {"LSE", lse.value, lse.bound}});
  }

  void append(std::vector<Alternative> others) {
    for (Alternative& other : others) {
      if (only_ == nullptr || only_->count({other.name, other.statement}) > 0) {
        alternatives_.push_back(std::move(other));
      }
    }
  }

  Expected true_o() const {
    return {"O", scene_.truth.forward().O, scene_.truth.forward_bounds().O};
  }
  Expected true_lse() const {
    return {"LSE", scene_.truth.forward().LSE, scene_.truth.forward_bounds().LSE};
  }
  bool has_lse() const { return has_lse_; }
  LseBase base() const { return conventions_.lse_base; }

 private:
  void add(const std::string& name, const std::string& words, std::vector<Expected> outputs) {
    if (!has_lse_) {
      outputs.erase(std::remove_if(outputs.begin(), outputs.end(),
                                   [](const Expected& one) { return one.output == "LSE"; }),
                    outputs.end());
    }
    alternatives_.push_back({name, statement(words), std::move(outputs)});
  }

  static std::string statement(const std::string& words) { return "the result " + words; }

  bool empty_row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    if (!plain_) plain_ = deviant_forward(scene_.problem, scene_.values, Deviation::none);
    return std::isinf(plain_->LSE.value(b, h, i));
  }

  // Rows that see a key keep the truth.
  void keep_visible_rows(Tensor& O, ErrorBound& bound) const {
    const TensorView& view = O.view();
    const ErrorBound& truth = scene_.truth.forward_bounds().O;
    for (std::int64_t b = 0; b < view.extent(0); ++b) {
      for (std::int64_t s = 0; s < view.extent(1); ++s) {
        for (std::int64_t h = 0; h < view.extent(2); ++h) {
          for (std::int64_t c = 0; c < view.extent(3) && !empty_row(b, h, s); ++c) {
            O.set(scene_.truth.forward().O(b, s, h, c), b, s, h, c);
            bound.deterministic.set(truth.deterministic(b, s, h, c), b, s, h, c);
            bound.probabilistic.set(truth.probabilistic(b, s, h, c), b, s, h, c);
            bound.sigma.set(truth.sigma(b, s, h, c), b, s, h, c);
          }
        }
      }
    }
  }

  // Rows without a key follow the kernel's convention.
  Expected with_empty_rows(Expected O) const {
    if (conventions_.empty_row != EmptyRow::nan) return O;
    const TensorView& view = O.value.view();
    for (std::int64_t b = 0; b < view.extent(0); ++b) {
      for (std::int64_t s = 0; s < view.extent(1); ++s) {
        for (std::int64_t h = 0; h < view.extent(2); ++h) {
          for (std::int64_t c = 0; c < view.extent(3) && empty_row(b, h, s); ++c) {
            O.value.set(std::nan(""), b, s, h, c);
          }
        }
      }
    }
    return O;
  }

  void as_convention_says(Expected& LSE) const {
    const double base = conventions_.lse_base == LseBase::two ? std::numbers::log2e : 1;
    for (std::int64_t e = 0; e < LSE.value.view().size(); ++e) {
      double& value = LSE.value.doubles()[e];
      if (std::isinf(value) && value < 0) value = values_of(conventions_.empty_row).LSE;
      value *= base;
    }
  }

  const Scene& scene_;
  Suspects only_;
  Conventions conventions_;
  Numerics numerics_;
  bool has_lse_;
  mutable std::optional<DeviantForward> plain_;
  std::vector<Alternative> alternatives_;
};

void add_heads(const Scene& scene, Forwards& forwards) {
  const Problem& p = scene.problem;
  if (p.num_heads_kv == 1) return;
  const auto with = [&](const char* name, const char* words,
                        const std::function<std::int64_t(std::int64_t)>& of) {
    Problem problem = p;
    problem.num_heads_kv = p.num_heads_q;
    problem.strides = Strides::packed;
    InputValues values = scene.values;
    values.K = with_heads(scene.values.K, p.k_axes(), p.num_heads_q, of);
    values.V = with_heads(scene.values.V, p.v_axes(), p.num_heads_q, of);
    forwards.other(name, words, problem, values);
  };
  if (p.group_size() > 1) {
    with("kv_head_modulo", "where query head h reads K/V head h mod num_heads_kv",
         [&](std::int64_t h) { return h % p.num_heads_kv; });
  }
  with("kv_head_zero", "where every head reads K/V head 0", [](std::int64_t) { return 0; });
  forwards.deviant("k_head_zero", "where every head reads K of head 0",
                   Deviation::keys_of_first_head);
}

// Every batch entry with the keys of the first, where those are as many: its pages for all.
void add_pages(const Scene& scene, Forwards& forwards) {
  const Problem& p = scene.problem;
  if (!is_paged(p) || p.batch == 1 || p.mask.packed()) return;
  const std::vector<Sequence> sequences = p.sequences();
  const auto longer = [&](const Sequence& s) {
    return s.visible_keys > sequences.front().visible_keys;
  };
  if (std::any_of(sequences.begin(), sequences.end(), longer)) return;
  InputValues values = scene.values;
  for (Tensor* keys : {&values.K, &values.V}) {
    const std::int64_t of_entry = keys->view().size() / p.batch;
    for (std::int64_t b = 1; b < p.batch; ++b) {
      std::copy_n(keys->doubles(), of_entry, keys->doubles() + b * of_entry);
    }
  }
  forwards.other("pages_of_first_entry", "with the pages of the first batch entry for every one", p,
                 values);
}

// Mistakes of kernels that serve several sequences, or one query, by a path of its own.
void add_serving(const Scene& scene, Forwards& forwards) {
  const Problem& p = scene.problem;
  const bool packed = p.mask.packed(), one_query = p.seqlen_q == 1 && !packed;
  if (p.batch > 1 && !packed && p.seqlen_q > 0) {
    forwards.other("batch_stride_of_row", "where the queries of a batch entry begin after one row",
                   p, queries_a_row_apart(p, scene.values));
  }
  if (one_query && p.group_size() > 1) {
    forwards.other("groups_as_rows",
                   "where one query of grouped heads is read with the strides of rows", p,
                   groups_as_rows(p, scene.values));
  }
  if (packed) {
    forwards.other("keys_of_neighbours",
                   "with keys of the sequences beside, taken where queries begin", p,
                   keys_at_queries(p, scene.values));
  }
  if (!forwards.has_lse()) return;
  if (p.group_size() > 1) {
    const auto first = [&](const StoredLse& truth) { return first_heads_of(p, truth); };
    forwards.stored_lse("lse_of_first_head", "with no LSE but of the first head of a group", first);
    if (one_query || (packed && p.seqlen_q == 1)) {
      forwards.stored_lse("lse_of_first_head_for_one_query",
                          "with no LSE but of the first head of a group, where there is one query",
                          first);
    }
  }
  if (packed) {
    forwards.stored_lse("lse_by_token", "with LSE stored by tokens and heads",
                        [](const StoredLse& truth) { return by_token(truth); });
  }
}

// Numbers of the problem in a type of fewer digits, where that changes them.
void add_rounded(const Problem& p, Forwards& forwards) {
  for (const DTypeFacts& type : kDTypes) {
    if (type.bits >= facts(DType::f32).bits) continue;
    const std::string word(type.name), to = " rounded to " + word;
    const double scale = round_to(type.dtype, p.scale()), cap = round_to(type.dtype, p.softcap);
    if (scale != p.scale()) {
      forwards.other("scale_in_" + word, "with the softmax scale" + to,
                     [scale](Problem& other) { other.softmax_scale = scale; });
    }
    if (cap != p.softcap) {
      forwards.other("softcap_in_" + word, "with the softcap" + to,
                     [cap](Problem& other) { other.softcap = cap; });
    }
  }
}

void add_tiled(Forwards& forwards) {
  for (const Tiles tiles : {Tiles::of_positions, Tiles::of_visible_keys}) {
    for (const std::int64_t block_k : {1, 2, 4, 8, 16, 32, 64, 128, 256}) {
      const std::string keys = std::to_string(block_k) + (block_k == 1 ? " key" : " keys");
      forwards.deviant("missing_rescale",
                       "without rescaling O when the maximum rises, in tiles of " + keys,
                       Deviation::missing_rescale, {block_k, tiles});
      if (block_k == 1) continue;
      forwards.deviant("padding_counted",
                       "where zero-filled keys of a partial tile of " + keys + " are counted",
                       Deviation::padding_counted, {block_k, tiles});
    }
  }
}

// Usual mistakes with a feature of the scores, beside that it is ignored.
struct ScoreMistake {
  std::uint32_t claim;
  const char *name, *words;
  Deviation deviation;
};

constexpr std::array kScoreMistakes{
    ScoreMistake{ATTEST_SOFTCAP, "softcap_after_mask", "with the softcap applied after the mask",
                 Deviation::softcap_after_mask},
    ScoreMistake{ATTEST_ALIBI, "alibi_sign", "with ALiBi of the opposite sign",
                 Deviation::alibi_sign},
    ScoreMistake{ATTEST_ALIBI, "alibi_first_slope",
                 "with the ALiBi slope of the first head for every head",
                 Deviation::alibi_first_slope},
    ScoreMistake{ATTEST_SINKS, "sink_of_first_head",
                 "with the sink of the first head for every head", Deviation::sink_of_first_head},
    ScoreMistake{ATTEST_SINKS, "sink_scaled", "with the sinks times the softmax scale",
                 Deviation::sink_scaled},
    ScoreMistake{ATTEST_SINKS, "sink_softcapped", "with the sinks under the softcap",
                 Deviation::sink_softcapped},
    ScoreMistake{ATTEST_SINKS, "lse_without_sink", "with LSE lacking the sink",
                 Deviation::lse_without_sink},
    ScoreMistake{ATTEST_BIAS, "bias_before_scale", "with the bias added before the softmax scale",
                 Deviation::bias_before_scale},
};

// A stride of the bias taken as 0.
void add_biases(const Problem& p, Forwards& forwards) {
  const auto first_of = [](std::size_t axis) {
    return [axis](Problem& other) { other.bias = other.bias.first_of(axis); };
  };
  if (p.bias.axes[0] && p.batch > 1) {
    forwards.other("bias_of_first_entry", "with the bias of the first batch entry for every one",
                   first_of(0));
  }
  if (p.bias.axes[1] && p.num_heads_q > 1) {
    forwards.other("bias_of_first_head", "with the bias of the first head for every head",
                   first_of(1));
  }
}

// The same of a mask of heads; and the query length of the first entry for all.
void add_masks_of_heads(const Problem& p, Forwards& forwards) {
  const auto first_of = [](std::size_t axis) {
    return [axis](Problem& other) { other.head_mask = other.head_mask.first_of(axis); };
  };
  if (p.head_mask.axes[0] && p.batch > 1) {
    forwards.other("head_mask_of_first_entry",
                   "with the masks of the first batch entry for every one", first_of(0));
  }
  if (p.head_mask.axes[1] && p.num_heads_q > 1) {
    forwards.other("head_mask_of_first_head", "with the mask of the first head for every head",
                   first_of(1));
  }
  if (p.query_lengths.kind == QueryLengths::Kind::none || p.batch == 1) return;
  forwards.other(
      "query_lengths_of_first_entry",
      "with the query length of the first batch entry for every one", [](Problem& other) {
        const std::vector<Sequence> all = other.sequences();
        other.query_lengths.kind = QueryLengths::Kind::given;
        other.query_lengths.given.clear();
        for (const Sequence& sequence : all) {
          other.query_lengths.given.push_back(
              static_cast<std::int32_t>(std::min(all.front().queries(), sequence.q_length)));
        }
      });
}

void add_score_features(const Problem& p, Forwards& forwards) {
  for (const ScoreFeature& feature : score_features()) {
    if (!feature.present(p) || feature.in_storage) continue;
    forwards.other(feature.word + std::string("_ignored"),
                   "without " + std::string(feature.the_feature), feature.remove);
    for (const ScoreMistake& mistake : kScoreMistakes) {
      if (mistake.claim != feature.claim) continue;
      forwards.deviant(mistake.name, mistake.words, mistake.deviation);
    }
  }
}

}  // namespace

ErrorBound bound_like(const ErrorBound& of_truth, const Tensor& truth_terms, const Tensor& value,
                      const Tensor& terms, DType output) {
  const auto scaled = [&](const Tensor& bound) {
    double factor = 0;
    for (std::int64_t e = 0; e < bound.view().size(); ++e) {
      const double term = truth_terms.doubles()[e];
      if (term > 0) factor = std::max(factor, bound.doubles()[e] / term);
    }
    Tensor sum = times(terms, factor);
    for (std::int64_t e = 0; e < sum.view().size(); ++e) {
      sum.doubles()[e] +=
          unit_roundoff(output) * std::abs(value.doubles()[e]) + underflow_unit(output);
    }
    return sum;
  };
  return {scaled(of_truth.deterministic), scaled(of_truth.probabilistic), scaled(of_truth.sigma)};
}

std::vector<Alternative> forward_alternatives(const Scene& scene, Suspects only) {
  Forwards forwards(scene, only);
  const Problem& p = scene.problem;
  const double scale = p.scale();
  for (const MaskMistake& mistake : mask_mistakes(p)) {
    forwards.other(mistake.name, mistake.words, mistake.problem, scene.values);
  }
  forwards.other("scale_omitted", "without the softmax scale",
                 [](Problem& other) { other.softmax_scale = 1.0; });
  forwards.other("scale_twice", "with the softmax scale applied twice",
                 [&](Problem& other) { other.softmax_scale = scale * scale; });
  add_score_features(p, forwards);
  add_biases(p, forwards);
  add_masks_of_heads(p, forwards);
  add_heads(scene, forwards);
  add_serving(scene, forwards);
  add_pages(scene, forwards);
  add_rounded(p, forwards);
  for (const ExchangedInputs& other : exchanged_inputs(scene.values)) {
    forwards.other(other.name, other.words, p, other.values);
  }
  forwards.deviant("last_key_dropped", "without the last key of the sequence",
                   Deviation::last_key_dropped);
  forwards.averages("mean_of_v", "with equal weights for all visible keys", Averaged::every_row,
                    [](Problem&) {});
  forwards.averages("empty_row_mean", "where rows without a visible key are the mean of V",
                    Averaged::rows_without_a_key, [](Problem& other) {
                      other.mask.remove_window();
                      other.mask.boolean = nullptr;
                    });
  forwards.deviant("halves_unweighted", "where two halves of the keys are averaged, not weighted",
                   Deviation::halves_unweighted);
  add_tiled(forwards);
  forwards.append(low_forward_alternatives(scene));
  if (!forwards.has_lse()) return forwards.take();
  if (forwards.base() == LseBase::e) {
    forwards.lse_times("lse_base_two", "with LSE to base 2", std::numbers::log2e);
  } else {
    forwards.lse_times("lse_base_e", "with LSE to base e", std::numbers::ln2);
  }
  forwards.deviant("lse_without_maximum", "with LSE lacking the row's maximum",
                   Deviation::lse_without_maximum);
  return forwards.take();
}

}  // namespace attest::proptest
