#include "gpu/runtime/device.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/ptx/execution/executor.hpp"

namespace attest::gpu::runtime {
namespace {

// The first diagnosis, in one line.
std::string words_of(const Kernel& kernel, const simt::LaunchReport& report) {
  const std::string what = "kernel '" + kernel.spelled() + "': ";
  if (report.diagnoses.empty()) return what + "a block did not come to its end";
  const std::size_t more = report.diagnoses.size() - 1;
  return what + report.diagnoses.front().to_string() +
         (more == 0 ? "" : ", and " + std::to_string(more) + " more");
}

ptx::Parameters parameters_of(const ptx::Program& program, void* const* arguments) {
  ptx::Parameters parameters(program);
  for (std::size_t k = 0; k < program.parameters.size(); ++k) {
    parameters.add_bytes(arguments[k], program.parameters[k].bytes);
  }
  return parameters;
}

}  // namespace

Device& Device::instance() {
  static auto* const device = new Device;  // libraries unregister after destructors of statics
  return *device;
}

Status Device::keep(Status status) {
  if (status != Status::success) error_ = status;
  return status;
}

Status Device::found(const std::string& text) {
  if (outcome_ == Outcome::clean) {
    outcome_ = Outcome::found;
    text_ = text;
  }
  return Status::launch_failure;
}

Status Device::take_error() {
  const Status error = error_;
  error_ = Status::success;
  return error;
}

Module& Device::add_module(const void* wrapper) {
  return *modules_.emplace_back(std::make_unique<Module>(wrapper));
}

void Device::add_kernel(Module& module, const void* host, const char* name) {
  kernels_[host] = {&module, name, 0};
}

void Device::add_variable(Module& module, const void* host, const char* name) {
  symbols_[host] = {&module, name};
}

Kernel* Device::kernel(const void* host) {
  const auto known = kernels_.find(host);
  if (known != kernels_.end()) return &known->second;
  for (auto& [function, kernel] : kernels_) {
    if (&kernel == host) return &kernel;
  }
  return nullptr;
}

void Device::require_call_stream(Stream stream, const std::string& work) {
  if (!in_call_ || reinterpret_cast<std::uintptr_t>(stream) == kCallStream) return;
  found(work +
        (stream == nullptr ? " went to the default stream" : " went to a stream of its own") +
        ", not to the call's, on which the inputs arrive");
}

const Capability& Device::capability() const {
  const bool is_newer = std::any_of(modules_.begin(), modules_.end(), [](const auto& module) {
    return module->architecture() > kCapability80.architecture;
  });
  return is_newer ? kCapability90 : kCapability80;
}

Status Device::launch(Kernel* kernel, const simt::LaunchShape& shape, void* const* arguments,
                      Stream stream) {
  if (kernel == nullptr) return Status::invalid_device_function;
  require_call_stream(stream, "kernel '" + kernel->spelled() + "'");
  const ptx::Program& program = kernel->program();
  const auto fixed = static_cast<std::int64_t>(program.static_shared_bytes);
  if (shape.dynamic_shared_bytes > std::max(kernel->dynamic_shared_bytes, kSharedBytes - fixed)) {
    return Status::invalid_value;
  }
  const ptx::Parameters parameters = parameters_of(program, arguments);
  simt::Emulation emulation;
  emulation.shared_checks = simt::SharedChecks::on;
  emulation.shared_bytes_limit = capability().most_shared_bytes;
  kernel->module->give_variables(program);
  simt::LaunchReport report;
  try {
    report = ptx::execute(program, shape, emulation, memory_.global(), parameters);
  } catch (const InvalidProblem&) {  // extents that no device takes
    return Status::invalid_configuration;
  }
  kernel->module->keep_variables(program);
  return report.clean() ? Status::success : found(words_of(*kernel, report));
}

Status Device::copy(void* to, const void* from, std::size_t bytes, bool to_device,
                    bool from_device) {
  if (bytes == 0) return Status::success;
  if ((to_device && !memory_.has(to, bytes, true)) ||
      (from_device && !memory_.has(from, bytes, false))) {
    found("a copy of " + std::to_string(bytes) +
          " bytes leaves the device's memory that it begins in, or begins in none");
    return Status::invalid_value;
  }
  std::memmove(to, from, bytes);
  return Status::success;
}

Status Device::fill(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return Status::success;
  if (!memory_.has(to, bytes, true)) {
    found("a fill of " + std::to_string(bytes) +
          " bytes leaves the device's memory that it begins in, or begins in none");
    return Status::invalid_value;
  }
  std::memset(to, value, bytes);
  return Status::success;
}

std::vector<std::byte>& Device::variable(const void* host, std::size_t bytes, std::size_t offset) {
  const auto known = symbols_.find(host);
  if (known == symbols_.end()) throw InvalidProblem("a symbol that was not registered");
  std::vector<std::byte>& all = known->second.module->variable(known->second.name);
  if (offset > all.size() || bytes > all.size() - offset) {
    throw InvalidProblem("a copy beyond the variable '" + known->second.name + "'");
  }
  return all;
}

Status Device::copy_to_symbol(const void* host, const void* from, std::size_t bytes,
                              std::size_t offset) {
  std::memcpy(variable(host, bytes, offset).data() + offset, from, bytes);
  return Status::success;
}

Status Device::copy_from_symbol(void* to, const void* host, std::size_t bytes, std::size_t offset) {
  std::memcpy(to, variable(host, bytes, offset).data() + offset, bytes);
  return Status::success;
}

void Device::begin_call(std::span<const CallBuffer> buffers) {
  memory_.set_call_buffers(buffers);
  outcome_ = Outcome::clean;
  text_.clear();
  error_ = Status::success;
  in_call_ = true;
}

Outcome Device::end_call(const char** text) {
  in_call_ = false;
  memory_.set_call_buffers({});
  *text = text_.c_str();
  return outcome_;
}

const char* Device::objection() {
  objection_ = kernels_.empty() ? "registers no kernel with libcudart.so.12 or .13, which stand in "
                                  "for the device; build it with nvcc -cudart shared"
                                : "";
  for (const auto& [host, kernel] : kernels_) {
    if (!kernel.module->objection().empty()) objection_ = kernel.module->objection();
  }
  return objection_.c_str();
}

}  // namespace attest::gpu::runtime
