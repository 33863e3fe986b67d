#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/bounds/kernel_class.hpp"

namespace attest::io {

/// How a statement is known.
enum class Tag : std::uint8_t {
  proved,       // docs/theory/bounds has the proof
  cited,        // proved in the paper named
  verified,     // checked against traced simulations; not a lower bound
  conjectured,  // not a lower bound
};

std::string_view name(Tag tag);

/// Kind of number that a statement gives.
enum class Form : std::uint8_t {
  words,           // a number of words that holds at this size
  leading_order,   // the leading term only: lower-order terms or the constant are missing
  schedule_order,  // what one schedule moves, to leading order: no bound for others
};

/// A statement about the words every kernel of a class must move, evaluated for one case.
struct Bound {
  std::string name;       // "theorem_a"
  std::string statement;  // the formula
  std::string page;       // where it is stated exactly and proved
  Tag tag = Tag::proved;
  Form form = Form::words;
  std::vector<Condition> conditions;  // all that it needs, K1 to K6 among them
  std::int64_t words = 0;             // if it applies and has Form::words
  double leading = 0;                 // if it applies and has one of the other forms
  bool of_events = false;             // what it counts are events (docs/theory/bounds/segments.md)
  bool of_all_rows = false;           // counts those with fewer than two visible keys too

  /// Tells whether every condition is met.
  bool applies() const;

  /// Tells whether the bound may be called a lower bound here: it applies, is a number of words,
  /// and is proved or cited.  [io/bounds/class_test "only proved"]
  bool is_lower_bound() const;

  /// "K3: K and V share storage", all failed conditions; empty if it applies.
  std::string why_not() const;

  /// "lower bound (proved)", "asymptotic lower bound, constant or lower-order terms missing
  /// (cited)", "leading order, no lower bound (verified)", "order of one schedule, no lower bound
  /// (cited)" or "not applicable".
  /// [io/bounds/class_test "only proved"]
  std::string label() const;

  /// One line: name, label, number or reason, statement, page.
  std::string to_string() const;
};

/// The greatest of those that are lower bounds; nothing if none is. Bounds are not added here:
/// most count the same words.  [io/bounds/report_test "the greatest"]
std::optional<Bound> greatest(const std::vector<Bound>& bounds);

/// Returns the class that bounds hold for: "class", then K1 to K6 and what the kernel declares, one
/// to a line.
/// [io/bounds/report_test "approved"]
std::string class_text(const KernelClass& kernel);

/// The class of the kernel, then the bounds, one to a line, then the greatest.
/// [io/bounds/report_test "approved"]
std::string report(const KernelClass& kernel, const std::vector<Bound>& bounds);

/// Words of fast memory in the bounds of a case with mixed widths: bytes by the narrowest width, so
/// that no word that fits is left out. A bound in words times the narrowest width bounds the bytes.
///
/// Requires: both at least 1. Else throws InvalidProblem.  [io/bounds/report_test "bytes"]
std::int64_t words_of_bytes(std::int64_t fast_bytes, std::int64_t narrowest_bytes);

}  // namespace attest::io
