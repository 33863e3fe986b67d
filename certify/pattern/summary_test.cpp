#include "certify/pattern/summary.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "certify/testing/schema.hpp"
#include "core/error.hpp"
#include "core/mask/sparsity/pattern_file.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

SparsityPattern pattern(const std::string& problem) {
  return pattern_of(Problem::parse("d=1," + problem));
}

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

const std::vector<std::string>& problems() {
  static const std::vector<std::string> all{"sq=70,sk=130,mask=block_16x8_20_1",
                                            "sq=70,sk=130,mask=causal_br",
                                            "sq=130,sk=70,mask=causal_br",
                                            "sq=129,mask=window_3_2",
                                            "sq=40,mask=documents_5_7_3_25",
                                            "sq=33,sk=65,mask=pairs_2_1",
                                            "sq=200,mask=pairs_0.5_4",
                                            "sq=33,sk=64,mask=nm_1_4_1",
                                            "sq=30,sk=10,mask=nm_2_4_7",
                                            "sq=20,mask=rows_30_1",
                                            "sq=20,mask=columns_30_1",
                                            "sq=64,mask=random_7_1+causal_tl",
                                            "sq=1,sk=1",
                                            "sq=0,sk=4",
                                            "sq=4,sk=0",
                                            "sq=12,mask=block_4_0_1"};
  return all;
}

Degrees naive_degrees(std::vector<std::int64_t> counts) {
  Degrees degrees;
  std::sort(counts.begin(), counts.end());
  if (!counts.empty()) {
    degrees = {counts.front(), counts[(counts.size() - 1) / 2], counts.back(), 0, 0};
  }
  for (const std::int64_t count : counts) {
    degrees.none += count == 0 ? 1 : 0;
    degrees.one += count == 1 ? 1 : 0;
  }
  return degrees;
}

// Everything from contains() alone: labels are spread until nothing changes.
PatternSummary naive_summary(const SparsityPattern& pattern) {
  const std::int64_t rows = pattern.rows(), columns = pattern.columns();
  PatternSummary naive;
  std::vector<std::int64_t> of_row(at(rows)), of_key(at(columns)), row_label(at(rows)),
      key_label(at(columns));
  std::set<std::int64_t> diagonals, labels;
  for (std::int64_t i = 0; i < rows; ++i) row_label[at(i)] = i;
  for (std::int64_t j = 0; j < columns; ++j) key_label[at(j)] = rows + j;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        if (!pattern.contains(i, j) || row_label[at(i)] == key_label[at(j)]) continue;
        row_label[at(i)] = key_label[at(j)] = std::min(row_label[at(i)], key_label[at(j)]);
        changed = true;
      }
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      if (!pattern.contains(i, j)) continue;
      ++of_row[at(i)];
      ++of_key[at(j)];
      diagonals.insert(j - i);
      labels.insert(row_label[at(i)]);
    }
  }
  naive.queries = naive_degrees(of_row);
  naive.keys = naive_degrees(of_key);
  naive.components = static_cast<std::int64_t>(labels.size());
  if (!diagonals.empty()) {
    naive.first_diagonal = *diagonals.begin();
    naive.diagonals = *diagonals.rbegin() - *diagonals.begin() + 1;
  }
  const auto pairs_of = [&](std::int64_t i, std::int64_t j, std::int64_t height, std::int64_t width,
                            std::int64_t& cells) {
    std::int64_t pairs = 0;
    cells = 0;
    for (std::int64_t a = i; a < std::min(i + height, rows); ++a) {
      for (std::int64_t b = j; b < std::min(j + width, columns); ++b) {
        ++cells;
        pairs += pattern.contains(a, b) ? 1 : 0;
      }
    }
    return pairs;
  };
  std::int64_t cells = 0;
  for (std::int64_t i = 0; i < rows; i += 64) {
    for (std::int64_t j = 0; j < columns; j += 64) {
      const std::int64_t pairs = pairs_of(i, j, 64, 64, cells);
      ++naive.all_tiles;
      naive.tiles += pairs > 0 ? 1 : 0;
      naive.whole_tiles += pairs == cells ? 1 : 0;
    }
  }
  DensityMap& map = naive.map;
  map.cell_q = std::max<std::int64_t>((rows + 31) / 32, 1);
  map.cell_k = std::max<std::int64_t>((columns + 63) / 64, 1);
  for (std::int64_t i = 0; i < rows; i += map.cell_q) {
    ++map.rows;
    map.columns = 0;
    for (std::int64_t j = 0; j < columns; j += map.cell_k) {
      ++map.columns;
      const std::int64_t pairs = pairs_of(i, j, map.cell_q, map.cell_k, cells);
      map.density.push_back(static_cast<double>(pairs) / static_cast<double>(cells));
    }
  }
  return naive;
}

TEST_CASE("brute force", "[pattern]") {
  for (const std::string& text : problems()) {
    INFO(text);
    const SparsityPattern of = pattern(text);
    const PatternSummary found = summarize(of), naive = naive_summary(of);
    CHECK(found.queries == naive.queries);
    CHECK(found.keys == naive.keys);
    CHECK(found.components == naive.components);
    CHECK(found.diagonals == naive.diagonals);
    CHECK(found.first_diagonal == naive.first_diagonal);
    CHECK(found.tiles == naive.tiles);
    CHECK(found.whole_tiles == naive.whole_tiles);
    CHECK(found.all_tiles == naive.all_tiles);
    CHECK(found.map.density == naive.map.density);
    CHECK(found.map.rows * found.map.columns ==
          static_cast<std::int64_t>(naive.map.density.size()));
    CHECK(found.map.cell_q == naive.map.cell_q);
    CHECK(found.map.cell_k == naive.map.cell_k);
  }
}

TEST_CASE("one pattern", "[pattern]") {
  CHECK(pattern("b=2,hq=3,hkv=3,sq=4,mask=lengths_3_3").nnz() == 12);
  CHECK_THROWS_WITH(pattern("b=2,sq=4,mask=lengths_3_2"),
                    Catch::Contains("batch entries 0 and 1 see different pairs"));
  CHECK_THROWS_WITH(pattern("mask=cu_3x5_2x2"), Catch::Contains("documents_5_7_3"));
}

TEST_CASE("a map in characters", "[pattern]") {
  CHECK(map_text({1, 1, 2, 5, {0, 0.001, 0.125, 0.5, 1, 0.999, 0.874, 0.25, 0.375, 0.625}}) ==
        "| .:+@|\n|%#-=*|\n");
  CHECK(map_text({}).empty());
  CHECK(map_text(summarize(pattern("sq=3,mask=causal_br")).map) == "|@  |\n|@@ |\n|@@@|\n");
}

TEST_CASE("schema", "[pattern]") {
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_PATTERN_SCHEMA));
  for (const std::string& text : problems()) {
    const SparsityPattern of = pattern(text);
    auto object = pattern_summary_json(of, summarize(of));
    CHECK(object.at("pairs") == of.nnz());
    const auto file = nlohmann::json::parse(pattern_json(of));
    CHECK(object.at("listed") == file.at(file.contains("offsets") ? "offsets" : "columns").size());
    object["version"] = "";
    check_against(object, schema);
  }
}

TEST_CASE("files", "[pattern]") {
  for (const std::string& text : problems()) {
    for (const std::string end : {".json", ".safetensors"}) {
      const std::string path = "pattern_summary_test" + end;
      const SparsityPattern of = pattern(text);
      std::ofstream(path, std::ios::binary) << pattern_file_bytes(of, path);
      INFO(text << end);
      const SparsityPattern read = read_pattern_file(path, PatternShape{of.rows(), of.columns()});
      CHECK(read == of);
      CHECK(std::holds_alternative<BlockForm>(read.form()) ==
            std::holds_alternative<BlockForm>(of.form()));
      std::remove(path.c_str());
    }
  }
  CHECK_THROWS_WITH(pattern_file_bytes(pattern("sq=4"), "mask.txt"),
                    Catch::Contains(".json or .safetensors"));
  CHECK_THROWS_WITH(pattern_file_bytes(pattern("sq=20000,mask=causal_br"), "mask.json"),
                    Catch::Contains("at most 2^27"));
  CHECK_THROWS_WITH(pattern_file_bytes(pattern("sq=40000,mask=causal_br"), "mask.safetensors"),
                    Catch::Contains("at most 2^29"));
  CHECK_THROWS_WITH(pattern_file_bytes(pattern("sq=60000,mask=window_2_0"), "mask.safetensors"),
                    Catch::Contains("limited to 2^31"));
}

TEST_CASE("forms", "[pattern]") {
  CHECK(form_text(pattern("sq=8,mask=block_4x2_50_1")) == "blocks of 4 x 2");
  CHECK(form_text(pattern("sq=8,mask=nm_2_4_1")) == "2 of every 4 keys");
  CHECK(form_text(pattern("sq=8,mask=pairs_20_1")) == "single pairs");
  CHECK(form_text(pattern("sq=8,mask=causal_br")) == "ranges of keys");
}

}  // namespace
}  // namespace attest::certify
