#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "proptest/judge/run.hpp"

/// Kinds of problems that kernels have paths of their own for, and which of them a call is.
namespace attest::certify {

struct ProblemKind {
  std::string_view name;
  std::string_view witness;  // a problem of the kind, as Problem::parse reads it, without d
  bool (*holds)(const attest_problem&);
};

/// Every kind, features of the ABI among them.
const std::vector<ProblemKind>& problem_kinds();

/// The names of the kinds that a problem is of, as a kernel of these features is given it.
std::set<std::string> kinds_of(const Problem& problem, std::uint32_t features);

/// The same of a call.
std::set<std::string> kinds_of(const attest_problem& problem);

/// The kinds whose witness the description claims in a direction, with some head dimension.
std::set<std::string> claimed_kinds(const attest_description& description, Direction direction);

}  // namespace attest::certify
