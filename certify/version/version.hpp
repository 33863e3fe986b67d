#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

/// Tells what `attest --version` says of a build.
namespace attest::certify {

/// Returns the version and a line each for commit, compiler, ABI of kernels and libraries.
std::string version_text();

/// Returns the same for programs, as certify/schemas/version.schema.json says
/// [certify/version/version_test.py].
nlohmann::json version_json();

}  // namespace attest::certify
