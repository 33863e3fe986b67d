#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/sparse_operands/sparse_operands.hpp"

/// Kernels of dense softmax attention over sparse Q, K, V: the ABI of attest_kernel.h has no form
/// for them.
namespace attest {

/// Row-major float32. LSE in base e.
struct SparseOutputs {
  std::vector<float> O;    // (seqlen_q, head_dim_v)
  std::vector<float> LSE;  // (seqlen_q)
};

struct SparseGradients {
  std::vector<float> dQ;  // (seqlen_q, head_dim_qk)
  std::vector<float> dK;  // (seqlen_k, head_dim_qk)
  std::vector<float> dV;  // (seqlen_k, head_dim_v)
};

/// Which maximum the forward pass subtracts: that of the whole row, or that of the keys so far, in
/// ascending order one by one or in tiles, with all sums rescaled when it rises.
enum class Subtracted : std::uint8_t { final_maximum, running_maximum };

struct SparseKernel {
  std::string name, summary;
  Subtracted subtracted = Subtracted::final_maximum;
  std::function<SparseOutputs(const SparseOperands&)> forward;
  /// dO (seqlen_q, head_dim_v), and what a forward pass stored.
  std::function<SparseGradients(const SparseOperands&, std::span<const float> dO,
                                const SparseOutputs& stored)>
      backward;
};

}  // namespace attest
