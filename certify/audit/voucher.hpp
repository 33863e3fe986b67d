#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attest::certify {

/// A kernel that a certificate may vouch for.
struct VouchedKernel {
  std::string name;               // path and name of a library's kernel
  std::string file_sha256;        // of the library, or of the program that has it built in
  std::vector<std::string> uses;  // dtype and features of the problem at hand (exercised_by)
  std::vector<std::string> directions;
};

/// Tells whether a certificate says that the kernel is certified, so that no campaign is needed:
/// false where the certificate names no such kernel, whatever its folder.
///
/// Throws InvalidProblem where it names the kernel and does not vouch for it: the certificate was
/// changed, is of another file, has another verdict, or has no check of a dtype, feature or
/// direction in use; also for one that is not as its schema says. [certify/audit/voucher_test]
bool vouches(const nlohmann::json& certificate, const VouchedKernel& kernel);

}  // namespace attest::certify
