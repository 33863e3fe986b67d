#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "core/rng.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// A FlashAttention forward that Triton compiled for sm_80 (mma.sync, tiles of 32 queries) and for
/// sm_90 (wgmma, of 64): tiles of 16 keys, d = 16.
namespace attest::ptx::testing {

inline constexpr std::size_t kDepth = 16;
inline constexpr float kScale = 0.25F;

struct Compiled {
  const char* text;
  std::size_t queries;  // of a block
  unsigned threads;
  std::int64_t shared_bytes;
};
inline constexpr Compiled kSm80{"attention_triton", 32, 64, 2048},
    kSm90{"attention_triton_sm90", 64, 128, 4096};

inline std::vector<std::uint16_t> random_rows(std::uint64_t seed, std::size_t rows) {
  std::vector<std::uint16_t> values(rows * kDepth);
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = bf16_from_float(static_cast<float>(mix(seed, k) % 257) / 64.0F - 2.0F);
  }
  return values;
}

struct Attention {
  std::size_t queries, keys;
  std::vector<std::uint16_t> q = random_rows(1, queries), k = random_rows(2, keys),
                             v = random_rows(3, keys), o = random_rows(4, queries);
  std::vector<float> lse = std::vector<float>(queries, NAN);

  simt::LaunchReport run(const Compiled& compiled, const std::string& text, simt::Order order) {
    Call call(text);
    call.input("q", q).input("k", k).input("v", v).buffer("o", o).buffer("lse", lse);
    call.value(kScale).value(static_cast<std::uint32_t>(queries));
    call.value(static_cast<std::uint32_t>(keys)).value(std::uint64_t{0}).value(std::uint64_t{0});
    const auto blocks = static_cast<unsigned>(blocks_of(compiled));
    return call.run(blocks, compiled.threads, compiled.shared_bytes, order);
  }

  std::size_t blocks_of(const Compiled& compiled) const {
    return (queries + compiled.queries - 1) / compiled.queries;
  }

  // Errors of O and of LSE in units of what bf16's P and O, and float32's sums, may give.
  double worst_error() const {
    double worst = 0.0;
    const auto at = [](const std::vector<std::uint16_t>& rows, std::size_t row, std::size_t d) {
      return static_cast<double>(float_from_bf16(rows[row * kDepth + d]));
    };
    for (std::size_t i = 0; i < queries; ++i) {
      std::vector<double> weights(keys);
      double sum = 0.0;
      for (std::size_t j = 0; j < keys; ++j) {
        double score = 0.0;
        for (std::size_t d = 0; d < kDepth; ++d) score += at(q, i, d) * at(k, j, d);
        weights[j] = std::exp(score * static_cast<double>(kScale));
        sum += weights[j];
      }
      const double exact_lse = std::log(sum);
      const double lse_unit = unit_roundoff(DType::f32) * static_cast<double>(16 + keys);
      worst = std::fmax(worst, std::fabs(static_cast<double>(lse[i]) - exact_lse) /
                                   (lse_unit * (1.0 + std::fabs(exact_lse))));
      for (std::size_t d = 0; d < kDepth; ++d) {
        double exact = 0.0, magnitude = 0.0;
        for (std::size_t j = 0; j < keys; ++j) {
          exact += weights[j] / sum * at(v, j, d);
          magnitude += weights[j] / sum * std::fabs(at(v, j, d));
        }
        const double unit = 2.0 * unit_roundoff(DType::bf16) * (magnitude + std::fabs(exact));
        worst = std::fmax(worst, std::fabs(at(o, i, d) - exact) / unit);
      }
    }
    return worst;
  }
};

}  // namespace attest::ptx::testing
