#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/contract/conventions.hpp"
#include "core/dtype/dtype.hpp"
#include "core/features/bias.hpp"
#include "core/features/head_mask.hpp"
#include "core/features/query_lengths.hpp"
#include "core/mask/pattern.hpp"
#include "core/mask/sparsity/abi_sparsity.hpp"
#include "core/tensor.hpp"

/// Description of what an attention kernel is asked to compute, without the values.
namespace attest {

/// Slopes of ALiBi (Press et al. 2022): none; the geometric sequence 2^(-8 (h+1) / num_heads_q),
/// for 2, 4 and 8 heads powers of two; or drawn between 2^-8 and 1, with all bits of a float.
enum class Alibi : std::uint8_t { none, standard, drawn };

std::string_view name(Alibi alibi);

/// Attention sinks: none; -inf in each head, which is no sink; drawn, mostly between -4 and 4, now
/// and then -inf or above all scores of normal inputs; or given by a caller, which no text spells.
enum class Sinks : std::uint8_t { none, off, drawn, given };

std::string_view name(Sinks sinks);

/// Pages of K and V, which a block table names (attest_paged_kv). Spelled page_size, _order and
/// _pages: 16, 16_7 or 16_7_66000.
struct PagedKv {
  std::int64_t page_size = 0;  // slots of a page; 0: K and V are not paged
  std::uint64_t order = 0;     // seed of the order in which pages are handed out
  std::int64_t pages = 0;      // at least so many; 0: one more than keys need

  friend bool operator==(const PagedKv&, const PagedKv&) = default;
};

/// Memory of K and V: each in its own; or the narrower as the first or the last columns of the
/// wider (V of K, where they are as wide). Apart: the same values and strides, in two buffers.
enum class SharedKv : std::uint8_t { none, first, last, first_apart, last_apart };

std::string_view name(SharedKv shared);

/// Where the narrower of K and V lies in the wider: in K where V is as wide, and from which
/// column.
struct SharedColumns {
  bool of_k;
  std::int64_t first;
};

/// A problem and its one-line spelling:
///
///   b=1,hq=8,hkv=2,sq=17,sk=33,d=64,dv=64,mask=causal_br,dtype=f32,layout=bshd,scale=1/sqrt(d)
///
/// Optional keys, printed only when they differ from the default: softcap=0, alibi=none,
/// sinks=none, bias=none, paged_kv (K and V are not), shared_kv=none, head_mask=none,
/// query_lengths=none, splits=0, strides=packed. Slopes of ALiBi are `standard`, or `drawn_N` from
/// seed N, sinks `off` or `drawn_N`, a bias, a mask of heads and query lengths as
/// core/features/bias.hpp, head_mask.hpp and query_lengths.hpp have them. Omitted keys mean
/// b=1,hq=1,hkv=hq,sk=sq,dv=d,mask=none,dtype=f32,layout=bshd, scale=1/sqrt(d); with packed
/// sequences (mask=cu_…) b, sq, sk and layout=thd follow from them.
struct Problem {
  std::int64_t batch = 1;
  std::int64_t num_heads_q = 1;
  std::int64_t num_heads_kv = 1;
  std::int64_t seqlen_q = 1;  // the longest, with packed sequences
  std::int64_t seqlen_k = 1;
  std::int64_t head_dim_qk = 1;
  std::int64_t head_dim_v = 1;
  DType dtype = DType::f32;
  Layout layout = Layout::bshd;
  Strides strides = Strides::packed;
  std::optional<double> softmax_scale;  // absent: 1/sqrt(head_dim_qk)
  double softcap = 0;                   // 0: none
  Alibi alibi = Alibi::none;
  std::uint64_t alibi_seed = 0;  // of slopes that are drawn
  Sinks sinks = Sinks::none;
  std::uint64_t sinks_seed = 0;    // of those that are drawn
  std::vector<float> given_sinks;  // those that are given, one per query head
  Bias bias;
  PagedKv paged_kv;
  std::int64_t num_splits = 0;  // parts of the keys, a hint; 0: the kernel's own choice
  SharedKv shared_kv = SharedKv::none;
  HeadMask head_mask;
  QueryLengths query_lengths;
  Pattern mask;

  /// The factor of QK^T, in float64.
  double scale() const;

  /// One slope per query head, empty without ALiBi; exactly the floats a kernel is given.
  std::vector<float> alibi_slopes() const;

  /// One score per query head, empty without sinks; exactly the floats a kernel is given.
  std::vector<float> sink_scores() const;

  /// The type that the bias is held in.
  DType bias_dtype() const { return bias.dtype(dtype); }

  /// The bias of one score, exactly the number that a kernel is given: of sequence b and query
  /// head h the query i and the key j; 0 without one.
  double bias_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return bias(bias_dtype(), b, h, i, j);
  }

  /// Tells whether masks of heads and the bias leave a pair of sequence b and query head h.
  bool shows(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return head_mask(b, h, i, j) && bias_at(b, h, i, j) != -std::numeric_limits<double>::infinity();
  }

  /// Columns that K and V have in common; of use where they share memory.
  SharedColumns shared_columns() const;

  /// Query heads that share one K/V head.
  std::int64_t group_size() const { return num_heads_q / num_heads_kv; }

  /// The batch entries and where they lie in the tensors, one per batch entry.
  std::vector<Sequence> sequences() const;

  /// Extents of the tensors' batch and sequence axes (1 and all tokens with packed sequences).
  std::int64_t tensor_batch() const;
  std::int64_t tensor_seqlen_q() const;
  std::int64_t tensor_seqlen_k() const;

  /// Names and extents of the logical axes, strides 0:
  /// Q, O, dO, dQ (batch, seqlen_q, num_heads_q, head_dim); K, V, dK, dV (batch, seqlen_k,
  /// num_heads_kv, head_dim); LSE, dLSE (batch, num_heads_q, seqlen_q).
  std::vector<Axis> q_axes() const;      // Q, dQ: head_dim_qk
  std::vector<Axis> k_axes() const;      // K, dK
  std::vector<Axis> v_axes() const;      // V, dV: head_dim_v
  std::vector<Axis> o_axes() const;      // O, dO
  std::vector<Axis> lse_axes() const;    // LSE, dLSE
  std::vector<Axis> sinks_axes() const;  // dSinks (num_heads_q), of no head without sinks

  /// dBias (batch, num_heads_q, seqlen_q, seqlen_k), of extent 1 along the axes that the bias
  /// does not depend on; of no element without a bias.
  std::vector<Axis> bias_axes() const;

  /// Axes of the mask of heads, of extent 1 where it does not depend on them; of no element
  /// without one.
  std::vector<Axis> head_mask_axes() const;

  /// Visible (query, key) pairs of one head by the mask that all heads share, summed over the
  /// batch.
  std::int64_t visible_pairs() const;

  /// Throws InvalidProblem when a size is impossible, heads do not divide, lists do not match the
  /// batch, or a number of elements exceeds 2^63 - 1.  [core/problem_test "refused"]
  void validate() const;

  /// The canonical spelling: parse(to_string()) is the same problem.
  /// [core/problem_test "round trip"]
  std::string to_string() const;

  /// Parses and validates. Throws InvalidProblem naming key, value, what is needed and the
  /// nearest known key.
  static Problem parse(std::string_view text);
};

/// The ABI's form of a problem; owns the arrays it points to.
class AbiProblem {
 public:
  /// For a kernel of these `features`: a sparsity pattern comes in the form that it is given
  /// (mask_form), as a boolean mask to one that claims none.
  /// [core/mask/sparsity/abi_sparsity_test]
  AbiProblem(const Problem& problem, std::int32_t num_threads, std::uint32_t features);

  /// For schedules: the boolean mask of any pattern, and beside it an N:M pattern's own form,
  /// whose metadata some read.  [core/mask/sparsity/abi_sparsity_test "what schedules are given"]
  AbiProblem(const Problem& problem, std::int32_t num_threads);

  AbiProblem(const AbiProblem&) = delete;
  AbiProblem& operator=(const AbiProblem&) = delete;
  const attest_problem* get() const { return &problem_; }

  /// "" while everything a call can reach from `get()` is as it was; else what was modified.
  /// [core/problem_test "a modified ABI problem is noticed"]
  std::string changed() const;

 private:
  AbiProblem(const Problem& problem, std::int32_t num_threads, std::uint32_t features,
             bool boolean);

  // Copies: a kernel that writes to them reaches nothing else.
  struct Arrays {
    std::vector<std::int32_t> key_lengths, cu_seqlens_q, cu_seqlens_k;
    std::vector<std::uint8_t> boolean;
    std::vector<float> alibi_slopes, sinks;
    std::vector<std::int32_t> block_table, query_lengths;
    std::vector<std::uint8_t> head_mask;
  };
  Arrays given_, before_;
  AbiSparsity sparsity_;
  attest_paged_kv paged_kv_{}, paged_kv_before_{};
  attest_head_mask head_mask_{}, head_mask_before_{};
  attest_window_ends window_ends_{}, window_ends_before_{};
  attest_problem problem_{};
  std::array<std::byte, sizeof(attest_problem)> bytes_before_{};
};

}  // namespace attest
