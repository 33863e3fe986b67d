#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "io/schedule/schedule.hpp"
#include "schedules/engine/search.hpp"

namespace attest::schedules {

/// A tile extent of a schedule, or with `choices` one of several named variants.
template <class S>
struct Parameter {
  Parameter(const char* spelled, std::int64_t S::*where, Extent divides)
      : name(spelled), member(where), extent(divides) {}
  Parameter(const char* spelled, std::int64_t S::*where, std::vector<const char*> words)
      : name(spelled), member(where), extent(Extent::any), choices(std::move(words)) {}

  /// Naming of a parameter in spellings: always, or only when its value is not the first choice.
  enum class Print : std::uint8_t { always, unless_first };
  using Search = io::ScheduleParameter::Search;

  const char* name;
  std::int64_t S::*member;
  Extent extent;
  std::vector<const char*> choices;
  Print print = Print::always;
  Search search = Search::first_choice;
};

/// The parameter `order` of schedules that can permute rows: `natural` as they come, `grouped`
/// those that see the same rows close together, `gapped` the same where buffers leave rows out.
enum Order : std::int64_t { kNatural, kGrouped, kGapped };

template <class S>
Parameter<S> order_parameter(std::int64_t S::*where, Order last = kGrouped) {
  std::vector<const char*> words{"natural", "grouped", "gapped"};
  words.resize(static_cast<std::size_t>(last) + 1);
  Parameter<S> parameter("order", where, std::move(words));
  parameter.search = Parameter<S>::Search::every_choice_of_masks;
  parameter.print = Parameter<S>::Print::unless_first;
  return parameter;
}

}  // namespace attest::schedules
