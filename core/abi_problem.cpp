// The ABI's form of a problem.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/features/head_mask_array.hpp"
#include "core/features/pages.hpp"
#include "core/problem.hpp"

namespace attest {

namespace {

bool given_boolean(const SparsityPattern* pattern, std::uint32_t features) {
  const std::uint32_t form = mask_form(pattern, features);
  return form == ATTEST_BOOLEAN_MASK || form == 0;
}

std::vector<std::int32_t> query_lengths(const Problem& problem) {
  std::vector<std::int32_t> lengths;
  if (problem.query_lengths.kind == QueryLengths::Kind::none) return lengths;
  for (const Sequence& sequence : problem.sequences()) {
    lengths.push_back(static_cast<std::int32_t>(sequence.queries()));
  }
  return lengths;
}

}  // namespace

AbiProblem::AbiProblem(const Problem& problem, std::int32_t num_threads, std::uint32_t features)
    : AbiProblem(problem, num_threads, features, given_boolean(problem.mask.sparsity(), features)) {
}

AbiProblem::AbiProblem(const Problem& problem, std::int32_t num_threads)
    : AbiProblem(problem, num_threads, ATTEST_NM_MASK, true) {}

AbiProblem::AbiProblem(const Problem& problem, std::int32_t num_threads, std::uint32_t features,
                       bool boolean)
    : given_{problem.mask.key_lengths,
             problem.mask.cu_seqlens_q,
             problem.mask.cu_seqlens_k,
             {},
             problem.alibi_slopes(),
             problem.sink_scores(),
             {},
             query_lengths(problem),
             head_mask_bytes(problem)},
      sparsity_(problem.mask.sparsity(), features) {
  const Pattern& mask = problem.mask;
  boolean = boolean && mask.boolean;
  if (boolean) given_.boolean = mask.boolean->visible;
  if (is_paged(problem)) {
    Pages pages(problem);
    given_.block_table = std::move(pages.block_table);
    paged_kv_ = {sizeof paged_kv_, pages.page_size, pages.pages, pages.max_pages,
                 given_.block_table.data()};
    problem_.paged_kv = &paged_kv_;
  }
  paged_kv_before_ = paged_kv_;
  if (problem.head_mask.kind != HeadMask::Kind::none) {
    const std::array<std::int64_t, 4> strides = head_mask_strides(problem);
    head_mask_.struct_size = sizeof head_mask_;
    head_mask_.visible = given_.head_mask.data();
    std::copy(strides.begin(), strides.end(), head_mask_.strides);
    problem_.mask.per_head = &head_mask_;
  }
  head_mask_before_ = head_mask_;
  if (mask.banded() && (mask.offset || (features & ATTEST_OFFSET_WINDOW) != 0)) {
    window_ends_ = {sizeof window_ends_, mask.left_bounded() ? 0 : 1, mask.right_bounded() ? 0 : 1};
    problem_.mask.window_ends = &window_ends_;
  }
  window_ends_before_ = window_ends_;
  before_ = given_;
  problem_.struct_size = sizeof problem_;
  problem_.batch = problem.batch;
  problem_.num_heads_q = problem.num_heads_q;
  problem_.num_heads_kv = problem.num_heads_kv;
  problem_.seqlen_q = problem.seqlen_q;
  problem_.seqlen_k = problem.seqlen_k;
  problem_.head_dim_qk = problem.head_dim_qk;
  problem_.head_dim_v = problem.head_dim_v;
  problem_.dtype = abi(problem.dtype);
  problem_.softmax_scale = problem.scale();
  problem_.softcap = problem.softcap;
  const auto pointer = [](const auto& list) { return list.empty() ? nullptr : list.data(); };
  problem_.alibi_slopes = pointer(given_.alibi_slopes);
  problem_.sinks = pointer(given_.sinks);
  problem_.num_splits = problem.num_splits;
  problem_.num_threads = num_threads;
  problem_.mask.window_left = mask.left_bounded() ? mask.window_left : -1;
  problem_.mask.window_right = mask.right_bounded() ? mask.window_right : -1;
  problem_.mask.align = mask.align == CausalAlign::top_left ? ATTEST_TOP_LEFT : ATTEST_BOTTOM_RIGHT;
  problem_.mask.key_lengths = pointer(given_.key_lengths);
  problem_.mask.cu_seqlens_q = pointer(given_.cu_seqlens_q);
  problem_.mask.cu_seqlens_k = pointer(given_.cu_seqlens_k);
  problem_.mask.query_lengths = pointer(given_.query_lengths);
  problem_.mask.boolean = boolean ? given_.boolean.data() : nullptr;
  sparsity_.attach(problem_.mask);
  std::memcpy(bytes_before_.data(), &problem_, sizeof problem_);
}

std::string AbiProblem::changed() const {
  // Every byte, padding too: the copy was made as bytes.
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  if (std::memcmp(bytes_before_.data(), &problem_, sizeof problem_) != 0) {
    return "the problem was modified";
  }
  if (given_.key_lengths != before_.key_lengths) return "input key_lengths was modified";
  if (given_.cu_seqlens_q != before_.cu_seqlens_q) return "input cu_seqlens_q was modified";
  if (given_.cu_seqlens_k != before_.cu_seqlens_k) return "input cu_seqlens_k was modified";
  if (given_.boolean != before_.boolean) return "input boolean mask was modified";
  if (sparsity_.changed()) return "input sparsity pattern was modified";
  if (given_.query_lengths != before_.query_lengths) return "input query_lengths was modified";
  // Fields of eight bytes each, or two of four: no padding.
  if (given_.head_mask != before_.head_mask ||
      std::memcmp(&head_mask_, &head_mask_before_, sizeof head_mask_) != 0) {
    return "input per_head mask was modified";
  }
  if (std::memcmp(&window_ends_, &window_ends_before_, sizeof window_ends_) != 0) {
    return "input window_ends was modified";
  }
  if (given_.block_table != before_.block_table) return "input block_table was modified";
  // Five fields of eight bytes each: no padding.
  if (std::memcmp(&paged_kv_, &paged_kv_before_, sizeof paged_kv_) != 0) {
    return "input paged_kv was modified";
  }
  const auto same_bits = [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  };
  const auto same = [&](const std::vector<float>& a, const std::vector<float>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), same_bits);
  };
  if (!same(given_.alibi_slopes, before_.alibi_slopes)) return "input alibi_slopes was modified";
  return same(given_.sinks, before_.sinks) ? "" : "input sinks was modified";
}

}  // namespace attest
