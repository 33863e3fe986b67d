#include "core/mask/sparsity/abi_sparsity.hpp"

#include <algorithm>

#include "core/problem.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

constexpr std::uint32_t kAll =
    ATTEST_BOOLEAN_MASK | ATTEST_BLOCK_MASK | ATTEST_CSR_MASK | ATTEST_NM_MASK;

std::uint32_t form_of(const char* spelling, std::uint32_t features) {
  const SparsityPattern pattern = SparsityPattern::parse(spelling, 5, 7);
  return mask_form(&pattern, features);
}

TEST_CASE("the first form claimed is given", "[sparsity]") {
  CHECK(form_of("block_2x3_50_1", kAll) == ATTEST_BLOCK_MASK);
  CHECK(form_of("nm_1_2_1", kAll) == ATTEST_NM_MASK);
  CHECK(form_of("pairs_50_1", kAll) == ATTEST_CSR_MASK);
  CHECK(form_of("global_1_1_1", kAll) == ATTEST_CSR_MASK);
  for (const char* spelling : {"block_2x3_50_1", "nm_1_2_1", "pairs_50_1", "global_1_1_1"}) {
    CHECK(form_of(spelling, ATTEST_CSR_MASK | ATTEST_BOOLEAN_MASK) == ATTEST_CSR_MASK);
    CHECK(form_of(spelling, ATTEST_BOOLEAN_MASK) == ATTEST_BOOLEAN_MASK);
    CHECK(form_of(spelling, 0) == 0);
  }
  CHECK(form_of("pairs_50_1", ATTEST_BLOCK_MASK | ATTEST_NM_MASK) == 0);
  CHECK(mask_form(nullptr, kAll) == ATTEST_BOOLEAN_MASK);
  CHECK(mask_form(nullptr, kAll & ~std::uint32_t{ATTEST_BOOLEAN_MASK}) == 0);
}

std::vector<std::uint8_t> listed(const attest_lists& lists, std::int64_t lines,
                                 std::int64_t width) {
  std::vector<std::uint8_t> visible(static_cast<std::size_t>(lines * width));
  for (std::int64_t i = 0; i < lines; ++i) {
    for (auto at = lists.offsets[i]; at < lists.offsets[i + 1]; ++at) {
      visible[static_cast<std::size_t>(i * width + lists.indices[at])] = 1;
    }
  }
  return visible;
}

TEST_CASE("structs of the ABI say the same pairs", "[sparsity]") {
  for (const char* spelling : {"pairs_30_1", "pairs_0_1", "nm_2_5_1", "global_1_1_0"}) {
    for (const char* sizes : {"sq=7,sk=11", "sq=0,sk=3", "sq=3,sk=0"}) {
      const auto problem =
          Problem::parse(std::string(sizes) + ",d=4,mask=causal_br+" + std::string(spelling));
      INFO(problem.to_string());
      const AbiProblem form(problem, 1, ATTEST_CSR_MASK);
      const attest_mask& mask = form.get()->mask;
      REQUIRE(mask.csr != nullptr);
      CHECK(mask.boolean == nullptr);
      CHECK(mask.blocks == nullptr);
      CHECK(mask.nm == nullptr);
      CHECK(mask.window_right == 0);
      CHECK(mask.csr->struct_size == sizeof *mask.csr);
      CHECK(mask.csr->by_query.indices != nullptr);
      CHECK(mask.csr->by_key.indices != nullptr);
      const auto q = problem.seqlen_q, k = problem.seqlen_k;
      CHECK(listed(mask.csr->by_query, q, k) == problem.mask.boolean->visible);
      CHECK(listed(mask.csr->by_key, k, q) == problem.mask.sparsity()->transpose().to_boolean());
    }
  }
  const auto blocks = Problem::parse("sq=7,sk=11,d=4,mask=block_2x3_50_1");
  const AbiProblem of_blocks(blocks, 1, kAll);
  REQUIRE(of_blocks.get()->mask.blocks != nullptr);
  const attest_block_mask& block = *of_blocks.get()->mask.blocks;
  CHECK(block.struct_size == sizeof block);
  CHECK(block.block_q == 2);
  CHECK(block.block_k == 3);
  const SparsityPattern grid(4, 4, std::get<BlockForm>(blocks.mask.sparsity()->form()).occupied,
                             "grid");
  CHECK(listed(block.by_query, 4, 4) == grid.to_boolean());
  CHECK(listed(block.by_key, 4, 4) == grid.transpose().to_boolean());
  const auto nm = Problem::parse("sq=7,sk=11,d=4,mask=nm_2_5_1");
  const AbiProblem of_nm(nm, 1, kAll);
  REQUIRE(of_nm.get()->mask.nm != nullptr);
  const attest_nm_mask& groups = *of_nm.get()->mask.nm;
  CHECK(groups.struct_size == sizeof groups);
  CHECK(groups.kept == 2);
  CHECK(groups.group == 5);
  const auto& offsets = std::get<NmForm>(nm.mask.sparsity()->form()).offsets;
  CHECK(std::vector<std::uint8_t>(groups.offsets, groups.offsets + 7 * 3 * 2) == offsets);
}

TEST_CASE("what schedules are given", "[sparsity]") {
  for (const char* mask : {"nm_2_3_1", "block_2x3_50_1", "pairs_50_1", "random_50_1"}) {
    const auto problem = Problem::parse("sq=7,sk=11,d=4,mask=" + std::string(mask));
    const AbiProblem form(problem, 1);
    const attest_mask& given = form.get()->mask;
    REQUIRE(given.boolean != nullptr);
    CHECK(std::equal(given.boolean, given.boolean + 77, problem.mask.boolean->visible.begin()));
    CHECK((given.blocks == nullptr && given.csr == nullptr));
    const bool nm = mask == std::string("nm_2_3_1");
    REQUIRE((given.nm != nullptr) == nm);
    if (nm) CHECK((given.nm->kept == 2 && given.nm->group == 3));
  }
}

TEST_CASE("a kernel without a form gets the boolean mask", "[sparsity]") {
  const auto problem = Problem::parse("sq=7,sk=11,d=4,mask=block_2x3_50_1");
  for (const std::uint32_t features : {std::uint32_t{0}, std::uint32_t{ATTEST_BOOLEAN_MASK}}) {
    const AbiProblem form(problem, 1, features);
    const attest_mask& mask = form.get()->mask;
    CHECK((mask.blocks == nullptr && mask.csr == nullptr && mask.nm == nullptr));
    REQUIRE(mask.boolean != nullptr);
    CHECK(std::vector<std::uint8_t>(mask.boolean, mask.boolean + 77) ==
          problem.mask.boolean->visible);
  }
}

TEST_CASE("a modified pattern is noticed", "[sparsity]") {
  const auto finding = [](const char* spelling, const auto& modify) {
    const auto problem = Problem::parse("sq=7,sk=11,d=4,mask=" + std::string(spelling));
    const AbiProblem form(problem, 1, kAll);
    CHECK(form.changed().empty());
    modify(form.get()->mask);
    CHECK(problem.mask.sparsity()->to_boolean() == problem.mask.boolean->visible);
    return form.changed();
  };
  const auto write = [](const auto& value) -> auto& {
    return const_cast<std::remove_const_t<std::remove_reference_t<decltype(value)>>&>(value);
  };
  const std::string modified = "input sparsity pattern was modified";
  CHECK(finding("block_2x3_50_1", [&](const attest_mask& m) { ++write(m.blocks->block_q); }) ==
        modified);
  CHECK(finding("block_2x3_50_1",
                [&](const attest_mask& m) { ++write(m.blocks->by_key.indices[0]); }) == modified);
  CHECK(finding("pairs_50_1", [&](const attest_mask& m) { ++write(m.csr->by_query.offsets[3]); }) ==
        modified);
  CHECK(finding("pairs_50_1",
                [&](const attest_mask& m) { write(m.csr->by_key.indices) = nullptr; }) == modified);
  CHECK(finding("nm_1_4_1", [&](const attest_mask& m) { write(m.nm->offsets[5]) ^= 1; }) ==
        modified);
  CHECK(finding("nm_1_4_1", [&](const attest_mask& m) { write(m.nm) = nullptr; }) ==
        "the problem was modified");
  CHECK(finding("nm_1_4_1", [](const attest_mask&) {}).empty());
}

}  // namespace
}  // namespace attest
