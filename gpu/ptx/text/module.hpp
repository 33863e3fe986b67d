#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/ptx/text/literal.hpp"
#include "gpu/ptx/text/types.hpp"

/// PTX as it is written: names and opcodes are text still.
namespace attest::ptx {

/// Line of the program that was compiled to PTX (.loc): where it stands, and, for an inlined
/// function, the line that the outermost call stands in. Line 0: unknown.
struct SourceMark {
  int file = 0, line = 0;
  int call_file = 0, call_line = 0;
};

enum class Space : std::uint8_t { param, global, shared, local, constant };

/// Variable of a state space, or a parameter.
struct Variable {
  Space space = Space::param;
  Type type = Type::b32;
  std::string name;
  std::uint64_t alignment = 1;
  std::uint64_t elements = 1;         // 0: as many as the launch brings (extern shared)
  std::vector<std::uint64_t> values;  // the first elements; the others are zero
  int scope = 0;
  Position at;

  std::uint64_t size_bytes() const { return elements * bytes(type); }
};

/// Registers of one .reg: "%r" with a count stands for %r0, %r1, …
struct Registers {
  Type type = Type::b32;
  std::string name;
  std::optional<std::uint32_t> count;
  int scope = 0;
  Position at;
};

struct Operand {
  enum class Kind : std::uint8_t {
    name,     // register, variable, label or special register
    number,   // literal
    vector,   // {a, b, c, d}
    pair,     // a|b
    address,  // [a + 4], or [a, {b, c}] of tensor copies
    list,     // (a, b) of calls
    sink,     // _
  };
  Kind kind = Kind::sink;
  std::string name;      // of an address: its base, empty where it has none
  bool negated = false;  // !a
  Literal value;
  std::int64_t offset = 0;
  std::vector<Operand> parts;
  Position at;
};

struct Statement {
  std::string opcode;  // with its modifiers: "ld.global.v4.b32"
  std::optional<Operand> predicate;
  std::vector<Operand> operands;
  int scope = 0;
  SourceMark source;
  Position at;
};

struct Label {
  std::string name;
  std::size_t statement = 0;  // that it stands before
  int scope = 0;
  Position at;
};

/// Labels that an indexed branch chooses among (.branchtargets).
struct BranchTargets {
  std::string name;
  std::vector<std::string> labels;
  int scope = 0;
  Position at;
};

/// A name in a scope that stands for a variable in another (calls.hpp).
struct Alias {
  int scope = 0;
  std::string name;
  int target_scope = 0;
  std::string target;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Variable> results, parameters, variables;
  std::vector<Registers> registers;
  std::vector<Label> labels;
  std::vector<BranchTargets> branch_targets;
  std::vector<Alias> aliases{};
  std::vector<Statement> statements;
  std::vector<int> scopes{-1};                    // the scope around each
  std::vector<std::uint64_t> required_threads{};  // .reqntid
  std::vector<std::uint64_t> required_cluster{};  // .reqnctapercluster
  Position at;
};

struct Module {
  int version_major = 0, version_minor = 0;
  std::string target;  // "sm_80"
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::pair<int, std::string>> files;  // by .file's number
};

}  // namespace attest::ptx
