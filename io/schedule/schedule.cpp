#include "io/schedule/schedule.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest::io {
namespace {

[[noreturn]] void refuse_direction(const Schedule& schedule, std::string_view given) {
  throw InvalidProblem("schedule: '" + schedule.spec().to_string() + "' does not run " +
                       std::string(given) + "; choose one that does");
}

}  // namespace

std::string ScheduleSpec::to_string() const {
  std::string text = name;
  char separator = ':';
  for (const auto& [key, value] : parameters) {
    text += separator + key + "=" + value;
    separator = ',';
  }
  return text;
}

ScheduleSpec ScheduleSpec::parse(std::string_view text, const std::string& what) {
  const std::size_t colon = text.find(':');
  ScheduleSpec spec{std::string(text.substr(0, colon)), {}};
  if (spec.name.empty()) {
    throw InvalidProblem(what + ": '" + std::string(text) +
                         "' has no name; write name or name:key=value,…");
  }
  if (colon == std::string_view::npos) return spec;
  std::string_view rest = text.substr(colon + 1);
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) {
      throw InvalidProblem(what + ": '" + std::string(part) + "' in '" + std::string(text) +
                           "' is not key=value");
    }
    const std::string key(part.substr(0, equals));
    for (const auto& [earlier, value] : spec.parameters) {
      if (earlier == key) throw InvalidProblem(what + ": '" + key + "' is given twice");
    }
    spec.parameters.emplace_back(key, part.substr(equals + 1));
    if (comma == std::string_view::npos) return spec;
    rest.remove_prefix(comma + 1);
  }
}

Meter Schedule::count(FastMemory, const attest_forward_args&) const {
  refuse_direction(*this, "forward");
}
Meter Schedule::count(FastMemory, const attest_backward_args&) const {
  refuse_direction(*this, "backward");
}
Meter Schedule::count(FastMemory, const attest_loss_args&) const {
  refuse_direction(*this, "the loss gradient");
}

Meter Schedule::record(FastMemory, WordMoveSink&) const {
  throw InvalidProblem("schedule: '" + spec().to_string() + "' cannot be recorded");
}

void Schedule::run(const attest_forward_args&) const { refuse_direction(*this, "forward"); }
void Schedule::run(const attest_backward_args&) const { refuse_direction(*this, "backward"); }
void Schedule::run(const attest_loss_args&) const { refuse_direction(*this, "the loss gradient"); }

void ScheduleRegistry::add(std::unique_ptr<const ScheduleFamily> family) {
  for (const auto& known : families_) {
    if (known->name() == family->name()) {
      throw InvalidProblem("schedule: the name '" + family->name() + "' is taken");
    }
  }
  families_.push_back(std::move(family));
}

const ScheduleFamily& ScheduleRegistry::find(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& family : families_) {
    if (family->name() == name) return *family;
    names.push_back(family->name());
  }
  std::string known;
  for (const std::string& other : names) known += " " + other;
  throw InvalidProblem("schedule: '" + std::string(name) + "' is unknown" +
                       did_you_mean(name, names) + " (schedules:" + known + ")");
}

std::unique_ptr<Schedule> ScheduleRegistry::make(std::string_view text,
                                                 const attest_problem& problem,
                                                 FastMemory capacity) const {
  const ScheduleSpec spec = ScheduleSpec::parse(text);
  return find(spec.name).make(spec, problem, capacity);
}

ScheduleSpec spec_without_lists(const ScheduleRegistry& schedules, const ScheduleSpec& spec) {
  const std::string name = schedules.find(spec.name).without_lists();
  if (name.empty()) return spec;
  const auto known = schedules.find(name).parameters();
  ScheduleSpec other{name, {}};
  for (const auto& given : spec.parameters) {
    const bool shared = std::any_of(known.begin(), known.end(), [&](const auto& parameter) {
      return parameter.name == given.first;
    });
    if (shared) other.parameters.push_back(given);
  }
  return other;
}

}  // namespace attest::io
