#include "certify/reproduce/claims/multiplication_words.hpp"

#include <map>
#include <memory>
#include <tuple>

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

constexpr std::int64_t kRows = 256, kHeadDim = 16;

std::vector<Outcome> outcomes(const Multipliers& multipliers) {
  std::vector<Outcome> list;
  for (const Claim& claim : multiplication_words(kRows, kHeadDim, multipliers).claims) {
    list.push_back(claim.outcome);
  }
  return list;
}

// Counts each product once for all cases.
template <class Count>
Count remembered(Count count) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, Multiplication>;
  return [count, known = std::make_shared<std::map<Key, ProductWords>>()](
             const ProductTask& task, std::int64_t size, Multiplication how) {
    const Key key{task.rows_q, task.rows_k, task.head_dim, size, how};
    const auto found = known->find(key);
    if (found != known->end()) return found->second;
    return known->emplace(key, count(task, size, how)).first->second;
  };
}

const Multipliers& counted_once() {
  static const Multipliers multipliers = [] {
    const Multipliers counted = counted_multipliers();
    return Multipliers{remembered(counted.depth_first), remembered(counted.resident)};
  }();
  return multipliers;
}

TEST_CASE("a multiplication that is cheaper than the claims allow is seen to be", "[reproduce]") {
  const Multipliers& counted = counted_once();
  CHECK(outcomes(counted) == std::vector{Outcome::reproduced, Outcome::reproduced});

  SECTION("S that is never written falls below the bound") {
    Multipliers forgetful = counted;
    forgetful.depth_first = [](const ProductTask& task, std::int64_t, Multiplication) {
      return ProductWords{(task.rows_q + task.rows_k) * task.head_dim, 0, 1};
    };
    CHECK(outcomes(forgetful) == std::vector{Outcome::not_reproduced, Outcome::reproduced});
  }
  SECTION("Strassen without its scratch has larger tiles") {
    Multipliers in_place = counted;
    in_place.resident = [&](const ProductTask& task, std::int64_t tile, Multiplication how) {
      ProductWords words = counted.resident(task, tile, how);
      if (how == Multiplication::strassen) words.peak /= 4;
      return words;
    };
    CHECK(outcomes(in_place)[1] == Outcome::not_reproduced);
  }
  SECTION("Strassen that moves less at equal tiles") {
    Multipliers idle = counted;
    idle.resident = [&](const ProductTask& task, std::int64_t tile, Multiplication how) {
      ProductWords words = counted.resident(task, tile, how);
      if (how == Multiplication::strassen) words.read -= 1;
      return words;
    };
    CHECK(outcomes(idle)[1] == Outcome::not_reproduced);
  }
}

}  // namespace
}  // namespace attest::certify
