#include "core/verdict.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace attest {
namespace {

constexpr std::array kByGravity{Verdict::unsupported, Verdict::vacuous,  Verdict::passed,
                                Verdict::improbable,  Verdict::violated, Verdict::crashed};

auto gravity(Verdict verdict) {
  return std::distance(kByGravity.begin(),
                       std::find(kByGravity.begin(), kByGravity.end(), verdict));
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::improbable:
      return "improbable";
    case Verdict::violated:
      return "violated";
    case Verdict::vacuous:
      return "vacuous";
    case Verdict::unsupported:
      return "unsupported";
    case Verdict::crashed:
      break;
  }
  return "crashed";
}

Verdict graver(Verdict a, Verdict b) { return gravity(a) >= gravity(b) ? a : b; }

}  // namespace attest
