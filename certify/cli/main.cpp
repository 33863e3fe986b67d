// The attest command. Exit codes: 0 certified, 1 violated, 2 usage or bad input, 3 nothing proven,
// 4 a kernel crashed or hung, 5 internal error.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "certify/campaign/host.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/environment.hpp"
#include "certify/cli/guarded.hpp"
#include "certify/printable.hpp"
#include "certify/version/version.hpp"
#include "core/freed_memory.hpp"
#include "core/text/suggest.hpp"
#include "cpu/register.hpp"
#include "fixtures/register.hpp"
#include "gpu/register.hpp"
#include "schedules/register.hpp"
#include "sparse/register.hpp"

namespace {

using attest::certify::cli::kUsage;

// CLI11 only says that a word was not expected; the nearest subcommand helps more.
std::string subcommand_hint(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == argv[1]) return "";
    names.push_back(command->get_name());
  }
  return fmt::format("unknown command '{}'{}\n", attest::certify::printable(argv[1]),
                     attest::did_you_mean(argv[1], names));
}

// Names what was not expected, with the nearest option, and where to read more.
std::string refusal_of(const CLI::App& app, const CLI::ParseError& error) {
  const auto parsed = app.get_subcommands();
  const CLI::App* command = parsed.empty() ? &app : parsed.front();
  const bool lacks = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  std::string why = lacks && parsed.empty() ? "no command given" : error.what();
  const std::vector<std::string> extras = command->remaining(true);
  // The spelling is the cause where a required option is misspelt.
  if ((lacks || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) && !extras.empty()) {
    const std::string& word = extras.front();
    std::vector<std::string> names;
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    why = word.rfind('-', 0) == 0
              ? fmt::format("unknown option '{}'{}", word, attest::did_you_mean(word, names))
              : fmt::format("unexpected argument '{}'", word);
  }
  const std::string name = parsed.empty() ? "attest" : "attest " + command->get_name();
  return fmt::format("attest: {}\nRun '{} --help' for more.\n", why, name);
}

// A worker with a library calls no built-in kernel, and describing those of schedules (100 ms of
// searches for tiles) is most of what starting a process costs.
bool serves_library(int argc, char** argv) {
  return argc > 2 && std::string_view(argv[1]) == "worker" &&
         std::string_view(argv[2]) == "--library";
}

int run(int argc, char** argv) {
  attest::certify::cli::require_environment();
  attest::Registry registry;
  attest::io::ScheduleRegistry schedules;
  if (!serves_library(argc, argv)) {
    attest::register_cpu(registry);
    attest::certify::tell_cpu_target(attest::cpu_target());
    attest::register_dense_schedule_kernels(registry);
    attest::register_sparse(registry);
    attest::register_list_schedule_kernels(registry);
    attest::register_gpu(registry);
    attest::register_fixtures(registry);
    attest::register_dense_schedules(schedules);
    attest::register_list_schedules(schedules);
  }
  CLI::App app{
      "attest certifies attention kernels: derived error bounds, exact laws, shrunk "
      "failures."};
  bool json = false;
  CLI::Option* as_json = app.add_flag("--json", json, "with --version: as JSON");
  as_json->needs(app.set_version_flag(
      "--version",
      [&json] {
        return json ? attest::certify::version_json().dump(2) : attest::certify::version_text();
      },
      "version, commit, compiler, ABI of kernels and libraries"));
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  attest demo\n"
      "  attest certify cpu/flash2 --tier smoke\n"
      "  attest check --kernel cpu/flash2 --problem 'sq=17,sk=33,d=64,mask=causal_br'\n\n"
      "Exit codes: 0 certified, 1 violated, 2 bad input, 3 nothing proven or incomplete,\n"
      "            4 crashed or hung, 5 internal error.");
  attest::certify::cli::Action action;
  attest::certify::cli::add_demo(app, registry, action);
  attest::certify::cli::add_list(app, registry, schedules, action);
  attest::certify::cli::add_certify(app, registry, schedules, action);
  attest::certify::cli::add_check(app, registry, action);
  attest::certify::cli::add_check_sparse(app, action);
  attest::certify::cli::add_emulate(app, action);
  attest::certify::cli::add_count(app, registry, schedules, action);
  attest::certify::cli::add_pattern(app, action);
  attest::certify::cli::add_regime(app, schedules, action);
  attest::certify::cli::add_report(app, action);
  attest::certify::cli::add_verify(app, action);
  attest::certify::cli::add_bench(app, registry, schedules, action);
  attest::certify::cli::add_reproduce(app, registry, schedules, action);
  attest::certify::cli::add_simulated_call(app, registry, action);
  attest::certify::cli::add_timer(app, registry, action);
  attest::certify::cli::add_worker(app, registry, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string hint = error.get_exit_code() == 0 ? "" : subcommand_hint(app, argc, argv);
    if (!hint.empty()) {
      fmt::print(stderr, "attest: {}Run 'attest --help' for all commands.\n", hint);
      return kUsage;
    }
    if (error.get_exit_code() != 0) {
      fmt::print(stderr, "{}", attest::certify::printable_lines(refusal_of(app, error)));
      return kUsage;
    }
    std::ostringstream help, nothing;
    app.exit(error, help, nothing);
    fmt::print("{}", help.str());
    return 0;
  }
  return action();
}

// Threads that wait for the next parallel loop by spinning take a busy machine's processors from
// those that work: `attest demo` took 7.2 s of processor time instead of 3.3. The runtime reads its
// settings before main, so they are set and the program is started again, once.
void wait_passively(char** argv) {
  constexpr const char* kPolicy = "OMP_WAIT_POLICY";
  if (std::getenv(kPolicy) != nullptr || setenv(kPolicy, "passive", 0) != 0) return;
  execv("/proc/self/exe", argv);  // returns only when it fails; then spinning does no harm but time
}

}  // namespace

int main(int argc, char** argv) {
  wait_passively(argv);
  attest::keep_freed_memory();
  return attest::certify::cli::guarded([&] { return run(argc, argv); });
}
