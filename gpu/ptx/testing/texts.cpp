#include "gpu/ptx/testing/texts.hpp"

#include <fstream>
#include <sstream>

#include "core/error.hpp"

namespace attest::ptx::testing {

std::string text(const std::string& name) {
  const std::string path = std::string(ATTEST_PTX_TEXTS) + "/" + name + ".ptx";
  std::ifstream file(path);
  if (!file) throw InternalError("no file " + path);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

const std::vector<std::string>& texts() {
  static const std::vector<std::string> names{
      "attention_triton", "attention_triton_sm90", "calls_nvcc",   "divergent_nvcc",
      "dot_triton",       "pipelined_nvcc",        "softmax_nvcc", "softmax_triton"};
  return names;
}

std::string kernel(const std::string& parameters, const std::string& body) {
  return ".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry kernel(" + parameters +
         ")\n{\n" + body + "\n}\n";
}

std::string with(std::string text, const std::string& part, const std::string& other) {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) throw InternalError("no '" + part + "' in the PTX");
  return text.replace(at, part.size(), other);
}

}  // namespace attest::ptx::testing
