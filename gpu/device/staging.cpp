#include "gpu/device/staging.hpp"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "core/features/head_mask_array.hpp"
#include "core/mask/sparsity/blocks_of.hpp"
#include "gpu/device/kernels/require.cuh"
#include "gpu/kernels/tiles/tensor.hpp"

namespace attest::gpu::cuda {
namespace {

// Longer than a launch takes to begin on an idle device.
constexpr std::chrono::milliseconds kDelay{2};

void CUDART_CB wait_a_little(void*) { std::this_thread::sleep_for(kDelay); }

}  // namespace

void* Staging::add(const char* name, const void* host, std::size_t bytes, Use use) {
  Copy copy{Buffer(name, bytes), Buffer(name, bytes), std::vector<std::byte>(bytes), nullptr, use};
  copy.host = static_cast<std::byte*>(const_cast<void*>(host));  // written to where it is an output
  if (bytes > 0) {
    std::memcpy(copy.sent.data(), host, bytes);
    copy.source.upload(host);
  }
  copies_.push_back(std::move(copy));
  return copies_.back().target.data();
}

const attest_tensor* Staging::tensor(const char* name, const attest_tensor* host, Use use) {
  if (host == nullptr) return nullptr;
  const auto bytes = static_cast<std::size_t>(span_of(*host)) * host->dtype.bits / 8;
  attest_tensor& tensor = tensors_.emplace_back(*host);
  if (bytes > kMostBytes) {
    too_large_ = true;
    return &tensor;
  }
  tensor.data = add(name, elements<char>(host), bytes, use);
  tensor.byte_offset = 0;
  tensor.device = {ATTEST_CUDA, 0};
  return &tensor;
}

template <class T>
const T* Staging::add_array(const char* name, const T* host, std::int64_t count) {
  if (host == nullptr) return nullptr;
  return static_cast<const T*>(
      add(name, host, static_cast<std::size_t>(count) * sizeof(T), Use::input));
}

attest_lists Staging::add_lists(const attest_lists& host, std::int64_t lines) {
  return {add_array("offsets of the mask", host.offsets, lines + 1),
          add_array("indices of the mask", host.indices, host.offsets[lines])};
}

void Staging::add_sparsity(const attest_problem& host) {
  attest_mask& mask = problem_.mask;
  if (const attest_block_mask* const given = host.mask.blocks; given != nullptr) {
    blocks_ = *given;
    blocks_.by_query = add_lists(given->by_query, blocks_of(host.seqlen_q, given->block_q));
    blocks_.by_key = add_lists(given->by_key, blocks_of(host.seqlen_k, given->block_k));
    mask.blocks = &blocks_;
  }
  if (const attest_csr_mask* const given = host.mask.csr; given != nullptr) {
    csr_ = *given;
    csr_.by_query = add_lists(given->by_query, host.seqlen_q);
    csr_.by_key = add_lists(given->by_key, host.seqlen_k);
    mask.csr = &csr_;
  }
  if (const attest_nm_mask* const given = host.mask.nm; given != nullptr) {
    nm_ = *given;
    const std::int64_t groups = host.seqlen_q * blocks_of(host.seqlen_k, given->group);
    nm_.offsets = add_array("N:M offsets", given->offsets, groups * given->kept);
    mask.nm = &nm_;
  }
}

const attest_problem* Staging::problem(const attest_problem& host) {
  problem_ = host;
  attest_mask& mask = problem_.mask;
  mask.key_lengths = add_array("key_lengths", host.mask.key_lengths, host.batch);
  mask.cu_seqlens_q = add_array("cu_seqlens_q", host.mask.cu_seqlens_q, host.batch + 1);
  mask.cu_seqlens_k = add_array("cu_seqlens_k", host.mask.cu_seqlens_k, host.batch + 1);
  mask.query_lengths = add_array("query_lengths", host.mask.query_lengths, host.batch);
  if (host.mask.per_head != nullptr) {
    head_mask_ = *host.mask.per_head;
    head_mask_.visible = add_array("per_head", head_mask_.visible, head_mask_span(host));
    mask.per_head = &head_mask_;
  }
  mask.boolean = add_array("boolean", host.mask.boolean, host.seqlen_q * host.seqlen_k);
  add_sparsity(host);
  problem_.alibi_slopes = add_array("alibi_slopes", host.alibi_slopes, host.num_heads_q);
  problem_.sinks = add_array("sinks", host.sinks, host.num_heads_q);
  if (host.paged_kv != nullptr) {
    paged_kv_ = *host.paged_kv;
    paged_kv_.block_table =
        add_array("block_table", host.paged_kv->block_table, host.batch * paged_kv_.max_pages);
    problem_.paged_kv = &paged_kv_;
  }
  return &problem_;
}

void* Staging::workspace(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  return workspaces_.emplace_back("workspace", bytes).data();
}

void Staging::fill(void* stream) {
  auto* const on = static_cast<cudaStream_t>(stream);
  require(cudaDeviceSynchronize(), "fill buffers");  // of NaN, on another stream
  require(cudaLaunchHostFunc(on, wait_a_little, nullptr), "delay");
  for (const Copy& copy : copies_) {
    require(cudaMemcpyAsync(copy.target.data(), copy.source.data(), copy.target.bytes(),
                            cudaMemcpyDeviceToDevice, on),
            copy.target.name());
  }
}

std::optional<Finding> Staging::finish(void* stream) {
  require(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "work on the stream");
  for (const Buffer& workspace : workspaces_) {
    if (const auto text = workspace.overrun()) return Finding{Finding::Kind::wrote_beside, *text};
  }
  for (const Copy& copy : copies_) {
    if (const auto text = copy.target.overrun()) return Finding{Finding::Kind::wrote_beside, *text};
  }
  for (const Copy& copy : copies_) {
    const std::vector<std::byte> now = copy.target.download();
    if (copy.use == Use::input && now != copy.sent) {
      return Finding{Finding::Kind::wrote_input, copy.target.name() + ": written on the device"};
    }
    for (std::size_t k = 0; k < now.size(); ++k) {
      if (now[k] != copy.sent[k]) copy.host[k] = now[k];
    }
  }
  return std::nullopt;
}

}  // namespace attest::gpu::cuda
