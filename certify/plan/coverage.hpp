#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/features/claim_words.hpp"
#include "core/problem.hpp"

/// Claims of a kernel and those that a case exercises, in one vocabulary.
namespace attest::certify {

/// Bits of attest_description.dtypes and their words.
const std::vector<std::pair<std::uint32_t, const char*>>& dtype_words();

/// Bits of attest_limits.only and of attest_description.may_change, and their words.
const std::vector<std::pair<std::uint32_t, const char*>>& only_words();
const std::vector<std::pair<std::uint32_t, const char*>>& may_change_words();

/// Returns the limits of the description as a person reads them, each a word: "only_causal",
/// "seqlen_q=1", "seqlen_k%64", "head_dim=64|128", "batch<=4".  [certify/plan/coverage_test
/// "limits"]
std::vector<std::string> limit_words(const attest_description& description);

/// The words whose bit is set.
std::vector<std::string> words_of(std::uint32_t bits,
                                  const std::vector<std::pair<std::uint32_t, const char*>>& table);

/// Words of the dtype and of every feature the problem cannot do without; of the forms of a mask's
/// pairs, the one in which a kernel that claims `features` is given them. LSE, dLSE and
/// equal bits of layouts are no properties of a problem: never among them.
/// [certify/plan/coverage_test]
std::vector<std::string> exercised_by(const Problem& problem, std::uint32_t features);

}  // namespace attest::certify
