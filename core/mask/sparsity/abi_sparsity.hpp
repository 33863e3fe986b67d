#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/mask/sparsity/sparsity_pattern.hpp"

namespace attest {

/// The feature as which a kernel that claims `features` is given the pattern, or a boolean mask
/// without a compressed form (null): ATTEST_BLOCK_MASK or ATTEST_NM_MASK where the pattern is of
/// that form, else ATTEST_CSR_MASK, else ATTEST_BOOLEAN_MASK, the first one claimed; 0 where none
/// is.  [core/mask/sparsity/abi_sparsity_test "the first form claimed"]
std::uint32_t mask_form(const SparsityPattern* pattern, std::uint32_t features);

/// The ABI's form of a sparsity pattern; owns copies, so that a kernel that writes to them reaches
/// nothing else.
class AbiSparsity {
 public:
  /// Nothing where mask_form is ATTEST_BOOLEAN_MASK or 0.
  AbiSparsity(const SparsityPattern* pattern, std::uint32_t features);
  AbiSparsity(const AbiSparsity&) = delete;
  AbiSparsity& operator=(const AbiSparsity&) = delete;

  bool given() const { return form_ != 0; }

  /// Points the mask to it; of no effect without.
  /// [core/mask/sparsity/abi_sparsity_test "say the same pairs"]
  void attach(attest_mask& mask) const;

  /// Tells whether anything that a call can reach has changed.
  /// [core/mask/sparsity/abi_sparsity_test "a modified pattern is noticed"]
  bool changed() const;

 private:
  struct Arrays {
    CsrForm by_query, by_key;
    std::vector<std::uint8_t> offsets;

    friend bool operator==(const Arrays&, const Arrays&) = default;
  };
  struct Structs {
    attest_block_mask blocks;
    attest_csr_mask csr;
    attest_nm_mask nm;
  };

  std::uint32_t form_ = 0;  // ATTEST_BLOCK_MASK, ATTEST_CSR_MASK, ATTEST_NM_MASK or 0
  Arrays given_, before_;
  Structs structs_{};
  std::vector<std::byte> bytes_before_;  // of structs_
};

}  // namespace attest
