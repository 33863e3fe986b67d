#include "schedules/walks/lists/row_order.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "core/testing/catch.hpp"
#include "core/text/thousands.hpp"
#include "cpu/testing/judged_call.hpp"
#include "io/schedule/best_schedule.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/lists/csr/csr_gather.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;
using Keys = std::set<std::int64_t>;

std::vector<Keys> keys_of_rows(const Problem& problem, const Sequence& sequence) {
  std::vector<Keys> rows(static_cast<std::size_t>(sequence.q_length));
  for (std::int64_t i = 0; i < sequence.q_length; ++i) {
    for (std::int64_t j = 0; j < sequence.k_length; ++j) {
      if (problem.mask.visible(sequence, i, j)) rows[static_cast<std::size_t>(i)].insert(j);
    }
  }
  return rows;
}

std::vector<Keys> transposed(const std::vector<Keys>& rows, std::int64_t keys) {
  std::vector<Keys> columns(static_cast<std::size_t>(keys));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::int64_t key : rows[i]) {
      columns[static_cast<std::size_t>(key)].insert(static_cast<std::int64_t>(i));
    }
  }
  return columns;
}

std::int64_t shared(const Keys& a, const Keys& b) {
  return std::count_if(a.begin(), a.end(), [&b](std::int64_t key) { return b.count(key) == 1; });
}

// The rule as it is written, over sets.
std::vector<std::int64_t> by_the_rule(const std::vector<Keys>& rows, std::int64_t block) {
  std::vector<std::int64_t> order;
  std::set<std::int64_t> left;
  for (std::size_t i = 0; i < rows.size(); ++i) left.insert(static_cast<std::int64_t>(i));
  Keys taken;
  while (!left.empty()) {
    std::int64_t next = *left.begin();
    if (static_cast<std::int64_t>(order.size()) % block == 0) {
      taken.clear();
    } else {
      const auto merit = [&](std::int64_t i) {
        const Keys& keys = rows[static_cast<std::size_t>(i)];
        const std::int64_t common = shared(keys, taken);
        return std::tuple(common, common - static_cast<std::int64_t>(keys.size()), -i);
      };
      for (const std::int64_t i : left) {
        if (merit(i) > merit(next)) next = i;
      }
    }
    const Keys& keys = rows[static_cast<std::size_t>(next)];
    taken.insert(keys.begin(), keys.end());
    left.erase(next);
    order.push_back(next);
  }
  return order;
}

TEST_CASE("the order of grouped rows is that of its rule", "[sparse][schedules]") {
  Rng rng(6);
  for (int round = 0; round < 200; ++round) {
    const Problem problem = testing::random_pattern_problem(rng, Direction::forward);
    const std::int64_t block = rng.between(1, 8);
    INFO(problem.to_string() << " in groups of " << block);
    const AbiProblem form(problem, 1);
    const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
    const Sequence sequence = problem.sequences().front();
    const auto order_of = [&](Stay of) {
      return RowOrder::grouped(rule, sequence.q_length, sequence.k_length, block, of);
    };
    const std::vector<Keys> rows = keys_of_rows(problem, sequence);
    const std::int64_t group = problem.mask.boolean ? block : 1;  // a band keeps its order
    CHECK(order_of(Stay::queries).rows() == by_the_rule(rows, group));
    CHECK(order_of(Stay::queries).matrix().rows() == sequence.q_length);
    CHECK(order_of(Stay::keys).rows() == by_the_rule(transposed(rows, sequence.k_length), group));
  }
}

io::Words words(const std::string& schedule, const char* text) {
  const Problem problem = Problem::parse(text);
  const AbiProblem form(problem, 1);
  return testing::sparse_schedules()
      .make(schedule, *form.get(), io::FastMemory{})
      ->closed_form()
      .total_words();
}

// Queries of one residue share all their keys, and lie apart.
TEST_CASE("grouping gathers the queries of a strided pattern", "[sparse][schedules]") {
  const char* strided = "sq=32,sk=32,d=4,mask=dilated_inf_inf_4";
  const std::int64_t rows = 32 * 4 + 32 * 5, key = 4 + 4;
  // Eight queries in a row see all 32 keys, two of them each key: bits, one word for each.
  CHECK(words("csr_gather:bq=8,order=natural", strided) == rows + 4 * 32 * key + 4 * (2 + 32 * 2));
  // Eight of one residue see the same 8: no bits, but a word for each query.
  CHECK(words("csr_gather:bq=8,order=grouped", strided) == rows + 4 * 8 * key + 4 * (2 + 8) + 32);
}

enum class Gain { some, none };

// Checks whether the grouped order moves fewer words.
void check_gain(const std::string& schedule, const char* mask, Gain gain) {
  const std::string problem = std::string("sq=512,sk=512,d=64,mask=") + mask;
  const io::Words natural = words(schedule + ",order=natural", problem.c_str());
  const io::Words grouped = words(schedule + ",order=grouped", problem.c_str());
  INFO(schedule << " " << mask << ": " << natural.value() << " " << grouped.value());
  std::printf("%-24s %-26s natural %9lld grouped %9lld words, %.3f\n", schedule.c_str(), mask,
              static_cast<long long>(natural.value()), static_cast<long long>(grouped.value()),
              static_cast<double>(natural.value()) / static_cast<double>(grouped.value()));
  CHECK((gain == Gain::some) == (grouped < natural));
}

TEST_CASE("what grouping gains, and where nothing is to be gained", "[sparse][schedules]") {
  const std::vector<std::pair<const char*, Gain>> cases{
      {"dilated_inf_inf_4", Gain::some}, {"block_16_10_1", Gain::some},
      {"pairs_2_1", Gain::some},         {"pairs_10_1", Gain::some},
      {"nm_2_4_1", Gain::some},          {"butterfly_16", Gain::none},
      {"global_8_16_16", Gain::none},    {"documents_256x256_256x256", Gain::none}};
  for (const auto& [mask, gain] : cases) {
    check_gain("csr_gather:bq=32", mask, gain);
    check_gain("csr_two_pass:bq=32,bk=32", mask, gain);
  }
}

// Queries of one residue share all their keys: no order as they come is as good.
TEST_CASE("orders left open are searched", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=64,sk=64,d=8,mask=dilated_inf_inf_8");
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(200);
  const auto made = [&](const char* text) {
    return testing::sparse_schedules().make(text, *form.get(), capacity);
  };
  CHECK(made("csr_gather")->spec().to_string() ==
        made("csr_gather:order=natural")->spec().to_string());
  const auto grouped = made("csr_gather:order=grouped");
  CHECK(grouped->closed_form().total_words() < made("csr_gather")->closed_form().total_words());
  const io::BestSchedule found =
      io::best_schedule(testing::sparse_schedules(), Direction::forward, *form.get(), capacity);
  const auto gather = std::find_if(
      found.candidates.begin(), found.candidates.end(),
      [](const auto& candidate) { return candidate.schedule.rfind("csr_gather", 0) == 0; });
  REQUIRE(gather != found.candidates.end());
  CHECK(gather->schedule == grouped->spec().to_string());
  CHECK(gather->traffic == grouped->closed_form());
  // The gain over natural order stands beside it.
  REQUIRE(gather->others.size() == 1);
  const auto natural = made("csr_gather:order=natural");
  CHECK(gather->others[0].traffic == natural->closed_form());
  CHECK_THAT(found.to_string(),
             Catch::Contains("; " + natural->spec().to_string() + ": " +
                             thousands(natural->closed_form().total_words().value()) + " words\n"));
}

// Grouped rows whose outputs go to their places in the order, not to their own.
struct StoresInOrder {
  using Head = ForwardHead;
  static constexpr const char* kName = "stores_in_order";
  static std::vector<Parameter<StoresInOrder>> parameters() {
    return {{"bq", &StoresInOrder::block_q, Extent::queries}};
  }
  std::int64_t block_q;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    ForwardHead moved = head;
    moved.O = machine.workspace(head.Q.rows(), head.V.columns(), "O");
    gathered().run(machine, moved);
    const auto order =
        RowOrder::grouped(head.rule, head.Q.rows(), head.K.rows(), block_q, Stay::queries).rows();
    for (std::size_t place = 0; place < order.size(); ++place) {
      const auto to = static_cast<std::int64_t>(place);
      auto O = machine.scratch(1, head.V.columns(), "O");
      machine.load_into(O, moved.O.block({order[place], order[place] + 1}));
      machine.store(O, head.O.block({to, to + 1}));
    }
  }
  CsrGather gathered() const { return {block_q, kGrouped}; }
  io::Traffic cost(const ForwardHead& head) const { return gathered().cost(head); }
};

TEST_CASE("rows stored in the order of their groups are noticed", "[sparse][schedules]") {
  const auto outputs_right = [](const char* mask) {
    const Problem problem = Problem::parse(std::string("sq=13,sk=13,d=4,dv=3,mask=") + mask);
    Call call(problem, 3, {Memory::spelled, 1, 1, Dlse::absent});
    const BoundSchedule<StoresInOrder> schedule({4}, *call.form.get());
    schedule.count({}, call.forward_arguments());
    return worst_ratio(call.O.view(), cpu::testing::naive_forward(call).O) <= 1;
  };
  CHECK(outputs_right("blockband_4_0"));  // in order already
  CHECK_FALSE(outputs_right("pairs_40_3"));
}

}  // namespace
}  // namespace attest::schedules
