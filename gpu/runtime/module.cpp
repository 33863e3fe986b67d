#include "gpu/runtime/module.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>

#include "core/error.hpp"
#include "gpu/ptx/text/parser.hpp"
#include "gpu/runtime/capability.hpp"

namespace attest::gpu::runtime {

Module::Module(const void* wrapper) {
  try {
    ptx_ = ptx_of(wrapper, kNewestArchitecture);
  } catch (const InvalidProblem& error) {
    objection_ = error.what();
  }
}

const ptx::Module& Module::parsed() {
  if (!objection_.empty()) throw InvalidProblem(objection_);
  if (!parsed_) parsed_ = ptx::parse(ptx_.text);
  return *parsed_;
}

const ptx::Program& Module::program(const std::string& kernel) {
  const auto known = programs_.find(kernel);
  if (known != programs_.end()) return known->second;
  return programs_.emplace(kernel, ptx::check(parsed(), kernel)).first->second;
}

void Module::give_variables(const ptx::Program& program) {
  for (const ptx::Program::Resident& each : program.residents) {
    const auto known = variables_.find(each.name);
    if (known != variables_.end()) std::memcpy(each.data, known->second.data(), each.bytes);
  }
}

void Module::keep_variables(const ptx::Program& program) {
  for (const ptx::Program::Resident& each : program.residents) {
    variables_[each.name].assign(each.data, each.data + each.bytes);
  }
}

std::vector<std::byte>& Module::variable(const std::string& name) {
  if (variables_.empty()) {  // their first values are those of any kernel
    for (const ptx::Function& function : parsed().functions) {
      if (!function.is_entry) continue;
      keep_variables(program(function.name));
      break;
    }
  }
  const auto known = variables_.find(name);
  if (known == variables_.end()) throw InvalidProblem("its PTX has no variable '" + name + "'");
  return known->second;
}

std::string Kernel::spelled() const {
  int status = 0;
  char* const whole = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string text = whole == nullptr ? name : whole;
  std::free(whole);
  if (text.starts_with("void ")) text.erase(0, text.find(' ') + 1);  // of templates
  // The parameters are the last parentheses; others may stand in the arguments of a template.
  std::size_t begin = text.size();
  for (int depth = 0; begin > 0 && text.back() == ')';) {
    const char letter = text[--begin];
    depth += letter == ')' ? 1 : letter == '(' ? -1 : 0;
    if (depth == 0) break;
  }
  return text.substr(0, begin);
}

}  // namespace attest::gpu::runtime
