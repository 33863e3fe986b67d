#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "core/tensor.hpp"

/// K and V in pages: which page and slot a key lies in, and tensors to and fro.
namespace attest {

/// Tells whether K and V of the problem lie in pages.
bool is_paged(const Problem& problem);

/// Pages of a problem and its block table: those that hold keys are handed out in an order that the
/// seed draws; entries past them name a page that holds no key where there is one, else any. Rows
/// of the table have 0, 1 or 2 entries more than the longest entry needs, by the seed.
/// [core/features/pages_test]
struct Pages {
  std::int64_t page_size, pages, max_pages;
  std::vector<std::int32_t> block_table;  // (batch, max_pages)

  /// Requires: is_paged. Cost: the number of pages.
  explicit Pages(const Problem& problem);
};

/// Returns the axes of K and V as a call stores them: (pages, page_size, num_heads_kv, head_dim)
/// where they lie in pages, else Problem::k_axes and v_axes.
std::vector<Axis> stored_k_axes(const Problem& problem);
std::vector<Axis> stored_v_axes(const Problem& problem);

/// Returns K or V in pages from (batch, seqlen_k, num_heads_kv, head_dim), or tokens of packed
/// sequences; `unused` in slots past the keys and in pages without one. A problem that is not paged
/// has the tensor itself.
Tensor in_pages(const Problem& problem, const Tensor& keys,
                double unused = std::numeric_limits<double>::quiet_NaN());

/// Place of key j of batch entry b: its page, and the slot there.
struct PagedKey {
  std::int64_t page, slot;
};
PagedKey place_of_key(const attest_paged_kv& paged_kv, std::int64_t b, std::int64_t j);

/// Stores NaN in all elements of K or V that hold no key of the problem.
void poison_unused(const Problem& problem, const TensorView& stored);

}  // namespace attest
