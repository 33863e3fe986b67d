#include "reference/coherent_groups.hpp"

#include <cmath>
#include <vector>

#include "core/testing/catch.hpp"

using attest::reference::CoherentGroups;

namespace {

TEST_CASE("a group begins at its smallest entry and reaches the factor", "[reference]") {
  const std::vector<double> x{3, 0, 1, 2.5, 1.25, 10}, weight{1, 2, 4, 8, 16, 32};
  CoherentGroups groups;
  groups.sort(x.data(), 6);
  std::vector<double> total;
  groups.group_sums(std::log(1.26), weight.data(), total);
  CHECK(total == std::vector<double>{9, 0, 20, 9, 20, 32});
  groups.group_sums(0, weight.data(), total);
  CHECK(total == std::vector<double>{1, 0, 4, 8, 16, 32});
  groups.group_sums(std::log(3.1), weight.data(), total);
  CHECK(total == std::vector<double>{29, 0, 29, 29, 29, 32});
}

TEST_CASE("equal entries among many are one group, neighbours apart are not", "[reference]") {
  constexpr std::size_t kCount = 5000;
  std::vector<double> x(kCount), weight(kCount, 1.0), total;
  for (std::size_t e = 0; e < kCount; ++e) x[e] = 0.1 + static_cast<double>(e % 2500) * 0x1p-20;
  CoherentGroups groups;
  groups.sort(x.data(), kCount);
  groups.group_sums(0x1p-33, weight.data(), total);
  CHECK(total == std::vector<double>(kCount, 2.0));
  // Equal up to one unit in the last place: how a product of matrices may leave equal rows.
  for (std::size_t e = 0; e < 2500; ++e) x[e] = std::nextafter(x[e], 1.0);
  groups.sort(x.data(), kCount);
  groups.group_sums(0, weight.data(), total);
  CHECK(total == std::vector<double>(kCount, 2.0));
}

TEST_CASE("coherence is 1 without groups and the capped size with one", "[reference]") {
  CoherentGroups groups;
  const std::vector<double> apart{1, 2, 3, 4}, equal{5, 5, 5, 5}, weight{1, 1, 1, 1};
  groups.sort(apart.data(), 4);
  CHECK(groups.coherence(0.25, weight.data(), 100) == 1);
  groups.sort(equal.data(), 4);
  CHECK(groups.coherence(0.25, weight.data(), 100) == 4);
  CHECK(groups.coherence(0.25, weight.data(), 3) == 3);
  const std::vector<double> none(4, 0.0);
  groups.sort(none.data(), 4);
  CHECK(groups.coherence(0.25, weight.data(), 100) == 0);
}

}  // namespace
