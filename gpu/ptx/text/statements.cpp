#include "gpu/ptx/text/statements.hpp"

#include "gpu/ptx/text/declarations.hpp"

namespace attest::ptx {
namespace {

// A register, a number or "_".
Operand take_single(Cursor& cursor) {
  Operand operand;
  operand.at = cursor.at();
  if (cursor.peek().is("-") || cursor.peek().is("+") || cursor.peek().kind == Token::Kind::number) {
    operand.kind = Operand::Kind::number;
    operand.value = cursor.take_number();
  } else if (!cursor.skip("_")) {
    operand.kind = Operand::Kind::name;
    operand.negated = cursor.skip("!");
    operand.name = cursor.take_name("an operand");
  }
  return operand;
}

// "a, b" up to `end`, which is taken.
std::vector<Operand> take_parts(Cursor& cursor, std::string_view end) {
  std::vector<Operand> parts;
  if (cursor.skip(end)) return parts;
  do {
    parts.push_back(take_single(cursor));
  } while (cursor.skip(","));
  cursor.take(end);
  return parts;
}

// "[%rd1 + -4]", "[%rd1, {%r1, %r2}]", after its bracket.
void take_address(Cursor& cursor, Operand& operand) {
  if (cursor.peek().kind == Token::Kind::word) operand.name = cursor.take_name("a base");
  if (operand.name.empty() || cursor.peek().is("+") || cursor.peek().is("-")) {
    if (!operand.name.empty() && cursor.peek(1).is("-")) cursor.take("+");
    const Literal offset = cursor.take_number();
    if (offset.kind != Literal::Kind::integer) refuse(operand.at, "an offset is an integer");
    operand.offset = static_cast<std::int64_t>(offset.bits);
  }
  if (cursor.skip(",")) {
    cursor.take("{");
    operand.parts = take_parts(cursor, "}");
  }
  cursor.take("]");
}

Operand take_operand(Cursor& cursor) {
  Operand operand;
  operand.at = cursor.at();
  if (cursor.skip("{")) {
    operand.kind = Operand::Kind::vector;
    operand.parts = take_parts(cursor, "}");
    if (operand.parts.empty()) refuse(operand.at, "expected registers between the braces");
  } else if (cursor.skip("(")) {
    operand.kind = Operand::Kind::list;
    operand.parts = take_parts(cursor, ")");
  } else if (cursor.skip("[")) {
    operand.kind = Operand::Kind::address;
    take_address(cursor, operand);
  } else {
    const Operand first = take_single(cursor);
    if (!cursor.skip("|")) return first;
    operand.kind = Operand::Kind::pair;
    operand.parts = {first, take_single(cursor)};
  }
  return operand;
}

class BodyParser {
 public:
  BodyParser(Cursor& cursor, Function& function) : cursor_(cursor), function_(function) {}

  void run() {
    const Position begin = cursor_.at();
    cursor_.take("{");
    for (;;) {
      if (cursor_.at_end()) refuse(begin, "'{' of '" + function_.name + "' has no '}'");
      if (cursor_.skip("}")) {
        if (scope_ == 0) return;
        scope_ = function_.scopes[static_cast<std::size_t>(scope_)];
      } else if (cursor_.skip("{")) {
        function_.scopes.push_back(scope_);
        scope_ = static_cast<int>(function_.scopes.size()) - 1;
      } else if (cursor_.peek().text.starts_with('.')) {
        directive();
      } else if (cursor_.peek(1).is(":")) {
        label();
      } else {
        statement();
      }
    }
  }

 private:
  void directive() {
    const Token word = cursor_.take_word("a directive");
    if (word.is(".reg")) {
      append(function_.registers, take_registers(cursor_, scope_));
    } else if (word.is(".loc")) {
      location();
    } else if (word.is(".pragma")) {
      cursor_.take_string();
      cursor_.take(";");
    } else if (const auto space = space_named(word.text)) {
      append(function_.variables, take_variables(cursor_, *space, scope_));
    } else {
      refuse(word.at, "unknown directive '" + std::string(word.text) + "' in a function");
    }
  }

  // ".loc 2 449 9, function_name $L__info_string0 + 3, inlined_at 1 12 3"
  void location() {
    SourceMark mark;
    const auto take_place = [&](int& file, int& line) {
      constexpr std::uint64_t kMost = 1U << 30;
      file = static_cast<int>(cursor_.take_integer("a file's number", kMost));
      line = static_cast<int>(cursor_.take_integer("a line", kMost));
      cursor_.take_integer("a column");
    };
    take_place(mark.file, mark.line);
    if (cursor_.skip(",")) {
      cursor_.take("function_name");
      cursor_.take_name("a label");
      if (cursor_.skip("+")) cursor_.take_integer("an offset");
      cursor_.take(",");
      cursor_.take("inlined_at");
      take_place(mark.call_file, mark.call_line);
    }
    source_ = mark;
  }

  void label() {
    Label label{"", function_.statements.size(), scope_, cursor_.at()};
    label.name = cursor_.take_name("a label");
    cursor_.take(":");
    if (cursor_.peek().is(".callprototype") || cursor_.peek().is(".calltargets")) {
      refuse(label.at, "calls through pointers are not carried out");
    }
    if (cursor_.skip(".branchtargets")) {
      BranchTargets targets{label.name, {}, scope_, label.at};
      do {
        targets.labels.push_back(cursor_.take_name("a label"));
      } while (cursor_.skip(","));
      cursor_.take(";");
      function_.branch_targets.push_back(std::move(targets));
      return;
    }
    function_.labels.push_back(std::move(label));
  }

  void statement() {
    Statement statement;
    statement.scope = scope_;
    statement.source = source_;
    statement.at = cursor_.at();
    if (cursor_.skip("@")) {
      Operand predicate;
      predicate.kind = Operand::Kind::name;
      predicate.at = cursor_.at();
      predicate.negated = cursor_.skip("!");
      predicate.name = cursor_.take_name("a predicate");
      statement.predicate = predicate;
    }
    statement.at = cursor_.at();
    statement.opcode = std::string(cursor_.take_word("an instruction").text);
    if (!cursor_.skip(";")) {
      do {
        statement.operands.push_back(take_operand(cursor_));
      } while (cursor_.skip(","));
      cursor_.take(";");
    }
    function_.statements.push_back(std::move(statement));
  }

  template <class T>
  static void append(std::vector<T>& all, std::vector<T> more) {
    for (T& each : more) all.push_back(std::move(each));
  }

  Cursor& cursor_;
  Function& function_;
  int scope_ = 0;
  SourceMark source_;
};

}  // namespace

void take_body(Cursor& cursor, Function& function) { BodyParser(cursor, function).run(); }

}  // namespace attest::ptx
