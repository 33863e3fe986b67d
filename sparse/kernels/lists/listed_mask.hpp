#pragma once

#include "core/abi/attest_kernel.h"
#include "sparse/kernels/lists/owned_lists.hpp"

namespace attest::sparse {

/// A problem whose boolean mask, if it has one, has become lists.
///
/// Cost: time linear in seqlen_q x seqlen_k, memory in the pairs.
/// [sparse/kernels/kernels_test "kernels compute their definition"]
class ListedMask {
 public:
  explicit ListedMask(const attest_problem& problem);
  ListedMask(const ListedMask&) = delete;
  ListedMask& operator=(const ListedMask&) = delete;

  const attest_problem& problem() const { return problem_; }

 private:
  attest_problem problem_;
  OwnedLists by_query_, by_key_;
  attest_csr_mask csr_{};
};

}  // namespace attest::sparse
