#include "core/registry.hpp"

#include <cstdint>
#include <utility>

#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest {
namespace {

void require(bool holds, const std::string& kernel, const std::string& message) {
  if (!holds) throw InvalidProblem("kernel '" + kernel + "': " + message);
}

}  // namespace

std::string version_objection(const attest_kernel& kernel) {
  const std::uint32_t version = kernel.abi_version;
  if (version < kOldestAbiVersion || version > ATTEST_ABI_VERSION) {
    return "abi_version is " + std::to_string(version) + ", this program speaks versions " +
           std::to_string(kOldestAbiVersion) + " to " + std::to_string(ATTEST_ABI_VERSION) +
           "; rebuild it with this program's attest_kernel.h";
  }
  if (version < 2 && (kernel.description.features & kFeaturesOfVersion2) != 0) {
    return "abi_version is 1, but description.features has bits of version 2; rebuild it with this "
           "program's attest_kernel.h";
  }
  return "";
}

void Registry::add(const attest_kernel* kernel, const CountedCode& counted) {
  if (kernel == nullptr) throw InvalidProblem("kernel: null pointer");
  if (const std::string text = version_objection(*kernel); !text.empty()) {
    throw InvalidProblem("kernel: " + text);
  }
  const attest_description& description = kernel->description;
  const std::string name = description.name == nullptr ? "" : description.name;
  require(!name.empty(), "?", "description.name is empty; give it a unique name like cpu/flash2");
  require(kernel->struct_size == sizeof(attest_kernel) &&
              description.struct_size == sizeof(attest_description) &&
              description.numerics.struct_size == sizeof(attest_numerics),
          name, "struct_size of kernel, description or numerics is another; set it to sizeof");
  const auto claims = [&](std::uint32_t direction) {
    return (description.directions & direction) != 0;
  };
  require(description.directions != 0, name, "claims no direction; set description.directions");
  require(!claims(ATTEST_FORWARD) || kernel->forward != nullptr, name,
          "claims forward without a forward function");
  require(!claims(ATTEST_BACKWARD) || (kernel->backward != nullptr && kernel->forward != nullptr),
          name, "claims backward without a backward and a forward function");
  require(!claims(ATTEST_LOSS_GRADIENT) || kernel->loss_gradient != nullptr, name,
          "claims the loss gradient without a loss_gradient function");
  require(description.dtypes != 0, name, "claims no dtype; set description.dtypes");
  for (const attest_kernel* other : kernels_) {
    require(name != other->description.name, name, "the name is taken; choose another");
  }
  kernels_.push_back(kernel);
  counted_.emplace(name, counted);
}

void Registry::add_absent(std::string name, std::string why) {
  absent_.emplace(std::move(name), std::move(why));
}

const attest_kernel& Registry::find(std::string_view name) const {
  for (const attest_kernel* kernel : kernels_) {
    if (name == kernel->description.name) return *kernel;
  }
  const auto absent = absent_.find(name);
  if (absent != absent_.end()) {
    throw InvalidProblem("kernel '" + absent->first + "' " + absent->second);
  }
  throw InvalidProblem("unknown kernel '" + std::string(name) + "'" + did_you_mean(name, names()) +
                       " (`attest list` shows all)");
}

CountedCode Registry::counted_code(std::string_view name) const {
  const auto found = counted_.find(name);
  return found == counted_.end() ? CountedCode{} : found->second;
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  for (const attest_kernel* kernel : kernels_) names.emplace_back(kernel->description.name);
  return names;
}

}  // namespace attest
