#include "gpu/simt/diagnosis.hpp"

#include <cstring>

namespace attest::simt {

std::string SourceLine::to_string() const {
  const char* slash = std::strrchr(file, '/');
  return std::string(slash == nullptr ? file : slash + 1) + ":" + std::to_string(line);
}

const char* name(Fault fault) {
  switch (fault) {
    case Fault::deadlock:
      return "deadlock";
    case Fault::divergence:
      return "divergence";
    case Fault::exited_lane:
      return "exited lane in a mask";
    case Fault::outside_mask:
      return "outside the mask";
    case Fault::shuffle_width:
      return "width of a shuffle";
    case Fault::shared_budget:
      return "shared memory budget";
    case Fault::misaligned:
      return "misaligned access";
    case Fault::out_of_bounds:
      return "out of bounds";
    case Fault::uninitialised:
      return "uninitialised shared memory";
    case Fault::race:
      return "race";
    case Fault::async_pending:
      return "asynchronous access under way";
    case Fault::mbarrier:
      return "mbarrier";
    case Fault::transactions:
      return "transaction bytes";
    case Fault::missing_fence:
      return "missing fence";
    case Fault::uncounted:
      return "uncounted access";
    case Fault::exception:
      return "exception";
  }
  return "unknown";
}

std::string Diagnosis::to_string() const {
  const auto coordinate = [](unsigned value) { return std::to_string(value); };
  std::string place =
      "block " + coordinate(block.x) + "," + coordinate(block.y) + "," + coordinate(block.z);
  if (where.line != 0) place = where.to_string() + ", " + place;
  return std::string(name(fault)) + ": " + text + " (" + place + ")";
}

}  // namespace attest::simt
