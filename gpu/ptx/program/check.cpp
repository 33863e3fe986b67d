#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "gpu/ptx/execution/block_run.hpp"
#include "gpu/ptx/products/product_registers.hpp"
#include "gpu/ptx/program/calls.hpp"
#include "gpu/ptx/program/operand_checker.hpp"
#include "gpu/ptx/program/program.hpp"

namespace attest::ptx {
namespace {

constexpr std::size_t kMostRegisters = std::size_t{1} << 18;
constexpr std::uint64_t kMostLocalBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostSharedBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kMostResidentBytes = std::uint64_t{1} << 28;

std::size_t rounded_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

const Function& find_kernel(const Module& module, const std::string& name) {
  std::vector<std::string> names;
  const Function* found = nullptr;
  for (const Function& function : module.functions) {
    if (!function.is_entry || !function.has_body) continue;
    names.push_back(function.name);
    if (name.empty() || function.name == name) found = &function;
  }
  if (name.empty() && names.size() == 1) return *found;
  if (!name.empty() && found != nullptr) return *found;
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
  if (name.empty()) {
    throw InvalidProblem("PTX: there are " + std::to_string(names.size()) +
                         " kernels; name one of: " + all);
  }
  throw InvalidProblem("PTX: no kernel '" + name + "'" + did_you_mean(name, names) +
                       (all.empty() ? "" : " (there are: " + all + ")"));
}

// File names live as long as the program: diagnoses point to them.
const char* interned(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

class Checker {
 public:
  Checker(const Module& module, const Function& function)
      : module_(module), function_(function), names_(function.scopes) {}

  Program run() {
    program_.name = function_.name;
    program_.required_threads = function_.required_threads;
    for (const std::uint64_t blocks : function_.required_cluster) {
      if (blocks > 1) refuse(function_.at, "clusters of several blocks are not carried out");
    }
    add_registers();
    add_parameters();
    for (const Variable& variable : module_.variables) add_variable(variable);
    for (const Variable& variable : function_.variables) add_variable(variable);
    for (const Alias& alias : function_.aliases) {
      names_.add(alias.scope, alias.name, *names_.find(alias.target_scope, alias.target),
                 function_.at);
    }
    for (const Label& label : function_.labels) {
      names_.add(label.scope, label.name, NamedLabel{label.statement}, label.at);
    }
    for (const BranchTargets& each : function_.branch_targets) add_targets(each);
    for (const Statement& statement : function_.statements) add_instruction(statement);
    add_end();
    watch_product_registers(program_, function_);
    program_.registers = registers_.take_bytes();
    return std::move(program_);
  }

 private:
  void add_registers() {
    std::size_t count = 0;
    for (const Registers& each : function_.registers) {
      if (bits(each.type) == 8 || bits(each.type) > 64) {
        refuse(each.at, "registers of 8 and 128 bits are not carried out");
      }
      count += each.count.value_or(1);
      if (count > kMostRegisters) refuse(each.at, "more registers than are carried out");
      const auto add = [&](const std::string& name) {
        names_.add(each.scope, name, NamedRegister{each.type, registers_.add(each.type)}, each.at);
      };
      if (!each.count) add(each.name);
      for (std::uint32_t k = 0; k < each.count.value_or(0); ++k) {
        add(each.name + std::to_string(k));
      }
    }
  }

  void add_parameters() {
    constexpr std::size_t kMostBytes = 32764;  // PTX ISA, kernel function parameters
    for (const Variable& each : function_.parameters) {
      const std::size_t offset = rounded_up(program_.parameter_bytes, each.alignment);
      program_.parameters.push_back({each.name, offset, each.size_bytes()});
      program_.parameter_bytes = offset + each.size_bytes();
      if (program_.parameter_bytes > kMostBytes) {
        refuse(each.at, "parameters have at most " + std::to_string(kMostBytes) + " bytes");
      }
      names_.add(0, each.name, NamedParameter{offset, each.size_bytes()}, each.at);
    }
  }

  // The place of a variable among those of its space.
  static std::uint64_t place(std::size_t& used, const Variable& variable, std::uint64_t most) {
    const std::size_t address = rounded_up(used, variable.alignment);
    used = address + variable.size_bytes();
    if (used > most) {
      refuse(variable.at, "'" + variable.name + "' ends at byte " + std::to_string(used) +
                              " of its space, which has at most " + std::to_string(most));
    }
    return address;
  }

  void add_variable(const Variable& variable) {
    NamedVariable named{variable.space, 0, false};
    switch (variable.space) {
      case Space::param:  // of a call
        named.space = Space::local;
        [[fallthrough]];
      case Space::local:
        named.address = place(program_.local_bytes, variable, kMostLocalBytes);
        break;
      case Space::shared:
        named.is_extern_shared = variable.elements == 0;
        if (named.is_extern_shared) {
          program_.extern_shared_alignment =
              std::max<std::size_t>(program_.extern_shared_alignment, variable.alignment);
        } else {
          named.address = place(program_.static_shared_bytes, variable, kMostSharedBytes);
        }
        break;
      case Space::global:
      case Space::constant:
        named.address = add_resident(variable);
        break;
    }
    names_.add(variable.scope, variable.name, named, variable.at);
  }

  void add_targets(const BranchTargets& targets) {
    NamedTargets all;
    for (const std::string& label : targets.labels) {
      const Named* const named = names_.find(targets.scope, label);
      if (named == nullptr || !std::holds_alternative<NamedLabel>(*named)) {
        refuse(targets.at, "'" + label + "' is no label of this function");
      }
      all.statements.push_back(std::get<NamedLabel>(*named).statement);
    }
    names_.add(targets.scope, targets.name, std::move(all), targets.at);
  }

  std::uint64_t add_resident(const Variable& variable) {
    resident_bytes_ += variable.size_bytes() + variable.alignment;
    if (resident_bytes_ > kMostResidentBytes) {
      refuse(variable.at, "variables of the module have at most 256 MiB");
    }
    Program::Resident resident{variable.name, variable.size_bytes(),
                               variable.space == Space::constant, nullptr, nullptr};
    resident.memory = std::make_unique<std::byte[]>(resident.bytes + variable.alignment);
    const auto begin = reinterpret_cast<std::uintptr_t>(resident.memory.get());
    resident.data = resident.memory.get() + (rounded_up(begin, variable.alignment) - begin);
    const std::size_t size = bytes(variable.type);
    for (std::size_t k = 0; k < variable.values.size(); ++k) {
      std::memcpy(resident.data + k * size, &variable.values[k], std::min<std::size_t>(size, 8));
    }
    program_.residents.push_back(std::move(resident));
    return reinterpret_cast<std::uint64_t>(program_.residents.back().data);
  }

  simt::SourceLine source_of(const Statement& statement) const {
    const SourceMark& mark = statement.source;
    const bool is_inlined = mark.call_line != 0;
    const int file = is_inlined ? mark.call_file : mark.file;
    const int line = is_inlined ? mark.call_line : mark.line;
    for (const auto& [number, name] : module_.files) {
      if (number == file && line != 0) return {interned(name), line};
    }
    return {"PTX", statement.at.line};
  }

  void add_instruction(const Statement& statement) {
    const std::vector<Spelling> spellings = match(statement.opcode, statement.at);
    const Spelling& spelling = OperandChecker::choose(statement, spellings);
    Instruction instruction =
        OperandChecker(names_, registers_, program_).check(statement, spelling);
    instruction.execute = spelling.form->make(spelling, instruction);
    if (instruction.execute == nullptr) {
      refuse(statement.at, "'" + statement.opcode + "' with these operands is not carried out");
    }
    instruction.line = statement.at.line;
    instruction.source = source_of(statement);
    program_.code.push_back(std::move(instruction));
  }

  // Lanes that come to the end of the text return.
  void add_end() {
    Statement end;
    end.opcode = "ret";
    end.at = function_.at;
    add_instruction(end);
  }

  const Module& module_;
  const Function& function_;
  Names names_;
  RegisterFile registers_;
  Program program_;
  std::uint64_t resident_bytes_ = 0;
};

}  // namespace

Program check(const Module& module, const std::string& kernel) {
  const Function function = with_calls(module, find_kernel(module, kernel));
  return Checker(module, function).run();
}

}  // namespace attest::ptx
