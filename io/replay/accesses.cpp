#include "io/replay/accesses.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace attest::io {
namespace {

std::int64_t aligned(std::int64_t words) {
  return (words + kLongestLine - 1) / kLongestLine * kLongestLine;
}

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

AccessBuilder::Holder& AccessBuilder::holder(std::int64_t place) {
  if (places_.size() <= index(place)) places_.resize(index(place) + 1);
  return places_[index(place)];
}

std::int64_t AccessBuilder::number_of(const SlowWord& word) {
  const auto next = static_cast<std::int64_t>(slow_.size());
  const auto [found, added] = numbers_[word.matrix].try_emplace({word.row, word.column}, next);
  if (added) {
    slow_.push_back(word);
    last_access_.push_back(0);
  }
  return found->second;
}

std::int64_t AccessBuilder::new_variable(std::int64_t place, std::int64_t slow) {
  variables_.push_back({slow, place, accesses_.size()});
  return static_cast<std::int64_t>(variables_.size()) - 1;
}

void AccessBuilder::emit(std::int64_t variable, Use use) {
  if (variable < 0) throw InternalError("trace: a place is used before it holds a word");
  if (accesses_.size() >= most_) {
    throw InvalidProblem("trace: more than " + std::to_string(most_) +
                         " accesses; make the problem smaller");
  }
  accesses_.push_back({static_cast<std::uint32_t>(variable), use});
  const std::int64_t slow = variables_[index(variable)].slow;
  if (slow >= 0) last_access_[index(slow)] = accesses_.size();
}

void AccessBuilder::read(std::int64_t place) { emit(holder(place).variable, Use::read); }

void AccessBuilder::form_anew(std::int64_t place) {
  Holder& held = holder(place);
  held = {new_variable(place, -1), Holder::State::formed};
  emit(held.variable, Use::write);
}

void AccessBuilder::update(std::int64_t place) {
  Holder& held = holder(place);
  if (held.variable < 0) return form_anew(place);
  if (held.state == Holder::State::formed) return emit(held.variable, Use::update);
  // The word in slow memory may be needed again: the changed word is another one.
  emit(held.variable, Use::read);
  form_anew(place);
}

void AccessBuilder::store(std::int64_t place, const SlowWord& word) {
  Holder& held = holder(place);
  if (held.variable < 0) throw InternalError("trace: a place is stored before it holds a word");
  const std::int64_t slow = number_of(word);
  Variable& variable = variables_[index(held.variable)];
  if (variable.slow < 0 && last_access_[index(slow)] <= variable.born) {
    variable.slow = slow;
    last_access_[index(slow)] = accesses_.size();
  }
  if (variable.slow == slow) {
    held.state = Holder::State::same_as_slow;
    return;
  }
  emit(held.variable, Use::read);
  emit(new_variable(place, slow), Use::write);
}

void AccessBuilder::take(const WordMove& move) {
  using Kind = WordMove::Kind;
  const bool itself =
      std::find(move.operands.begin(), move.operands.end(), move.place) != move.operands.end();
  for (const std::int64_t operand : move.operands) {
    if (operand != move.place) read(operand);
  }
  switch (move.kind) {
    case Kind::load:
      holder(move.place) = {new_variable(move.place, number_of(move.slow)),
                            Holder::State::same_as_slow};
      return;
    case Kind::store:
      return store(move.place, move.slow);
    case Kind::clear:
    case Kind::copy:
      return form_anew(move.place);
    case Kind::form:
      return itself ? update(move.place) : form_anew(move.place);
    case Kind::accumulate:
    case Kind::rescale:
      return update(move.place);
    case Kind::free:
      holder(move.place).variable = -1;
      return;
  }
  throw InternalError("WordMove::Kind out of range");
}

AccessTrace AccessBuilder::finish() && {
  AccessTrace trace;
  std::map<std::string, std::size_t> region_of;
  for (const auto& [matrix, words] : numbers_) {
    region_of[matrix] = trace.regions.size();
    AccessTrace::Region region{matrix, aligned(trace.words), 0, 0};
    for (const auto& [where, number] : words) {
      region.rows = std::max(region.rows, where.first + 1);
      region.columns = std::max(region.columns, where.second + 1);
    }
    trace.words = region.first + region.rows * region.columns;
    trace.regions.push_back(region);
  }
  trace.scratch = aligned(trace.words);
  trace.words = trace.scratch + static_cast<std::int64_t>(places_.size());
  if (trace.words > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidProblem("trace: " + std::to_string(trace.words) +
                         " addresses, but a replay has at most 2^32; make the problem smaller");
  }
  std::vector<std::uint32_t> address(variables_.size());
  for (std::size_t variable = 0; variable < variables_.size(); ++variable) {
    const Variable& v = variables_[variable];
    if (v.slow < 0) {
      address[variable] = static_cast<std::uint32_t>(trace.scratch + v.place);
      continue;
    }
    const SlowWord& word = slow_[index(v.slow)];
    const AccessTrace::Region& region = trace.regions[region_of.at(word.matrix)];
    address[variable] =
        static_cast<std::uint32_t>(region.first + word.row * region.columns + word.column);
  }
  for (Access& access : accesses_) access.word = address[access.word];
  trace.accesses = std::move(accesses_);
  return trace;
}

}  // namespace attest::io
