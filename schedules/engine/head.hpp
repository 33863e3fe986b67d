#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/geometry.hpp"
#include "io/machine/slow_memory.hpp"
#include "io/machine/words.hpp"

/// Operands and results of a schedule: the matrices of one (batch, head), in slow memory.
namespace attest::schedules {

using cpu::Batch, cpu::KeySpan, cpu::batch_of;

class MaskHull;

/// How Q K^T becomes scores: scale, softcap, ALiBi, mask.
struct ScoreRule {
  const attest_problem* problem = nullptr;
  Batch batch{};
  std::int64_t head = 0;           // query head
  const MaskHull* hull = nullptr;  // of the mask's own pairs, for schedules that go by its band
};

/// Queries times keys up to which a schedule lists what each query sees, a fraction of a second
/// for one list: 4096 times 4096.
inline constexpr std::int64_t kMostListedPairs = std::int64_t{1} << 24;

/// Extents of one head, and the width of its inputs and outputs in slow memory.
struct HeadShape {
  io::Words q, k, dk, dv;
  std::int64_t width = 4;
  std::int64_t sum_width = 4;  // of dK and dV as this head leaves them

  /// Words that have the inputs' dtype, and words that are float32 (sums, statistics, workspace).
  io::Amount in(io::Words words) const { return {words, words * width}; }
  static io::Amount real(io::Words words) { return {words, words * 4}; }
  /// Words of dK and dV.
  io::Amount sums(io::Words words) const { return {words, words * sum_width}; }
};

/// Q (q, dk), K (k, dk), V (k, dv) -> O (q, dv), LSE (q, 1).
struct ForwardHead {
  io::SlowMatrix Q, K, V;
  io::MutableSlowMatrix O, LSE;
  ScoreRule rule;
};

/// Where the sums dK and dV begin: at zero, or at what the query heads before this one left of a
/// group that shares K and V.
enum class Sums : std::uint8_t { fresh, continued };

/// Q, K, V, O, dO, LSE, dLSE -> dQ, dK, dV. P (q, k) is what the standard forward saved, m and l
/// (q, 1) what flash1 saved; only their own backward reads them. All heads of a group but the last
/// leave dK and dV in float32, and the later ones begin there.
struct BackwardHead {
  io::SlowMatrix Q, K, V, O, dO, LSE, dLSE;
  io::SlowMatrix P, m, l;
  io::MutableSlowMatrix dQ, dK, dV;
  ScoreRule rule;
  Sums sums = Sums::fresh;
  io::SlowMatrix dK_before{}, dV_before{};
};

template <class Head>
HeadShape shape_of(const Head& head) {
  HeadShape shape{head.Q.rows(), head.K.rows(), head.Q.columns(), head.V.columns(),
                  static_cast<std::int64_t>(size_bytes(head.Q.dtype()))};
  if constexpr (requires { head.dK; }) {
    shape.sum_width = static_cast<std::int64_t>(size_bytes(head.dK.dtype()));
  }
  return shape;
}

/// Every row, or every column.
inline io::Range all_rows(const io::SlowMatrix& matrix) { return {0, matrix.rows()}; }
inline io::Range all_columns(const io::SlowMatrix& matrix) { return {0, matrix.columns()}; }

}  // namespace attest::schedules
