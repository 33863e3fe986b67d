#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu/ptx/program/program.hpp"
#include "gpu/runtime/fat_binary.hpp"

namespace attest::gpu::runtime {

/// The PTX of one fat binary. Kernels are checked when they are first needed: a library may have
/// hundreds.
class Module {
 public:
  explicit Module(const void* wrapper);

  /// Why there is no PTX; "" where there is.
  const std::string& objection() const { return objection_; }
  /// The one that its PTX is for; 0 where there is none.
  std::uint32_t architecture() const { return ptx_.architecture; }

  /// Throws InvalidProblem for what is not carried out.
  const ptx::Program& program(const std::string& kernel);

  /// Variables of the module are those of every kernel of it: before a launch they are given to
  /// the kernel, after it they are kept.
  void give_variables(const ptx::Program& program);
  void keep_variables(const ptx::Program& program);

  /// The bytes of a variable; throws InvalidProblem where the module has none of that name.
  std::vector<std::byte>& variable(const std::string& name);

 private:
  const ptx::Module& parsed();

  Ptx ptx_;
  std::string objection_;
  std::optional<ptx::Module> parsed_;
  std::map<std::string, ptx::Program> programs_;
  std::map<std::string, std::vector<std::byte>> variables_;
};

/// A __global__ function as it was registered.
struct Kernel {
  Module* module = nullptr;
  std::string name;                       // in the PTX
  std::int64_t dynamic_shared_bytes = 0;  // asked for by cudaFuncSetAttribute; 0: not
  std::string spelled() const;            // "attention", without parameters

  const ptx::Program& program() const { return module->program(name); }
};

}  // namespace attest::gpu::runtime
