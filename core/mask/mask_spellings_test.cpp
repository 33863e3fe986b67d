#include "core/mask/mask_spellings.hpp"

#include <map>

#include "core/mask/pattern.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("every part of a mask is one, and known by its form", "[pattern]") {
  const std::map<std::string, std::string> examples{{"none", "none"},
                                                    {"causal_tl", "causal_tl"},
                                                    {"causal_br", "causal_br"},
                                                    {"window_L_R", "window_3_inf"},
                                                    {"window_tl_L_R", "window_tl_3_1"},
                                                    {"lengths_…", "lengths_8"},
                                                    {"cu_QxK_…", "cu_8x8"},
                                                    {"random_P_SEED", "random_50_1"},
                                                    {"file_PATH", "file_absent"},
                                                    {"block_QxK_PERCENT_SEED", "block_2x4_50_1"},
                                                    {"blockband_QxK_W", "blockband_2x4_1"},
                                                    {"butterfly_QxK", "butterfly_2x4"},
                                                    {"documents_5_7_3", "documents_5_3"},
                                                    {"rows_PERCENT_SEED", "rows_50_1"},
                                                    {"columns_PERCENT_SEED", "columns_50_1"},
                                                    {"dilated_L_R_STEP", "dilated_3_0_2"},
                                                    {"global_G_L_R", "global_1_2_0"},
                                                    {"nm_N_M_SEED", "nm_2_4_1"},
                                                    {"pairs_PERCENT_SEED", "pairs_50_1"},
                                                    {"pattern_PATH", "pattern_absent.json"}};
  CHECK(mask_spellings().size() == examples.size());
  for (const MaskSpelling& part : mask_spellings()) {
    INFO(part.form);
    CHECK(part.form.rfind(part.name, 0) == 0);
    CHECK_FALSE(part.summary.empty());
    const std::string& example = examples.at(part.form);
    if (example.find("absent") == std::string::npos) {
      CHECK_NOTHROW(Pattern::parse(example, 8, 8));
    } else {
      CHECK_THROWS_WITH(Pattern::parse(example, 8, 8), Catch::Contains("cannot read"));
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
