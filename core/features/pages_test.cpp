#include "core/features/pages.hpp"

#include <cmath>
#include <set>
#include <string>

#include "core/testing/catch.hpp"

namespace attest {
namespace {

const char* const kPaged[] = {"b=3,sq=2,sk=7,d=2,paged_kv=1_5",
                              "b=3,hq=2,sq=2,sk=8,d=2,dv=3,mask=lengths_8_0_1,paged_kv=4_3",
                              "b=2,sq=2,sk=6,d=2,paged_kv=3_6_4",
                              "b=2,sq=2,sk=6,d=2,mask=lengths_6_5,paged_kv=16",
                              "d=2,mask=cu_2x5_3x0_1x4,paged_kv=2_8",
                              "b=2,sq=2,sk=0,d=2,paged_kv=4_2",
                              "b=2,sq=2,sk=3,d=2,paged_kv=2_1_66000"};

// The keys' numbers, each in all its columns.
Tensor numbered(const Problem& problem) {
  Tensor keys("K", DType::f64, problem.k_axes());
  double number = 0;
  for (std::int64_t b = 0; b < keys.view().extent(0); ++b) {
    for (std::int64_t s = 0; s < keys.view().extent(1); ++s) {
      ++number;
      for (std::int64_t h = 0; h < keys.view().extent(2); ++h) {
        for (std::int64_t c = 0; c < keys.view().extent(3); ++c) keys.set(number, b, s, h, c);
      }
    }
  }
  return keys;
}

// Says what of the pages does not hold the problem's keys, as `table` names them; "" when all does.
std::string fault(const Problem& problem, const std::vector<std::int32_t>& table) {
  const Pages pages(problem);
  const attest_paged_kv paged{sizeof(attest_paged_kv), pages.page_size, pages.pages,
                              pages.max_pages, table.data()};
  const Tensor keys = numbered(problem), stored = in_pages(problem, keys);
  std::set<std::pair<std::int64_t, std::int64_t>> used;
  std::int64_t b = 0;
  for (const Sequence& sequence : problem.sequences()) {
    for (std::int64_t j = 0; j < sequence.visible_keys; ++j) {
      const PagedKey at = place_of_key(paged, b, j);
      if (!used.insert({at.page, at.slot}).second) return "two keys in one slot";
      if (stored(at.page, at.slot, 0, 1) !=
          keys(sequence.tensor_batch, sequence.k_begin + j, 0, 1)) {
        return "another key";
      }
    }
    ++b;
  }
  for (std::int64_t page = 0; page < pages.pages; ++page) {
    for (std::int64_t slot = 0; slot < pages.page_size; ++slot) {
      if (std::isnan(stored(page, slot, 0, 1)) == (used.count({page, slot}) > 0)) return "unused";
    }
  }
  return "";
}

TEST_CASE("every key lies in a slot of its own, all else is NaN", "[pages]") {
  for (const char* text : kPaged) {
    INFO(text);
    const Problem problem = Problem::parse(text);
    const Pages pages(problem);
    CHECK(fault(problem, pages.block_table) == "");
    for (const std::int32_t page : pages.block_table) CHECK((page >= 0 && page < pages.pages));
    CHECK(stored_k_axes(problem)[0].extent == pages.pages);
    CHECK(stored_v_axes(problem)[3].extent == problem.head_dim_v);
    CHECK(AbiProblem(problem, 1).get()->paged_kv->max_pages == pages.max_pages);
  }
}

TEST_CASE("a table that names other pages is noticed", "[pages]") {
  for (const char* text : kPaged) {
    INFO(text);
    const Problem problem = Problem::parse(text);
    std::vector<std::int32_t> table = Pages(problem).block_table;
    const auto first = table.front(), last = table.back();
    table.front() = first == 0 ? 1 : 0;
    table.back() = last;
    if (problem.visible_pairs() > 0) CHECK(fault(problem, table) != "");
  }
}

TEST_CASE("pages come in the order of the seed, as many as are asked for", "[pages]") {
  const auto pages = [](const std::string& value) {
    return Pages(Problem::parse("b=4,sq=1,sk=40,d=1,paged_kv=" + value));
  };
  CHECK(pages("4_1").block_table != pages("4_4").block_table);  // rows are of one length
  CHECK(pages("4_1").block_table == pages("4_1").block_table);
  CHECK(pages("4").max_pages == 10);
  CHECK(pages("4_2").max_pages == 12);
  CHECK(pages("4").pages == 41);
  CHECK(pages("4_0_40").pages == 40);
  CHECK(pages("4_0_2").pages == 40);
  CHECK(pages("4_0_70000").pages == 70000);
}

TEST_CASE("what holds no key is poisoned in place", "[pages]") {
  const Problem problem = Problem::parse("b=2,sq=2,sk=5,d=2,mask=lengths_5_2,paged_kv=4_1");
  const Tensor wanted = in_pages(problem, numbered(problem));
  Tensor stored = in_pages(problem, numbered(problem), 3);
  poison_unused(problem, stored.view());
  for (std::int64_t page = 0; page < stored.view().extent(0); ++page) {
    for (std::int64_t slot = 0; slot < stored.view().extent(1); ++slot) {
      const double is = stored(page, slot, 0, 1), should = wanted(page, slot, 0, 1);
      CHECK((is == should || (std::isnan(is) && std::isnan(should))));
    }
  }
}

}  // namespace
}  // namespace attest
