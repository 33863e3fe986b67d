#include "certify/reproduce/experiment.hpp"

#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest::certify {

std::string name(Outcome outcome) {
  switch (outcome) {
    case Outcome::reproduced:
      return "reproduced";
    case Outcome::corrected:
      return "reproduced with a correction";
    case Outcome::not_compared:
      return "not compared";
    case Outcome::not_reproduced:
      break;
  }
  return "not reproduced";
}

const Experiment& find_experiment(const std::string& name) {
  std::vector<std::string> names{"all"};
  std::string list = "all";
  for (const Experiment& experiment : experiments()) {
    if (experiment.name == name) return experiment;
    names.push_back(experiment.name);
    list += " " + experiment.name;
  }
  throw InvalidProblem("unknown experiment '" + name + "'" + did_you_mean(name, names) +
                       " (experiments: " + list + ")");
}

}  // namespace attest::certify
