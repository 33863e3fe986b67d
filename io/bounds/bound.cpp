#include "io/bounds/bound.hpp"

#include <algorithm>
#include <cstdio>

#include "core/error.hpp"
#include "core/text/thousands.hpp"

namespace attest::io {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

std::string_view name(Tag tag) {
  switch (tag) {
    case Tag::proved:
      return "proved";
    case Tag::cited:
      return "cited";
    case Tag::verified:
      return "verified";
    case Tag::conjectured:
      return "conjectured";
  }
  throw InternalError("Tag out of range");
}

bool Bound::applies() const {
  return std::all_of(conditions.begin(), conditions.end(),
                     [](const Condition& c) { return c.state == Condition::State::met; });
}

bool Bound::is_lower_bound() const {
  return applies() && form == Form::words && (tag == Tag::proved || tag == Tag::cited);
}

std::string Bound::why_not() const {
  std::string text;
  for (const Condition& condition : conditions) {
    if (condition.state == Condition::State::met) continue;
    if (!text.empty()) text += "; ";
    text += condition.name + ": " + condition.got;
  }
  return text;
}

std::string Bound::label() const {
  if (!applies()) return "not applicable";
  const std::string known = " (" + std::string(io::name(tag)) + ")";
  if (is_lower_bound()) return "lower bound" + known;
  if (form == Form::schedule_order) return "order of one schedule, no lower bound" + known;
  if (tag == Tag::verified || tag == Tag::conjectured) {
    return (form == Form::words ? "figure, no lower bound" : "leading order, no lower bound") +
           known;
  }
  return "asymptotic lower bound, constant or lower-order terms missing" + known;
}

std::string Bound::to_string() const {
  std::string text = name + ": " + label() + ": ";
  if (!applies()) {
    text += why_not();
  } else if (form == Form::words) {
    text += thousands(words) + " words";
  } else {
    text += "about " + number(leading) + " words";
  }
  return text + "  [" + statement + "; " + page + "]";
}

std::optional<Bound> greatest(const std::vector<Bound>& bounds) {
  std::optional<Bound> best;
  for (const Bound& bound : bounds) {
    if (bound.is_lower_bound() && (!best || bound.words > best->words)) best = bound;
  }
  return best;
}

std::string class_text(const KernelClass& kernel) {
  std::string text = "class\n";
  for (const Condition& condition : class_conditions(kernel)) {
    text += "  " + condition.name + "  " + condition.text;
    if (condition.state == Condition::State::failed) text += ": FAILS, " + condition.got;
    text += '\n';
  }
  if (kernel.evaluation == Evaluation::once) {
    text += "  declared: no score, P or dP is evaluated twice\n";
  }
  if (kernel.movement == RowMovement::whole_index) {
    text += "  declared: all rows of an index enter and leave together\n";
  }
  if (kernel.saved == SavedOutputs::read) {
    text += "  declared: O and LSE of the forward pass are read\n";
  }
  return text;
}

std::string report(const KernelClass& kernel, const std::vector<Bound>& bounds) {
  std::string text = class_text(kernel) + "bounds\n";
  for (const Bound& bound : bounds) text += "  " + bound.to_string() + '\n';
  const std::optional<Bound> best = greatest(bounds);
  text += best ? "greatest lower bound: " + thousands(best->words) + " words, " + best->name
               : std::string("no lower bound applies");
  return text + '\n';
}

std::int64_t words_of_bytes(std::int64_t fast_bytes, std::int64_t narrowest_bytes) {
  if (fast_bytes < narrowest_bytes || narrowest_bytes < 1) {
    throw InvalidProblem("fast_bytes is " + std::to_string(fast_bytes) +
                         " and the narrowest scalar has " + std::to_string(narrowest_bytes) +
                         " bytes; fast memory must hold at least one scalar");
  }
  return fast_bytes / narrowest_bytes;
}

}  // namespace attest::io
