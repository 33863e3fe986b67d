#pragma once

#include <string>
#include <type_traits>

namespace attest::gpu {

/// "kernel<a, b>", as declared_thread_memory() has it.
template <class... Arguments>
std::string kernel_name(const char* kernel, const Arguments&... arguments) {
  std::string list;
  const auto add = [&](const auto& argument) {
    if (!list.empty()) list += ", ";
    if constexpr (std::is_integral_v<std::decay_t<decltype(argument)>>) {
      list += std::to_string(argument);
    } else {
      list += argument;
    }
  };
  (add(arguments), ...);
  return list.empty() ? kernel : std::string(kernel) + "<" + list + ">";
}

/// "(Type)0", as compilers spell an enumerator among template arguments.
template <class Enum>
std::string enumerator_name(const char* type, Enum value) {
  return "(" + std::string(type) + ")" + std::to_string(static_cast<int>(value));
}

}  // namespace attest::gpu
