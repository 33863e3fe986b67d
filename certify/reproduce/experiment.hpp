#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.hpp"
#include "io/schedule/schedule.hpp"

/// The claims of the I/O papers, each with an experiment that counts or measures it.
namespace attest::certify {

/// How a claim fared.
enum class Outcome : std::uint8_t {
  reproduced,
  corrected,  // what is claimed holds with another constant or under a condition
  not_reproduced,
  not_compared,  // nothing was there to hold it against
};

/// "reproduced", "reproduced with a correction", "not reproduced" or "not compared".
std::string name(Outcome outcome);

/// Statement of a paper and what was found.
struct Claim {
  std::string text;      // in our words
  std::string source;    // paper and number of the statement
  std::string measured;  // with its numbers
  Outcome outcome = Outcome::not_reproduced;
};

/// Points of a plot, by ascending x.
struct Curve {
  enum class Kind : std::uint8_t { measured, bound };

  std::string name;
  Kind kind = Kind::measured;
  std::vector<std::pair<double, double>> points;
};

/// Curves over two axes.
struct Plot {
  enum class Scale : std::uint8_t { logarithmic, linear };  // base 2 in x, 10 in y

  std::string name;  // of its files
  std::string title, x, y;
  std::vector<Curve> curves;
  Scale scale_x = Scale::logarithmic, scale_y = Scale::logarithmic;
  std::optional<double> mark_x{};  // a vertical line, and what stands at it
  std::string mark{};
};

/// Rows of text, for the page and as CSV.
struct Table {
  std::string name;  // of its file
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct Findings {
  std::vector<Claim> claims;
  std::vector<Plot> plots;
  std::vector<Table> tables;
};

/// How much work: smoke is for every run of CI, fast for a laptop and a reader.
enum class Effort : std::uint8_t { smoke, fast };

/// Equipment of an experiment; sizes that are absent are its own.
struct Laboratory {
  const io::ScheduleRegistry& schedules;
  const Registry& kernels;  // for what is timed
  Effort effort = Effort::fast;
  std::optional<std::int64_t> seqlen, head_dim, fast_words;

  std::int64_t seqlen_or(std::int64_t smoke, std::int64_t fast) const {
    return seqlen.value_or(effort == Effort::smoke ? smoke : fast);
  }
  std::int64_t head_dim_or(std::int64_t otherwise) const { return head_dim.value_or(otherwise); }
};

/// A size that an experiment takes, and what it can work with in reasonable time.
struct SizeOption {
  std::string name;  // "seqlen", "head-dim" or "fast-words"
  std::int64_t least, most;
  std::int64_t multiple = 1;  // of which it must be one
};

/// A name, what it is about, and how it is done. Sizes it does not take are refused by the command.
struct Experiment {
  std::string name;
  std::string title;
  std::vector<SizeOption> sizes;
  std::function<Findings(const Laboratory&)> run;
  int place = kLastPlace;  // on the page, ascending

  static constexpr int kLastPlace = 1000;
};

/// All experiments, in the order of the page: one for each file of certify/reproduce/experiments,
/// which defines `Experiment NAME_experiment()`, NAME being the file's. The list is written when
/// the build is configured. [certify/reproduce/experiment_test "every file is an experiment"]
const std::vector<Experiment>& experiments();

/// Throws InvalidProblem with the nearest name when there is none.
/// [certify/reproduce/experiment_test "unknown names"]
const Experiment& find_experiment(const std::string& name);

}  // namespace attest::certify
