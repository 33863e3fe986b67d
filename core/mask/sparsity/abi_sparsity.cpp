#include "core/mask/sparsity/abi_sparsity.hpp"

#include <cstring>
#include <utility>

namespace attest {
namespace {

// Indices of an empty list are never null: std::vector's data() may be.
template <class T>
const T* pointer(const std::vector<T>& list) {
  static const T nothing{};
  return list.empty() ? &nothing : list.data();
}

attest_lists lists(const CsrForm& csr) { return {pointer(csr.row_offsets), pointer(csr.columns)}; }

}  // namespace

std::uint32_t mask_form(const SparsityPattern* pattern, std::uint32_t features) {
  const auto claimed = [&](std::uint32_t feature) { return (features & feature) != 0; };
  if (pattern != nullptr) {
    const SparsityPattern::Form& form = pattern->form();
    if (std::holds_alternative<BlockForm>(form) && claimed(ATTEST_BLOCK_MASK)) {
      return ATTEST_BLOCK_MASK;
    }
    if (std::holds_alternative<NmForm>(form) && claimed(ATTEST_NM_MASK)) return ATTEST_NM_MASK;
    if (claimed(ATTEST_CSR_MASK)) return ATTEST_CSR_MASK;
  }
  return claimed(ATTEST_BOOLEAN_MASK) ? ATTEST_BOOLEAN_MASK : 0;
}

AbiSparsity::AbiSparsity(const SparsityPattern* pattern, std::uint32_t features) {
  const std::uint32_t form = mask_form(pattern, features);
  if (form == 0 || form == ATTEST_BOOLEAN_MASK) return;
  form_ = form;
  if (form == ATTEST_NM_MASK) {
    const auto& nm = std::get<NmForm>(pattern->form());
    given_.offsets = nm.offsets;
    structs_.nm = {sizeof structs_.nm, nm.kept, nm.group, pointer(given_.offsets)};
  } else if (form == ATTEST_BLOCK_MASK) {
    const auto& blocks = std::get<BlockForm>(pattern->form());
    given_.by_query = blocks.occupied;
    given_.by_key = std::get<BlockForm>(pattern->transpose().form()).occupied;
    structs_.blocks = {sizeof structs_.blocks, blocks.block_q, blocks.block_k,
                       lists(given_.by_query), lists(given_.by_key)};
  } else {
    given_.by_query = pattern->to_csr();
    given_.by_key = pattern->transpose().to_csr();
    structs_.csr = {sizeof structs_.csr, lists(given_.by_query), lists(given_.by_key)};
  }
  before_ = given_;
  bytes_before_.resize(sizeof structs_);
  std::memcpy(bytes_before_.data(), &structs_, sizeof structs_);
}

void AbiSparsity::attach(attest_mask& mask) const {
  mask.blocks = form_ == ATTEST_BLOCK_MASK ? &structs_.blocks : nullptr;
  mask.csr = form_ == ATTEST_CSR_MASK ? &structs_.csr : nullptr;
  mask.nm = form_ == ATTEST_NM_MASK ? &structs_.nm : nullptr;
}

bool AbiSparsity::changed() const {
  if (!given()) return false;
  return std::memcmp(bytes_before_.data(), &structs_, sizeof structs_) != 0 || given_ != before_;
}

}  // namespace attest
