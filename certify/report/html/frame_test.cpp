#include "certify/report/html/frame.hpp"

#include <pugixml.hpp>

#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

TEST_CASE("a page needs nothing beside it", "[html]") {
  const std::string page = framed("a <title>", "<p>body</p>");
  using Catch::Contains;
  CHECK_THAT(page,
             Contains("<title>a &lt;title&gt;</title>") && Contains("<main><p>body</p></main>"));
  CHECK_THAT(page, !Contains("http") && !Contains("src=") && !Contains("url(") &&
                       !Contains("@import") && !Contains("<link"));
}

TEST_CASE("style and script are well-formed", "[html]") {
  std::string page = framed("t", open_data_table("a\"b") + close_data_table());
  page.erase(0, page.find("<html"));
  for (const std::string part : {"<meta charset=\"utf-8\">", "initial-scale=1\">"}) {
    page.insert(page.find(part) + part.size() - 1, "/");
  }
  pugi::xml_document xml;
  const pugi::xml_parse_result parsed = xml.load_string(page.c_str());
  INFO(parsed.description());
  REQUIRE(parsed);
  const auto table = xml.select_node("//table[@class='data']").node();
  CHECK(std::string(table.attribute("id").value()) == "a\"b");
}

}  // namespace
}  // namespace attest::certify
