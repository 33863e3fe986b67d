#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "proptest/values/values.hpp"
#include "reference/exact/attention.hpp"

/// Attention by the textbook in float64, with one step done otherwise: what kernels with a known
/// mistake return. For mistakes that are no other problem, so that the reference cannot be asked.
namespace attest::proptest {

enum class Deviation : std::uint8_t {
  none,
  // forward
  alibi_sign,          // far keys are favoured
  alibi_first_slope,   // every head has the slope of the first
  sink_of_first_head,  // every head has the sink of the first
  sink_scaled,         // the softmax scale multiplies the sink
  sink_softcapped,     // the softcap bends the sink
  bias_before_scale,   // the softmax scale multiplies the bias too
  softcap_after_mask,  // masked keys keep the score -softcap
  keys_of_first_head,  // K of head 0, V of the right head
  missing_rescale,     // earlier tiles' weights keep the maximum they were formed with
  last_key_dropped,    // of a sequence of several
  halves_unweighted,   // the results of two halves of the keys are averaged
  padding_counted,     // zero-filled keys of the last tile have score 0
  lse_without_maximum,
  lse_without_sink,
  // backward
  softcap_slope_omitted,
  lse_of_previous_row
};

/// Where tiles of keys begin: at multiples of their size, or with the first visible key.
enum class Tiles : std::uint8_t { of_positions, of_visible_keys };

struct Tiling {
  std::int64_t block_k = 1;
  Tiles tiles = Tiles::of_positions;
};

/// A result and, per element, the sum of the absolute values of its terms: what rounding errors are
/// proportional to. Axes as the result's.
struct Weighed {
  Tensor value, magnitude;
};

struct DeviantForward {
  Weighed O, LSE;  // LSE in base e; rows without a visible key: 0 and -inf
};

struct DeviantBackward {
  Weighed dQ, dK, dV;
};

/// O and LSE with a deviation of the first group.
/// Cost: seqlen_q seqlen_k (head_dim_qk + head_dim_v) per head.
/// [proptest/signatures/signature_test "without a deviation"]
DeviantForward deviant_forward(const Problem& problem, const InputValues& values,
                               Deviation deviation, const Tiling& tiling = {});

/// Gradients with a deviation of the second group; P = exp(S - LSE) with the LSE and
/// delta = sum(dO O) - dLSE given, whatever mask `problem` has.
/// [proptest/signatures/signature_test "without a deviation"]
DeviantBackward deviant_backward(const Problem& problem, const InputValues& values,
                                 const reference::Cotangents& cotangents,
                                 const reference::Forward& stored, Deviation deviation);

}  // namespace attest::proptest
