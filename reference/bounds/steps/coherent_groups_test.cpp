#include "reference/bounds/steps/coherent_groups.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"

using attest::reference::CoherentGroups;

namespace {

TEST_CASE("a group begins at its smallest entry and reaches the factor", "[reference]") {
  const std::vector<double> x{3, 0, 1, 2.5, 1.25, 10}, weight{1, 2, 4, 8, 16, 32};
  CoherentGroups groups;
  groups.sort(x.data(), 6);
  std::vector<double> total;
  groups.group_sums(std::log(1.26), weight.data(), total);
  CHECK(total == std::vector<double>{9, 2, 20, 9, 20, 32});
  groups.group_sums(0, weight.data(), total);
  CHECK(total == std::vector<double>{1, 2, 4, 8, 16, 32});
  groups.group_sums(std::log(3.1), weight.data(), total);
  CHECK(total == std::vector<double>{29, 2, 29, 29, 29, 32});
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
  CHECK(groups.coherence(0.25, none.data(), 100) == 0);
}

// Groups by their definition, one comparison after the other.
std::vector<double> sums_by_definition(const std::vector<double>& x, double width) {
  std::vector<std::size_t> order;
  for (std::size_t e = 0; e < x.size(); ++e) {
    if (x[e] > 0) order.push_back(e);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
  std::vector<double> total(x.size(), 1.0);
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && x[order[end]] <= x[order[begin]] * std::exp(width)) ++end;
    for (std::size_t k = begin; k < end; ++k) total[order[k]] = static_cast<double>(end - begin);
  }
  return total;
}

// Spread evenly, far apart, crowded into one bucket by a single small value, and partly absent.
TEST_CASE("groups follow their definition however the values are spread", "[reference]") {
  attest::Rng rng(5);
  for (const double scale : {0.0, 0.1, 3.0, 100.0}) {
    for (const std::size_t count : {1u, 2u, 31u, 1000u, 4097u}) {
      for (const double least : {1.0, 1e-300, 0.0}) {
        std::vector<double> x(count), ones(count, 1.0), total;
        for (double& entry : x) entry = std::exp(scale * rng.normal());
        x[0] = least;
        CoherentGroups groups;
        groups.sort(x.data(), static_cast<std::int64_t>(count));
        for (const double width : {0.001, 0.1}) {
          CAPTURE(scale, count, least, width);
          groups.group_sums(width, ones.data(), total);
          CHECK(total == sums_by_definition(x, width));
        }
      }
    }
  }
}

}  // namespace
