#include "core/mask/mask_spellings.hpp"

#include "core/mask/mask_part.hpp"
#include "core/mask/pattern.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("every part of a mask is one, and known by its form", "[pattern]") {
  for (const MaskSpelling& part : mask_spellings()) {
    INFO(part.form);
    CHECK(part.form.rfind(part.name, 0) == 0);
    CHECK_FALSE(part.summary.empty());
    if (names_path(part.example)) {
      CHECK_THROWS_WITH(Pattern::parse(part.example, 8, 8), Catch::Contains("cannot read"));
    } else {
      CHECK_NOTHROW(Pattern::parse(part.example, 8, 8));
    }
  }
}

TEST_CASE("parts of a mask are known before anything is asked of them", "[pattern]") {
  using Parts = std::vector<std::string>;
  CHECK(mask_parts("none") == Parts{"none"});
  CHECK(mask_parts("causal_br+file_a.txt+lengths_3") ==
        Parts{"causal_br", "file_a.txt", "lengths_3"});
  CHECK_THROWS_WITH(mask_parts("blok_64"), Catch::Contains("did you mean 'block'"));
  CHECK_THROWS_WITH(mask_parts("causal_r"), Catch::Contains("did you mean 'causal_br'"));
  CHECK_THROWS_WITH(mask_parts("causal_br+"), Catch::Contains("'' is unknown"));
  for (const char* path : {"file_a+b.txt", "causal_br+pattern_a+b.json"}) {
    CHECK_THROWS_WITH(mask_parts(path), Catch::Contains("ends at '+': rename or link the file"));
    CHECK_THROWS_WITH(Pattern::parse(path, 8, 8), Catch::Contains("ends at '+'"));
  }
  CHECK_THROWS_WITH(mask_parts("causal_br+b.txt"), !Catch::Contains("ends at '+'"));
}

}  // namespace
}  // namespace attest
