// Results computed once for the laws of a case.
#include "proptest/judge/recent.hpp"

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "proptest/judge/truth/truth.hpp"

namespace attest::proptest {
namespace {

TEST_CASE("what was used last is kept, up to a number of bytes") {
  Recent<int> recent(80);
  const auto find = [&](int wanted) {
    return recent.find([wanted](int value) { return value == wanted; });
  };
  recent.add(std::make_shared<const int>(1), 10);
  for (int value = 2; value <= 8; ++value) recent.add(std::make_shared<const int>(value), 10);
  REQUIRE(find(1) != nullptr);  // and it is the last used now
  recent.add(std::make_shared<const int>(9), 10);
  CHECK(find(2) == nullptr);
  CHECK(find(1) != nullptr);
  CHECK(find(9) != nullptr);
  recent.add(std::make_shared<const int>(10), 11);  // more than an eighth
  CHECK(find(10) == nullptr);
  CHECK(find(3) != nullptr);
}

TEST_CASE("truths are shared where nothing that enters them differs") {
  const attest_description plain = fixtures::defective_kernel(fixtures::Defect::none).description;
  const Problem problem = Problem::parse("hq=2,sq=5,sk=7,d=3,mask=random_60_1");
  const InputValues values = make_values(problem, Values::normal, 1);
  const auto truth = [&](const attest_description& description, const Problem& p,
                         const InputValues& in, Direction direction = Direction::backward,
                         std::uint64_t seed = 1) {
    return shared_truth(description, p, in, direction, seed);
  };
  const auto first = truth(plain, problem, values);
  CHECK(truth(plain, problem, values) == first);

  Problem elsewhere = problem;
  elsewhere.layout = Layout::bhsd;
  elsewhere.strides = Strides::padded;
  CHECK(truth(plain, elsewhere, values) == first);

  Problem other = problem;
  other.softmax_scale = 0.25;
  CHECK(truth(plain, other, values) != first);

  // The same spelling, other pairs.
  auto mask = std::make_shared<BooleanMask>(*problem.mask.boolean);
  mask->visible[3] ^= 1;
  Problem altered = problem;
  altered.mask.boolean = mask;
  REQUIRE(altered.to_string() == problem.to_string());
  CHECK(truth(plain, altered, values) != first);

  for (const auto input : {&InputValues::Q, &InputValues::K, &InputValues::V, &InputValues::dO}) {
    InputValues changed = values;
    (changed.*input).doubles()[2] += 1;
    CHECK(truth(plain, problem, changed) != first);
  }

  attest_description cast = plain;
  cast.numerics.p_cast = 1 + ATTEST_BF16;
  CHECK(truth(cast, problem, values) != first);
  attest_description empty = plain;
  empty.empty_row = ATTEST_NAN;
  CHECK(truth(empty, problem, values) != first);
  attest_description without_lse = plain;
  without_lse.features &= ~std::uint32_t{ATTEST_LSE};
  CHECK(truth(without_lse, problem, values) != first);

  CHECK(truth(plain, problem, values, Direction::forward) != first);
}

TEST_CASE("a gradient of LSE enters the truth where the kernel takes one") {
  const attest_description plain = fixtures::defective_kernel(fixtures::Defect::none).description;
  const Problem problem = Problem::parse("sq=3,d=2");
  const InputValues values = make_values(problem, Values::normal, 1);
  InputValues changed = values;
  changed.dLSE.doubles()[1] += 1;
  std::uint64_t with = 1, without = 1;
  while (!uses_dlse(plain, with)) ++with;
  while (uses_dlse(plain, without)) ++without;
  const auto truth = [&](const InputValues& in, std::uint64_t seed) {
    return shared_truth(plain, problem, in, Direction::backward, seed);
  };
  CHECK(truth(values, with) != truth(changed, with));
  CHECK(truth(values, without) == truth(changed, without));
  CHECK(truth(values, with) != truth(values, without));
}

}  // namespace
}  // namespace attest::proptest
