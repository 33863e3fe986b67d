#include "proptest/judge/compare.hpp"

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::proptest {
namespace {

Tensor filled(const char* name, std::int64_t count, double value) {
  Tensor tensor(name, DType::f64, {{"row", count, 0}});
  for (std::int64_t i = 0; i < count; ++i) tensor.set(value, i);
  return tensor;
}

Comparison compared(double got, double exact, double proved, double probable,
                    std::int64_t count = 1, double sigma = 1) {
  return compare(
      filled("O", count, got).view(), filled("exact", count, exact),
      {filled("Bd", count, proved), filled("Bp", count, probable), filled("sigma", count, sigma)});
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("an element passes only within both bounds", "[compare]") {
  CHECK(compared(1.5, 1, 1, 0.5).verdict == Verdict::passed);
  CHECK(compared(1.75, 1, 1, 0.5).verdict == Verdict::improbable);
  CHECK(compared(2.5, 1, 1, 0.5).verdict == Verdict::violated);
  CHECK(compared(1, 1, 0, 0).verdict == Verdict::passed);
  CHECK(compared(std::nextafter(1.0, 2.0), 1, 0, 0).verdict == Verdict::violated);
}

TEST_CASE("classes are compared first", "[compare]") {
  CHECK(compared(kNan, 1, kInfinity, kInfinity).verdict == Verdict::violated);
  CHECK(compared(1, kNan, kInfinity, kInfinity).verdict == Verdict::violated);
  CHECK(compared(kNan, kNan, 0, 0).verdict == Verdict::passed);
  CHECK(compared(kInfinity, -kInfinity, kInfinity, kInfinity).verdict == Verdict::violated);
  CHECK(compared(kInfinity, 1, kInfinity, kInfinity).verdict == Verdict::violated);
  CHECK(compared(-kInfinity, -kInfinity, 0, 0).verdict == Verdict::passed);
}

TEST_CASE("a bound that is not a number passes nothing but the exact value", "[compare]") {
  CHECK(compared(1.5, 1, kNan, kNan).verdict == Verdict::violated);
  CHECK(compared(0, 0, kNan, kNan).verdict == Verdict::violated);
}

TEST_CASE("one element that is compared says nothing of others", "[compare]") {
  Tensor got = filled("O", 3, 2), exact = filled("exact", 3, 1), bound = filled("B", 3, 0);
  const Judged one{{1}, {0}, {0}};
  const auto reason = [&](const Judged* judged) {
    return compare(got.view(), exact, {bound, bound, bound}, judged).reason;
  };
  CHECK_THAT(reason(nullptr), Catch::Contains("; so are all 3 elements"));
  CHECK_THAT(reason(&one), !Catch::Contains("all") && Catch::EndsWith(", bound 0"));
}

TEST_CASE("the aggregate refuses a common small error", "[compare]") {
  CHECK(compared(1.5, 1, 10, 10, 256, 1).verdict == Verdict::passed);
  CHECK(compared(2.5, 1, 10, 10, 256, 1).verdict == Verdict::improbable);
  CHECK(compared(2.5, 1, 10, 10, 255, 1).verdict == Verdict::passed);
}

// Half of the elements are exact, as those of rows that see no key.
TEST_CASE("exact elements do not dilute the aggregate", "[compare]") {
  constexpr std::int64_t kElements = 512;
  Tensor sigma = filled("sigma", kElements, 1), got = filled("O", kElements, 1);
  for (std::int64_t k = 0; k < kElements; ++k) {
    if (k % 2 == 0) sigma.set(0, k);
    if (k % 2 == 1) got.set(2.3, k);
  }
  const reference::ErrorBound bound{filled("Bd", kElements, 10), filled("Bp", kElements, 10),
                                    sigma};
  const Comparison comparison = compare(got.view(), filled("exact", kElements, 1), bound);
  CHECK(comparison.erring == 256);
  CHECK(comparison.verdict == Verdict::improbable);
}

TEST_CASE("an element without a bound is not judged", "[compare]") {
  CHECK(compared(7, 1, kInfinity, kInfinity).verdict == Verdict::vacuous);
  CHECK(compared(7, 1, kInfinity, 8).verdict == Verdict::vacuous);
  CHECK(compared(1, 1, kInfinity, 1).verdict == Verdict::vacuous);
  CHECK(compared(1, 0, 2, 1).verdict == Verdict::passed);
  CHECK(compared(1, 0, kInfinity, 1).verdict == Verdict::vacuous);
  // Nothing is proved, but zero would be refused.
  CHECK(compared(7, 7.5, kInfinity, 1).verdict == Verdict::passed);
  CHECK(compared(5, 7.5, kInfinity, 1).verdict == Verdict::improbable);
  CHECK_THAT(compared(7, 1, kInfinity, kInfinity, 3).reason,
             Catch::Contains("no bound is proved for 3 of 3 elements"));
  // The other elements are judged all the same.
  Tensor got = filled("O", 2, 1), proved = filled("Bd", 2, 1);
  got.set(9, 0);
  proved.set(kInfinity, 1);
  CHECK(compare(got.view(), filled("exact", 2, 1), {proved, proved, proved}).verdict ==
        Verdict::violated);
}

TEST_CASE("the worst element is named", "[compare]") {
  Tensor got = filled("O", 4, 1);
  got.set(3, 2);
  const Comparison result = compare(got.view(), filled("exact", 4, 1),
                                    {filled("Bd", 4, 1), filled("Bp", 4, 1), filled("s", 4, 1)});
  CHECK(result.worst_index[0] == 2);
  CHECK(result.ratio == 2);
  CHECK(result.reason ==
        "outside the proved bound: O[row=2] is 3, exact 1, error 2 (9.01e+15 ulp), bound 1; 1 of 4 "
        "elements is wrong like this, row 2");
}

TEST_CASE("an element outside the proved bound is worse than any within it", "[compare]") {
  Tensor got = filled("O", 5, 1), proved = filled("Bd", 5, 1);
  for (const std::int64_t row : {1, 2}) got.set(3, row);
  got.set(9, 4);
  proved.set(100, 4);  // the largest error, improbable only
  const Comparison result =
      compare(got.view(), filled("exact", 5, 1), {proved, filled("Bp", 5, 0.5), filled("s", 5, 1)});
  CHECK(result.verdict == Verdict::violated);
  CHECK(result.worst_index[0] == 1);
  CHECK(result.ratio == 4);
  CHECK_THAT(result.reason,
             Catch::Contains("bound 1; 2 of 5 elements are wrong like this, row 1 to 2"));
}

TEST_CASE("the elements refused are those named", "[compare]") {
  const auto words_of = [](const std::vector<std::int64_t>& rows) {
    Tensor got = filled("O", 9, 1);
    for (const std::int64_t row : rows) got.set(3, row);
    const std::string reason = compare(got.view(), filled("exact", 9, 1),
                                       {filled("Bd", 9, 1), filled("Bp", 9, 1), filled("s", 9, 1)})
                                   .reason;
    const std::size_t named = reason.find("like this, ");
    return named == std::string::npos ? reason.substr(reason.find("; ") + 2)
                                      : reason.substr(named + 11);
  };
  CHECK(words_of({7}) == "row 7");
  CHECK(words_of({1, 4}) == "row 1 and 4");
  CHECK(words_of({1, 3, 4, 8}) == "row 1, 3, 4 and 8");
  CHECK(words_of({2, 3, 4, 5, 6, 7}) == "row 2 to 7");
  CHECK(words_of({0, 2, 3, 5, 6}) == "5 of row 0 to 6");
  CHECK(words_of({0, 2, 3, 5, 8}) == "5 of 9 elements are wrong like this");
}

TEST_CASE("what is said where no ulp or no error can be", "[compare]") {
  CHECK_THAT(compared(2.5, 0, 1, 0.5).reason, Catch::EndsWith("exact 0, error 2.5, bound 1"));
  CHECK_THAT(compared(kNan, 1, 1, 1, 3).reason,
             Catch::EndsWith("O[row=0] is NaN, exact 1; so are all 3 elements"));
  CHECK_THAT(compared(-kNan, 1, 1, 1).reason, Catch::EndsWith("O[row=0] is NaN, exact 1"));
  CHECK_THAT(
      compared(1.75, 1, 1, 0.5, 2).reason,
      Catch::StartsWith("improbable") && Catch::EndsWith("bound 0.5; so are all 2 elements"));
}

TEST_CASE("of two results none is called exact", "[compare]") {
  const reference::ErrorBound bound{filled("Bd", 4, 1), filled("Bp", 4, 1), filled("s", 4, 1)};
  const Comparison result =
      compare_pair(filled("O", 4, 4).view(), filled("O", 4, 1).view(), bound, bound);
  CHECK(result.reason ==
        "outside the proved bound: O[row=0] is 4, in the other result 1, difference 3, sum of both "
        "bounds 2; so are all 4 elements");
}

TEST_CASE("bits are compared exactly, zeros of either sign alike", "[compare]") {
  const auto bits = [](double a, double b) {
    return compare_bits(filled("a", 1, a).view(), filled("b", 1, b).view()).verdict;
  };
  CHECK(bits(1, 1) == Verdict::passed);
  CHECK(bits(0.0, -0.0) == Verdict::passed);
  CHECK(bits(kNan, kNan) == Verdict::passed);
  CHECK(bits(1, std::nextafter(1.0, 2.0)) == Verdict::violated);
  CHECK(bits(kNan, 1) == Verdict::violated);
}

TEST_CASE("other shapes are our own mistake", "[compare]") {
  CHECK_THROWS_AS(compare_bits(filled("a", 1, 0).view(), filled("b", 2, 0).view()), InternalError);
}

}  // namespace
}  // namespace attest::proptest
