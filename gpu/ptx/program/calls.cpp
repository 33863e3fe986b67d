#include "gpu/ptx/program/calls.hpp"

#include <algorithm>
#include <string>

namespace attest::ptx {
namespace {

constexpr std::size_t kMostStatements = std::size_t{1} << 20;

bool is_call(const Statement& statement) {
  return statement.opcode == "call" || statement.opcode == "call.uni";
}

Operand named(const std::string& name, Position at) {
  Operand operand;
  operand.kind = Operand::Kind::name;
  operand.name = name;
  operand.at = at;
  return operand;
}

// Functions of CUDA's own, and the instruction that stands for them.
struct Outside {
  const char *name, *opcode;
};
constexpr Outside kOutside[] = {{"__assertfail", "trap"}, {"vprintf", ""}};

// A call's parts: "(results), function, (parameters)".
struct Call {
  const Operand *results = nullptr, *function = nullptr, *parameters = nullptr;
};

Call parts_of(const Statement& statement) {
  Call call;
  for (const Operand& operand : statement.operands) {
    if (operand.kind == Operand::Kind::list) {
      (call.function == nullptr ? call.results : call.parameters) = &operand;
    } else if (call.function == nullptr) {
      call.function = &operand;
    } else {
      refuse(operand.at, "calls through pointers are not carried out");
    }
  }
  if (call.function == nullptr || call.function->kind != Operand::Kind::name) {
    refuse(statement.at, "expected a function's name");
  }
  return call;
}

class Inliner {
 public:
  explicit Inliner(const Module& module) : module_(module) {}

  Function run(const Function& function) {
    Function flat = function;
    flat.scopes = {-1};
    flat.statements.clear();
    flat.variables.clear();
    flat.registers.clear();
    flat.labels.clear();
    flat.branch_targets.clear();
    flat_ = &flat;
    add(function, 0, "");
    return flat;
  }

 private:
  // Adds a function's text with its outermost scope as `root`; `end`: the label that its returns go
  // to, none in the kernel.
  void add(const Function& function, int root, const std::string& end) {
    if (std::find(active_.begin(), active_.end(), &function) != active_.end()) {
      refuse(function.at, "'" + function.name + "' calls itself, which is not carried out");
    }
    active_.push_back(&function);
    const int shift = static_cast<int>(flat_->scopes.size()) - 1;
    const auto scope = [&](int own) { return own == 0 ? root : own + shift; };
    for (std::size_t k = 1; k < function.scopes.size(); ++k) {
      flat_->scopes.push_back(scope(function.scopes[k]));
    }
    const auto moved = [&](auto each) {
      each.scope = scope(each.scope);
      return each;
    };
    for (const Variable& each : function.variables) {
      if (!end.empty() && each.space != Space::local && each.space != Space::param) {
        refuse(each.at, "variables of a block in a function that is called are not carried out");
      }
      flat_->variables.push_back(moved(each));
    }
    for (const Registers& each : function.registers) flat_->registers.push_back(moved(each));
    for (const BranchTargets& each : function.branch_targets) {
      flat_->branch_targets.push_back(moved(each));
    }
    std::size_t label = 0;
    const auto add_labels_before = [&](std::size_t statement) {
      for (; label < function.labels.size() && function.labels[label].statement <= statement;
           ++label) {
        Label placed = moved(function.labels[label]);
        placed.statement = flat_->statements.size();
        flat_->labels.push_back(std::move(placed));
      }
    };
    for (std::size_t k = 0; k < function.statements.size(); ++k) {
      add_labels_before(k);
      Statement statement = moved(function.statements[k]);
      if (is_call(statement)) {
        call(statement, function, function.statements[k].scope);
      } else {
        const bool returns = statement.opcode == "ret" || statement.opcode == "ret.uni";
        if (returns && !end.empty()) {
          statement.opcode = "bra";
          statement.operands = {named(end, statement.at)};
        }
        add(std::move(statement));
      }
    }
    add_labels_before(function.statements.size());
    active_.pop_back();
  }

  void add(Statement statement) {
    if (flat_->statements.size() >= kMostStatements) {
      refuse(statement.at, "a kernel with its calls has more instructions than are carried out");
    }
    flat_->statements.push_back(std::move(statement));
  }

  // `own_scope`: of the statement in its function.
  void call(const Statement& statement, const Function& caller, int own_scope) {
    const Call parts = parts_of(statement);
    const std::string end = "$end_of_call_" + std::to_string(++calls_);
    if (statement.predicate) {
      Statement skip = statement;
      skip.opcode = "bra";
      skip.predicate->negated = !skip.predicate->negated;
      skip.operands = {named(end, statement.at)};
      add(std::move(skip));
    }
    const Function* const callee = find(*parts.function);
    if (callee != nullptr) {
      flat_->scopes.push_back(0);
      const int root = static_cast<int>(flat_->scopes.size()) - 1;
      bind(callee->results, parts.results, root, statement, caller, own_scope);
      bind(callee->parameters, parts.parameters, root, statement, caller, own_scope);
      add(*callee, root, end);
    } else {
      outside(statement, parts.function->name);
    }
    flat_->labels.push_back({end, flat_->statements.size(), 0, statement.at});
  }

  const Function* find(const Operand& name) const {
    const Function* found = nullptr;
    for (const Function& each : module_.functions) {
      if (each.name == name.name && (found == nullptr || each.has_body)) found = &each;
    }
    if (found == nullptr) {
      refuse(name.at, "'" + name.name +
                          "' is no function of this module: calls through pointers "
                          "are not carried out");
    }
    return found->has_body ? found : nullptr;
  }

  void outside(Statement statement, const std::string& name) {
    const auto* const known = std::find_if(std::begin(kOutside), std::end(kOutside),
                                           [&](const Outside& each) { return each.name == name; });
    if (known == std::end(kOutside)) {
      refuse(statement.at, "'" + name + "' has no text in this module; link it in");
    }
    statement.opcode = known->opcode;
    statement.operands.clear();
    statement.predicate.reset();
    if (!statement.opcode.empty()) add(std::move(statement));
  }

  static const Variable* find_variable(const Function& function, int scope,
                                       const std::string& name) {
    for (; scope >= 0; scope = function.scopes[static_cast<std::size_t>(scope)]) {
      for (const Variable& each : function.variables) {
        if (each.scope == scope && each.name == name) return &each;
      }
    }
    return nullptr;
  }

  // The names of a callee's parameters stand for the caller's variables.
  void bind(const std::vector<Variable>& formal, const Operand* actual, int root,
            const Statement& statement, const Function& caller, int own_scope) {
    const std::size_t count = actual == nullptr ? 0 : actual->parts.size();
    if (count != formal.size()) {
      refuse(statement.at, std::to_string(count) + " parameters where the function has " +
                               std::to_string(formal.size()));
    }
    for (std::size_t k = 0; k < count; ++k) {
      const Operand& part = actual->parts[k];
      const Variable* const variable = find_variable(caller, own_scope, part.name);
      if (variable == nullptr || variable->space != Space::param) {
        refuse(part.at, "parameters of calls that are no .param variables are not carried out");
      }
      if (variable->size_bytes() < formal[k].size_bytes()) {
        refuse(part.at, "'" + part.name + "' has " + std::to_string(variable->size_bytes()) +
                            " bytes, the function's parameter " +
                            std::to_string(formal[k].size_bytes()));
      }
      flat_->aliases.push_back({root, formal[k].name, statement.scope, part.name});
    }
  }

  const Module& module_;
  Function* flat_ = nullptr;
  std::vector<const Function*> active_;
  int calls_ = 0;
};

}  // namespace

Function with_calls(const Module& module, const Function& function) {
  if (std::none_of(function.statements.begin(), function.statements.end(), is_call)) {
    return function;
  }
  return Inliner(module).run(function);
}

}  // namespace attest::ptx
