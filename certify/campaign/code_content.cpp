#include "certify/campaign/code_content.hpp"

#include "certify/digest.hpp"
#include "certify/worker/process/isolated_kernel.hpp"

namespace attest::certify {

std::string content_of_code(const attest_kernel& kernel) {
  const auto file = worker::library_of(kernel);
  if (!file) return "";
  worker::require_same_file(kernel);
  const std::string content = sha256_of_file(*file);
  worker::require_same_file(kernel);  // it may have been written while it was read
  return content;
}

std::vector<NeededFile> needed_content(const attest_kernel& kernel) {
  std::vector<NeededFile> files;
  for (const std::string& path : worker::needed_by(kernel)) {
    files.push_back({path, sha256_of_file(path)});
  }
  worker::require_same_file(kernel);
  return files;
}

}  // namespace attest::certify
