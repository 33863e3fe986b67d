#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

/// Where and how the certifier ran, for the certificate.
namespace attest::certify {

/// System, machine, processor, its vector extensions, hardware threads, the target of the kernels
/// on the CPU (null: not told). No host name.
nlohmann::json host_json();

/// In what two kinds of machine differ: "machine" or "cpu_target", and both values as words.
struct OtherKind {
  std::string key, one, other;
};

/// Compares the kinds of machine that two objects with members of host_json() name; nothing where
/// they are one. Takes another value than an object for one without names.
/// [certify/campaign/sharing_test "merging"]
std::optional<OtherKind> other_kind(const nlohmann::json& one, const nlohmann::json& other);

/// Tells host_json() which instructions the built-in kernels of cpu/ use, where there are any.
/// [certify/campaign/host_test]
void tell_cpu_target(const std::string& name);

/// Version of Attest, as CMake knows it.
std::string version();

/// Returns the SHA-256 of the file that this code is in: the program, or the shared library in
/// another's process.  [certify/campaign/host_test]
const std::string& program_sha256();

/// Returns the commit that this was built from, with "+changes" where its files differed from it;
/// "" where the sources lay in no checkout or this is a test.
std::string commit();

/// Version of Attest, the commit it was built from (null: not from a checkout), SHA-256 of its
/// file, compiler, kind of build and flags.
nlohmann::json build_json();

/// The processor's name and the words among its flags that change arithmetic (vector width, fused
/// multiply-add, half precision), from the text of /proc/cpuinfo; empty when it has none.
/// [certify/campaign/host_test]
struct Processor {
  std::string name;
  std::vector<std::string> extensions;
};
Processor parse_cpuinfo(const std::string& text);

}  // namespace attest::certify
