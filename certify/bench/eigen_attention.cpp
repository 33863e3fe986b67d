#include "certify/bench/eigen_attention.hpp"

#include <omp.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/features/score_features.hpp"

namespace attest::certify {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using Square = Eigen::Map<Matrix>;
using Column = Eigen::Map<Eigen::VectorXf, Eigen::Unaligned, Eigen::InnerStride<>>;

bool supported(const attest_problem& p) {
  const attest_mask& m = p.mask;
  return p.dtype == ATTEST_F32 && p.num_heads_q == p.num_heads_kv && !asks_score_feature(p) &&
         m.window_left < 0 && m.window_right < 0 && m.key_lengths == nullptr &&
         m.cu_seqlens_q == nullptr && m.boolean == nullptr && p.seqlen_q > 0 && p.seqlen_k > 0;
}

// One head of a (batch, seqlen, heads, dim) tensor.
Rows head_rows(const attest_tensor& t, std::int64_t b, std::int64_t head) {
  auto* data = reinterpret_cast<float*>(static_cast<char*>(t.data) + t.byte_offset);
  return {data + b * t.strides[0] + head * t.strides[2], t.shape[1], t.shape[3],
          Eigen::OuterStride<>(t.strides[1])};
}

// One head of a (batch, heads, seqlen) tensor.
Column head_column(const attest_tensor& t, std::int64_t b, std::int64_t head) {
  auto* data = reinterpret_cast<float*>(static_cast<char*>(t.data) + t.byte_offset);
  return {data + b * t.strides[0] + head * t.strides[1], t.shape[2],
          Eigen::InnerStride<>(t.strides[2])};
}

std::int64_t square_elements(const attest_problem& p) { return p.seqlen_q * p.seqlen_k; }

std::size_t workspace_bytes(const void*, const attest_problem* problem, std::uint32_t direction) {
  const std::int64_t squares = direction == ATTEST_BACKWARD ? 2 : 1;
  return static_cast<std::size_t>(squares * square_elements(*problem) *
                                  std::max(problem->num_threads, 1)) *
         sizeof(float);
}

float* thread_space(void* workspace, const attest_problem& p, std::int64_t squares) {
  return static_cast<float*>(workspace) + squares * square_elements(p) * omp_get_thread_num();
}

void forward_head(const attest_forward_args& args, std::int64_t b, std::int64_t head,
                  float* space) {
  const attest_problem& p = *args.problem;
  const Rows Q = head_rows(*args.Q, b, head), K = head_rows(*args.K, b, head),
             V = head_rows(*args.V, b, head);
  Rows O = head_rows(*args.O, b, head);
  Square P(space, p.seqlen_q, p.seqlen_k);
  P.noalias() = Q * K.transpose();
  const auto scale = static_cast<float>(p.softmax_scale);
  for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
    auto row = P.row(i).array();
    row *= scale;
    const float maximum = row.maxCoeff();
    row = (row - maximum).exp();
    const float sum = row.sum();
    row *= 1.0f / sum;
    if (args.LSE != nullptr) head_column(*args.LSE, b, head)(i) = maximum + std::log(sum);
  }
  O.noalias() = P * V;
}

void backward_head(const attest_backward_args& args, std::int64_t b, std::int64_t head,
                   float* space) {
  const attest_problem& p = *args.problem;
  const Rows Q = head_rows(*args.Q, b, head), K = head_rows(*args.K, b, head),
             V = head_rows(*args.V, b, head), O = head_rows(*args.O, b, head),
             dO = head_rows(*args.dO, b, head);
  Rows dQ = head_rows(*args.dQ, b, head), dK = head_rows(*args.dK, b, head),
       dV = head_rows(*args.dV, b, head);
  const Column LSE = head_column(*args.LSE, b, head);
  Square P(space, p.seqlen_q, p.seqlen_k), dS(space + square_elements(p), p.seqlen_q, p.seqlen_k);
  const auto scale = static_cast<float>(p.softmax_scale);
  P.noalias() = Q * K.transpose();
  for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
    P.row(i) = (P.row(i).array() * scale - LSE(i)).exp();
  }
  dV.noalias() = P.transpose() * dO;
  dS.noalias() = dO * V.transpose();
  for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
    float delta = dO.row(i).dot(O.row(i));
    if (args.dLSE != nullptr) delta -= head_column(*args.dLSE, b, head)(i);
    dS.row(i) = P.row(i).array() * (dS.row(i).array() - delta) * scale;
  }
  dQ.noalias() = dS * K;
  dK.noalias() = dS.transpose() * Q;
}

attest_status forward(const void*, const attest_forward_args* args) {
  const attest_problem& p = *args->problem;
  if (!supported(p)) return ATTEST_UNSUPPORTED;
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(p.num_threads)
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t head = 0; head < p.num_heads_q; ++head) {
      forward_head(*args, b, head, thread_space(args->workspace, p, 1));
    }
  }
  return ATTEST_OK;
}

attest_status backward(const void*, const attest_backward_args* args) {
  const attest_problem& p = *args->problem;
  if (!supported(p)) return ATTEST_UNSUPPORTED;
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(p.num_threads)
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t head = 0; head < p.num_heads_q; ++head) {
      backward_head(*args, b, head, thread_space(args->workspace, p, 2));
    }
  }
  return ATTEST_OK;
}

}  // namespace

const attest_kernel& eigen_kernel() {
  static const attest_kernel kernel = [] {
    attest_kernel k{};
    k.struct_size = sizeof k;
    k.abi_version = ATTEST_ABI_VERSION;
    k.description.struct_size = sizeof k.description;
    k.description.name = "eigen/unfused";
    k.description.summary = "unfused attention on Eigen's products";
    k.description.device = ATTEST_CPU;
    k.description.directions = ATTEST_FORWARD | ATTEST_BACKWARD;
    k.description.dtypes = 1u << ATTEST_F32;
    k.description.features = ATTEST_LSE | ATTEST_DLSE | ATTEST_CROSS_LENGTHS | ATTEST_HEAD_DIM_V;
    k.description.empty_row = ATTEST_ZERO_NEG_INF;
    k.description.numerics.struct_size = sizeof k.description.numerics;
    k.workspace_bytes = workspace_bytes;
    k.forward = forward;
    k.backward = backward;
    return k;
  }();
  return kernel;
}

}  // namespace attest::certify
