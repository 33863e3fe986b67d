#include "certify/reproduce/claims/statement_claim.hpp"

#include <fmt/format.h>

#include <map>

namespace attest::certify {

std::string ratio_text(const CacheSize& size) {
  const char* const small = size.regime == CacheRegime::small ? "*" : "";
  return size.ratio < 100 ? fmt::format("{:.3g}{}", size.ratio, small)
                          : fmt::format("{:.0f}{}", size.ratio, small);
}

Claim claim_of(const Statement& statement) {
  std::map<std::string, std::pair<int, int>> places;  // right figures, all
  std::vector<std::string> right, wrong;
  for (const Figure& figure : figures(statement)) {
    const bool holds = figure.holds == Figure::Holds::yes;
    auto& [count, all] = places[figure.place];
    count += holds ? 1 : 0;
    ++all;
    (holds ? right : wrong)
        .push_back(fmt::format("{}, {}, {}/{}: {}", figure.place, figure.word, figure.head_dim_qk,
                               figure.head_dim_v, ratio_text(figure.size)));
  }
  std::size_t holding = 0;
  for (const auto& [place, counts] : places) {
    const bool holds =
        statement.of == Statement::Of::some ? counts.first > 0 : counts.first == counts.second;
    holding += holds ? 1 : 0;
  }
  std::string measured = fmt::format("so for {} of {} values of M/(d_k d_v)", right.size(),
                                     right.size() + wrong.size());
  const bool list_right = right.size() < wrong.size();
  const std::vector<std::string>& shorter = list_right ? right : wrong;
  if (!shorter.empty()) {
    measured += fmt::format("; {} for {}", list_right ? "only" : "not", fmt::join(shorter, "; "));
  }
  return {statement.text, statement.source, measured,
          holding == places.size() ? Outcome::reproduced
          : right.empty()          ? Outcome::not_reproduced
                                   : Outcome::corrected};
}

}  // namespace attest::certify
