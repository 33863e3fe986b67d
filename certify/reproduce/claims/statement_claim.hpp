#pragma once

#include "certify/regime/statements.hpp"
#include "certify/reproduce/experiment.hpp"

/// Statements about devices, as claims beside the figures.
namespace attest::certify {

/// "0.5*" or "12", M/(d_k d_v); the star says small cache.
std::string ratio_text(const CacheSize& size);

/// Reproduced if it holds at all its places, not reproduced if for no figure, else with a
/// correction; says for which figures.  [certify/reproduce/claims/statement_claim_test "wrong"]
Claim claim_of(const Statement& statement);

}  // namespace attest::certify
