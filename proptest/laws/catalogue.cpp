#include "proptest/laws/catalogue.hpp"

#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest::proptest {

const std::vector<Law>& laws() {
  static const std::vector<Law> all = [] {
    std::vector<Law> list;
    for (const auto& part : {reference_laws(), field_laws(), level_laws(), probe_laws(),
                             invariance_laws(), memory_laws(), algebra_laws(), sparsity_laws(),
                             identity_laws(), sink_laws(), page_laws(), bias_laws(), mask_laws(),
                             shared_kv_laws(), batch_laws(), nonfinite_laws(), loss_laws()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  return all;
}

bool concerns(const Law& law, const attest_description& description) {
  return (law.directions & description.directions) != 0 &&
         (law.features == 0 || (law.features & description.features) != 0);
}

const Law& find_law(std::string_view name) {
  std::vector<std::string> names;
  for (const Law& law : laws()) {
    if (law.name == name) return law;
    names.emplace_back(law.name);
  }
  throw InvalidProblem("unknown law '" + std::string(name) + "'" + did_you_mean(name, names) +
                       " (`attest list laws` shows all)");
}

}  // namespace attest::proptest
