#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "python/api/attest_api.h"
#include "python/api/judgement.hpp"

/// Campaigns on a kernel of the caller's process.
namespace attest::python {

/// Asks the caller whether a campaign goes on, and tells it how far it is.
struct Caller {
  attest_progress progress = nullptr;  // or NULL: it does
  void* self = nullptr;
};

/// Runs the campaign of the options; the text is the certificate. `contract` takes the place of the
/// description's numerics, unless it is NULL.
/// Throws InvalidProblem for what makes no sense: a description, a contract, an option.
/// [python/api/campaign_test]
Judgement certify(const attest_kernel& kernel, const char* contract, std::string_view options,
                  const Caller& caller);

/// Joins shards of the campaign of these options, and runs what their certificates lack; the text
/// is the certificate of the whole. Throws InvalidProblem as `certify` and `merge_shards` do.
/// [python/api/campaign_test "shards"]
Judgement merge(const attest_kernel& kernel, const char* contract, std::string_view options,
                const std::vector<std::string>& certificates, const Caller& caller);

/// Checks a law on a case, as a finding spells it, as often as the lines after it say and after the
/// cases that they name; the text is the finding, where it fails. Throws InvalidProblem as
/// `certify` does.  [python/api/campaign_test "a finding is shown again", "earlier checks"]
Judgement check(const attest_kernel& kernel, const char* contract, const std::string& lines,
                std::string_view law);

}  // namespace attest::python
