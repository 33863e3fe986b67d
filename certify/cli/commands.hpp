#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "core/registry.hpp"

namespace attest::certify::cli {

/// Each adds one subcommand; when it is chosen, `action` becomes what main runs for the exit code.
using Action = std::function<int()>;

void add_demo(CLI::App& app, const Registry& registry, Action& action);
void add_list(CLI::App& app, const Registry& registry, Action& action);
void add_certify(CLI::App& app, const Registry& registry, Action& action);
void add_check(CLI::App& app, const Registry& registry, Action& action);

/// Refuses "-1" for an unsigned option, which would otherwise wrap around.
inline CLI::Validator not_negative() {
  return CLI::Validator(
      [](std::string& text) {
        return text.rfind('-', 0) == 0 ? "is negative: " + text : std::string();
      },
      "");
}

}  // namespace attest::certify::cli
