#include "certify/score/cheat_score.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "certify/certificate.hpp"
#include "certify/worker/process/isolated_kernel.hpp"

namespace attest::certify {

bool CheatScore::named() const {
  return score.caught && std::any_of(suspicions.begin(), suspicions.end(),
                                     [&](const auto& one) { return one.name == expected; });
}

CheatScore score_cheat(const fixtures::Cheat& cheat, const PlainKernels& plain,
                       const CampaignOptions& options, const worker::Limits& limits,
                       const Interrupted& interrupted) {
  const auto isolated = worker::isolate_builtin(std::string(cheat.name), limits);
  const attest_kernel& kernel = isolated->kernel();
  CheatScore result;
  result.expected = cheat.suspicion;
  result.score = score_defect({&kernel, "sq=1,d=1"}, plain, options, interrupted);
  if (const auto& caught = result.score.caught) {
    result.suspicions = suspicions_of(kernel, caught->shrunk, caught->found, caught->message);
  }
  return result;
}

nlohmann::json cheats_json(const std::vector<CheatScore>& scores) {
  nlohmann::json list = nlohmann::json::array();
  std::size_t caught = 0, named = 0;
  for (const CheatScore& one : scores) {
    caught += one.score.caught ? 1 : 0;
    named += one.named() ? 1 : 0;
    nlohmann::json object{{"kernel", one.score.kernel},
                          {"cases", one.score.cases},
                          {"interrupted", one.score.interrupted},
                          {"accepted_by", one.score.accepted},
                          {"caught", one.score.caught.has_value()},
                          {"named", one.named()},
                          {"suspicions", suspicions_json(one.suspicions)}};
    if (one.score.caught) {
      object["law"] = one.score.caught->law;
      object["message"] = one.score.caught->message;
      object["shrunk"] = case_json(one.score.caught->shrunk);
    }
    list.push_back(object);
  }
  return {{"caught", caught}, {"named", named}, {"all", scores.size()}, {"cheats", list}};
}

}  // namespace attest::certify
