#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string>

#include "core/registry.hpp"
#include "io/schedule/schedule.hpp"

namespace attest::certify::cli {

/// Each adds one subcommand; when it is chosen, `action` becomes what main runs for the exit code.
using Action = std::function<int()>;

void add_demo(CLI::App& app, const Registry& registry, Action& action);
void add_list(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
              Action& action);
void add_certify(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
                 Action& action);
void add_check(CLI::App& app, const Registry& registry, Action& action);
void add_check_sparse(CLI::App& app, Action& action);
void add_emulate(CLI::App& app, Action& action);
void add_count(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
               Action& action);
void add_simulated_call(CLI::App& app, const Registry& registry, Action& action);
void add_pattern(CLI::App& app, Action& action);
void add_regime(CLI::App& app, const io::ScheduleRegistry& schedules, Action& action);
void add_report(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_reproduce(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
                   Action& action);
void add_bench(CLI::App& app, const Registry& registry, const io::ScheduleRegistry& schedules,
               Action& action);
void add_timer(CLI::App& app, const Registry& registry, Action& action);
void add_worker(CLI::App& app, const Registry& registry, Action& action);

/// Refuses what is not a whole number from 0 to `most`; without it "-1" and 2^64 would wrap around.
inline CLI::Validator whole_number(std::uint64_t most = ~std::uint64_t{0}) {
  return CLI::Validator(
      [most](std::string& text) {
        std::uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stopped == end && value <= most) return std::string();
        return "'" + text + "' is not a whole number from 0 to " + std::to_string(most);
      },
      "");
}

/// Refuses what is not a number from `least` to `most`; CLI::Range lets NaN pass.
inline CLI::Validator number_between(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double value = 0;
        const char* end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stopped == end && value >= least && value <= most) {
          return std::string();
        }
        return fmt::format("'{}' is not a number from {:g} to {:g}", text, least, most);
      },
      fmt::format("FLOAT in [{:g} - {:g}]", least, most));
}

/// Refuses "" for an option whose absence means something else.
inline CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) {
        return text.empty() ? std::string("is empty; give a value or leave the option out")
                            : std::string();
      },
      "");
}

}  // namespace attest::certify::cli
