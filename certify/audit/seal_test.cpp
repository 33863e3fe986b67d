#include "certify/audit/seal.hpp"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

// The date with the environment's text; the environment as before.
std::string date_with(const char* epoch) {
  const char* const before = std::getenv("SOURCE_DATE_EPOCH");
  const std::string kept = before == nullptr ? "" : before;
  setenv("SOURCE_DATE_EPOCH", epoch, 1);
  std::string date;
  try {
    date = certificate_date();
  } catch (const InvalidProblem& refused) {
    date = refused.what();
  }
  if (before == nullptr) {
    unsetenv("SOURCE_DATE_EPOCH");
  } else {
    setenv("SOURCE_DATE_EPOCH", kept.c_str(), 1);
  }
  return date;
}

TEST_CASE("a seal is of values, not of spaces", "[audit]") {
  nlohmann::json object{{"b", {1, 2.5, -0.0, 0.1, 1e-300}}, {"a", "text"}, {"n", nullptr}};
  seal(object);
  CHECK(object.at("sha256") == seal_of(object));
  CHECK(nlohmann::json::parse(object.dump(3)).at("sha256") ==
        seal_of(nlohmann::json::parse(object.dump(3))));
  for (const char* key : {"a", "b", "n"}) {
    nlohmann::json changed = object;
    changed[key] = "another";
    CHECK(changed.at("sha256") != seal_of(changed));
  }
  nlohmann::json more = object;
  more["added"] = 1;
  CHECK(more.at("sha256") != seal_of(more));
}

TEST_CASE("a certificate that was changed or lost its seal has a fault", "[audit]") {
  nlohmann::json object{{"exit_code", 1}};
  CHECK_THAT(seal_fault(object), Catch::Contains("has no SHA-256 of its own"));
  seal(object);
  CHECK(seal_fault(object).empty());
  object["exit_code"] = 0;
  CHECK_THAT(seal_fault(object), Catch::Contains("was changed after it was made"));
  object["sha256"] = 7;
  CHECK_FALSE(seal_fault(object).empty());
}

TEST_CASE("bytes that are no UTF-8 have the seal of what is written for them", "[audit]") {
  nlohmann::json object{{"kernel", "./lib\xff.so"}};
  seal(object);
  const std::string text = object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  const nlohmann::json read = nlohmann::json::parse(text);
  CHECK(read.at("sha256") == seal_of(read));
}

TEST_CASE("the date may be given", "[audit]") {
  CHECK(date_with("0") == "1970-01-01T00:00:00Z");
  CHECK(date_with("1700000000") == "2023-11-14T22:13:20Z");
  for (const char* wrong : {"", "1.5", "-1", "now", "253402300800", "99999999999999999999"}) {
    CHECK_THAT(date_with(wrong), Catch::Contains("SOURCE_DATE_EPOCH"));
  }
}

}  // namespace
}  // namespace attest::certify
