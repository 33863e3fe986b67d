#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "core/registry.hpp"

namespace attest::certify::cli {

/// Each adds one subcommand; when it is chosen, `action` becomes what main runs for the exit code.
using Action = std::function<int()>;

void add_demo(CLI::App& app, const Registry& registry, Action& action);
void add_list(CLI::App& app, const Registry& registry, Action& action);
void add_certify(CLI::App& app, const Registry& registry, Action& action);
void add_check(CLI::App& app, const Registry& registry, Action& action);

}  // namespace attest::certify::cli
