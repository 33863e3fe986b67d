#include "cpu/kernels/vectors/target.hpp"

#include <hwy/highway.h>

#include <cstdint>
#include <cstdlib>

#include "core/error.hpp"

namespace attest::cpu {
namespace {

bool has_avx512_bf16() {
#if HWY_ARCH_X86
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

std::int64_t target_of(const std::string& name) {
  if (name == kPairTarget) return HWY_AVX3;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) return target;
  }
  throw InternalError("no target '" + name + "'");
}

}  // namespace

const std::vector<std::string>& runnable_targets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      if (target == HWY_AVX3 && has_avx512_bf16()) all.emplace_back(kPairTarget);
      all.emplace_back(hwy::TargetName(target));
    }
    return all;
  }();
  return names;
}

std::string choose_target(const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') return runnable_targets().front();
  std::string known;
  for (const std::string& name : runnable_targets()) {
    if (name == wanted) return name;
    known += (known.empty() ? "" : ", ") + name;
  }
  throw InvalidProblem(std::string(kTargetVariable) + " is '" + wanted +
                       "', which is no target of this program and processor; there are " + known);
}

const std::string& target_name() {
  static const std::string name = choose_target(std::getenv(kTargetVariable));
  return name;
}

bool multiplies_pairs_at_once() { return target_name() == kPairTarget; }

std::size_t target_index() {
  static const std::size_t index = [] {
    hwy::ChosenTarget chosen;  // not Highway's own, which other code of the process may change
    chosen.Update(target_of(target_name()));
    return chosen.GetIndex();
  }();
  return index;
}

}  // namespace attest::cpu
