#include "io/recording/trace_text.hpp"

#include <array>
#include <charconv>
#include <ostream>

#include "core/error.hpp"

namespace attest::io {
namespace {

using Kind = WordMove::Kind;

// In the order of Kind.
constexpr std::array<std::string_view, 8> kWords{"load",       "store",   "clear", "form",
                                                 "accumulate", "rescale", "copy",  "free"};

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t space = line.find(' ');
    parts.push_back(line.substr(0, space));
    if (space == std::string_view::npos) return parts;
    line.remove_prefix(space + 1);
  }
}

[[noreturn]] void refuse(std::string_view line) {
  throw InvalidProblem("trace: '" + std::string(line) + "' is no move");
}

std::int64_t number(std::string_view part, std::string_view line) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc() || end != part.data() + part.size() || value < 0) refuse(line);
  return value;
}

}  // namespace

std::string to_text(const WordMove& move) {
  std::string text(kWords.at(static_cast<std::size_t>(move.kind)));
  text += ' ' + std::to_string(move.place);
  if (move.kind == Kind::load || move.kind == Kind::store) {
    text += ' ' + move.slow.matrix + ' ' + std::to_string(move.slow.row) + ' ' +
            std::to_string(move.slow.column);
  }
  for (const std::int64_t operand : move.operands) text += ' ' + std::to_string(operand);
  return text;
}

WordMove parse_word_move(std::string_view line) {
  const std::vector<std::string_view> parts = split(line);
  WordMove move;
  std::size_t kind = 0;
  while (kind < kWords.size() && kWords[kind] != parts[0]) ++kind;
  if (kind == kWords.size() || parts.size() < 2) refuse(line);
  move.kind = static_cast<Kind>(kind);
  move.place = number(parts[1], line);
  if (move.kind == Kind::load || move.kind == Kind::store) {
    if (parts.size() != 5 || parts[2].empty()) refuse(line);
    move.slow = {std::string(parts[2]), number(parts[3], line), number(parts[4], line)};
    return move;
  }
  for (std::size_t part = 2; part < parts.size(); ++part) {
    move.operands.push_back(number(parts[part], line));
  }
  const bool alone = move.kind == Kind::clear || move.kind == Kind::free;
  const bool fits =
      alone ? move.operands.empty()
            : (move.kind == Kind::copy ? move.operands.size() == 1 : !move.operands.empty());
  if (!fits) refuse(line);
  return move;
}

void WordMoveWriter::take(const WordMove& move) { out_ << to_text(move) << '\n'; }

}  // namespace attest::io
