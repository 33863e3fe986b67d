#pragma once

#include <string>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "proptest/laws/law.hpp"

/// Which declaration a kernel may have left out.
namespace attest::certify {

/// A change of a contract: one thing that kernels in use do.
struct Contract {
  std::string words;  // as a description declares it, "p_cast = bf16"
  void (*declare)(attest_numerics&);
};

/// Every contract that is tried, the narrower of two before the wider.
const std::vector<Contract>& known_contracts();

/// The words of each contract that the kernel does not declare and with which alone the law passes,
/// not without content, on all of the cases and on each with two other seeds; of the same field,
/// the narrowest. The cases of a kernel that breaks a contract it should have declared. Cost: the
/// law on the first case for every contract. [certify/report/contracts_test]
std::vector<std::string> passing_contracts(const proptest::Law& law, const attest_kernel& kernel,
                                           const std::vector<proptest::Case>& cases);

/// Names causes of a failure that are no mistake in themselves: a contract that is not declared,
/// results flushed to zero. One line each; `found` and `shrunk` are the failure's cases, which must
/// fail by themselves.  [certify/report/contracts_test "hints"]
std::vector<std::string> hints_of(const proptest::Law& law, const attest_kernel& kernel,
                                  const proptest::Case& found, const proptest::Case& shrunk);

}  // namespace attest::certify
