#pragma once

#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "io/bounds/bound.hpp"

namespace attest::io {

/// Builds a Bound: conditions first, the number only when all of them are met.
class Statement {
 public:
  Statement(std::string name, Tag tag, std::string statement, const std::string& page) {
    bound_.name = std::move(name);
    bound_.tag = tag;
    bound_.statement = std::move(statement);
    bound_.page = "docs/theory/bounds/" + page + ".md";
  }

  /// All six conditions of the class. Throws InvalidProblem unless fast_words is at least 1.
  Statement& needs_class(const KernelClass& kernel, std::int64_t fast_words) {
    if (fast_words < 1) {
      throw InvalidProblem("fast_words is " + std::to_string(fast_words) +
                           "; it must be at least 1");
    }
    bound_.conditions = class_conditions(kernel);
    return *this;
  }

  /// Adds the conditions of the class that are not named in `left_out`.
  Statement& needs_class_but(const KernelClass& kernel, const std::string& left_out) {
    for (Condition& condition : class_conditions(kernel)) {
      if (left_out.find(condition.name) == std::string::npos) {
        bound_.conditions.push_back(std::move(condition));
      }
    }
    return *this;
  }

  /// A condition that is met when `fault` is empty.
  Statement& needs(std::string condition, std::string text, std::string fault) {
    const auto state = fault.empty() ? Condition::State::met : Condition::State::failed;
    bound_.conditions.push_back({std::move(condition), std::move(text), state, std::move(fault)});
    return *this;
  }

  Statement& needs_once(const KernelClass& kernel) {
    return needs("once", "no score, P or dP is evaluated twice",
                 kernel.evaluation == Evaluation::once ? ""
                                                       : "the kernel may recompute; it does not "
                                                         "declare that it evaluates once");
  }

  Statement& needs_whole_rows(const KernelClass& kernel) {
    return needs("rows", "all rows of an index enter and leave together",
                 kernel.movement == RowMovement::whole_index ? "" : "rows may move word by word");
  }

  Statement& needs_chains(const KernelClass& kernel) {
    return needs("chain", "every evaluation of a score is one chain",
                 kernel.score_sums == ScoreSums::one_chain
                     ? ""
                     : "partial sums of scores may serve several evaluations");
  }

  /// Declares that words() will give a count of events alone, no other writes.
  Statement& of_events() {
    bound_.of_events = true;
    return *this;
  }

  /// It counts what rows with fewer than two visible keys move as well.
  Statement& of_all_rows() {
    bound_.of_all_rows = true;
    return *this;
  }

  template <class Words>
  Bound words(const Words& compute) {
    bound_.form = Form::words;
    if (bound_.applies()) bound_.words = compute();
    return bound_;
  }

  template <class Leading>
  Bound leading(const Leading& compute) {
    return order(Form::leading_order, compute);
  }

  template <class Leading>
  Bound order_of_schedule(const Leading& compute) {
    return order(Form::schedule_order, compute);
  }

 private:
  template <class Leading>
  Bound order(Form form, const Leading& compute) {
    bound_.form = form;
    if (bound_.applies()) bound_.leading = compute();
    return bound_;
  }

  Bound bound_;
};

/// The digits of a number before the point; one beyond 64 bits has some, too.
inline std::string digits_of(double value) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(0) << std::trunc(value);
  return text.str();
}

/// "fast_words is 10; it must be at least 32", or nothing when value >= least.
inline std::string below(const std::string& what, double value, double least) {
  if (value >= least) return "";
  return what + " is " + digits_of(value) + "; it must be at least " + digits_of(least);
}

/// The same for value <= most.
inline std::string above(const std::string& what, double value, double most) {
  if (value <= most) return "";
  return what + " is " + digits_of(value) + "; it must be at most " + digits_of(most);
}

}  // namespace attest::io
