#include "certify/version/version.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>

#include <array>
#include <nlohmann/json.hpp>

#include "certify/campaign/host.hpp"
#include "core/abi/attest_kernel.h"

namespace attest::certify {
namespace {

struct Library {
  const char* name;
  const char* version;
};

// As CMake found them; the C library is that which runs.
std::array<Library, 10> libraries() {
  return {{{"Boost", ATTEST_BOOST},
           {"CLI11", ATTEST_CLI11},
           {"Eigen", ATTEST_EIGEN},
           {"fmt", ATTEST_FMT},
           {"Highway", ATTEST_HIGHWAY},
           {"nlohmann_json", ATTEST_NLOHMANN_JSON},
           {"pugixml", ATTEST_PUGIXML},
           {"OpenMP", ATTEST_OPENMP},
           {"OpenSSL", ATTEST_OPENSSL},
           {"glibc", gnu_get_libc_version()}}};
}

}  // namespace

std::string version_text() {
  std::string names;
  for (const Library& library : libraries()) {
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", library.name, library.version);
  }
  return fmt::format(
      "attest {}\ncommit     {}\ncompiler   {}, {}\nABI        version {} of attest_kernel.h\n"
      "libraries  {}",
      version(), commit().empty() ? "unknown" : commit(), ATTEST_COMPILER, ATTEST_BUILD_TYPE,
      ATTEST_ABI_VERSION, names);
}

nlohmann::json version_json() {
  nlohmann::json versions = nlohmann::json::object();
  for (const Library& library : libraries()) versions[library.name] = library.version;
  return {{"version", version()},
          {"commit", commit().empty() ? nlohmann::json(nullptr) : nlohmann::json(commit())},
          {"compiler", ATTEST_COMPILER},
          {"build_type", ATTEST_BUILD_TYPE},
          {"kernel_abi", ATTEST_ABI_VERSION},
          {"libraries", versions}};
}

}  // namespace attest::certify
