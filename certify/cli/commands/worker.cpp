#include "certify/cli/commands.hpp"
#include "certify/worker/library/library.hpp"
#include "certify/worker/process/serve.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {

void add_worker(CLI::App& app, const Registry& registry, Action& action) {
  CLI::App* command = app.add_subcommand("worker", "the process in which one kernel is called");
  command->group("");  // for the certifier, not for people: hidden in the help
  auto library = std::make_shared<std::string>(), kernel = std::make_shared<std::string>();
  command->add_option("--library", *library, "shared library");
  command->add_option("--kernel", *kernel, "built-in kernel");
  auto emulate = std::make_shared<bool>(false);
  command->add_flag("--emulate", *emulate, "for CUDA, on an emulated device");
  command->callback([&registry, &action, library, kernel, emulate] {
    action = [&registry, library, kernel, emulate] {
      const int status = worker::serve([&]() -> std::vector<const attest_kernel*> {
        if (!library->empty()) return worker::open_library(*library, *emulate);
        return {&registry.find(*kernel)};
      });
      if (status != 0) throw InvalidProblem("worker: is started by the certifier only");
      return status;
    };
  });
}

}  // namespace attest::certify::cli
