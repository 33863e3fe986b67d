// The loosest correct kernel of every contract: no law refuses it, no element of it lies outside a
// bound (docs/theory/error-bounds/measured.md, "Loosest kernels").
#include "fixtures/emulated/loosest.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/features/score_features.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/emulated/emulation.hpp"
#include "proptest/testing/law_count.hpp"
#include "proptest/testing/validation.hpp"

namespace attest::proptest {
namespace {

using fixtures::Emulation;

// Outside nightly a kernel meets every eighth law, and the next kernel the next.
TEST_CASE("no law refuses the loosest kernel of any contract", "[validation]") {
  const std::uint64_t cases = attest::testing::is_nightly() ? 20 : 1;
  const std::uint64_t laws_apart = attest::testing::is_nightly() ? 1 : 8;
  std::map<std::string_view, LawCount> of_law;
  std::uint64_t seed = 1;
  for (const attest_kernel& kernel : fixtures::loosest_kernels()) {
    LawCount of_kernel;
    ++seed;  // other cases for each
    std::uint64_t turn = seed;
    for (const Law& law : laws()) {
      if (++turn % laws_apart != 0 || !concerns(law, kernel.description)) continue;
      const LawCount count = count_law(law, kernel, seed, cases);
      of_law[law.name] += count;
      of_kernel += count;
    }
    INFO(kernel.description.name);
    if (laws_apart == 1) CHECK(of_kernel.passed > 0);
  }
  for (const auto& [law, count] : of_law) {
    std::printf("%-24.*s passed %4d  vacuous %4d  unsupported %4d\n", static_cast<int>(law.size()),
                law.data(), count.passed, count.vacuous, count.unsupported);
    INFO(law);
    CHECK(count.passed > 0);
  }
}

TEST_CASE("the loosest kernels pass, or cannot be judged, in cases that were refused once",
          "[validation]") {
  struct Refused {
    std::string_view kernel;
    const char *problem, *values;
    std::uint64_t seed;
    Verdict verdict;
    const char* law = "score_level";
  };
  // Weights made twice at scores far from 0; and sums of gradients that may leave f16.
  const std::vector<Refused> refused{
      {"loosest/p_normalized_in_f16_f32",
       "sq=2,sk=3,d=1,dv=2,mask=causal_tl,dtype=f32,alibi=standard", "halves", 7035665675441775273u,
       Verdict::passed},
      {"loosest/p_normalized_in_bf16_f32",
       "hq=64,hkv=1,sq=2,sk=3,d=4,dv=1,mask=causal_tl,dtype=f32", "halves", 553309841377749985u,
       Verdict::passed},
      {"loosest/p_normalized_f16", "sq=5,sk=4,d=8,dv=1,mask=causal_br,dtype=f16", "halves",
       13815539836433299319u, Verdict::passed},
      {"loosest/p_normalized_in_f16_f32", "sq=2,sk=4,d=2,dv=2,mask=blockband_1x2_0,dtype=f32",
       "halves", 3960806941667838304u, Verdict::passed},
      {"loosest/dkv_accumulator_f16", "sq=18,sk=10,d=160,dv=80,dtype=f16", "cancelling",
       3639522429680545514u, Verdict::unsupported},
      {"loosest/dq_accumulator_f16", "sq=1,sk=9,d=24,dv=48,dtype=f16", "halves",
       11792354218496466994u, Verdict::unsupported},
      {"loosest/all_gradient_sums_in_f16_f32", "sq=3,sk=2,d=7,dv=14,dtype=f32", "halves", 2,
       Verdict::unsupported},
      {"loosest/several_f16", "sq=20,sk=58,d=128,dv=125,dtype=f16", "cancelling",
       9120761831441510231u, Verdict::unsupported},
      // A weight of 0 times a bound that grows without end.
      {"loosest/operand_roundoff_coarse_f32",
       "hq=4,hkv=1,sq=2,sk=2,d=40,mask=causal_br,dtype=f32,softcap=2,sinks=drawn_734", "logits_1e4",
       15243744925912900899u, Verdict::passed, "sink_merge"},
      // Casts that all elements of dV have in common.
      {"loosest/sum_after_cast_in_f16_f32",
       "b=1,hq=1,hkv=1,sq=17,sk=17,d=17,dv=33,mask=lengths_8+window_tl_3_-1,dtype=f32,layout=bhsd,"
       "scale=0,strides=broadcast",
       "halves", 14511944862548729277u, Verdict::passed, "offset_window"}};
  std::map<std::string_view, const attest_kernel*> kernels;
  for (const attest_kernel& kernel : fixtures::loosest_kernels()) {
    kernels[kernel.description.name] = &kernel;
  }
  for (const Refused& one : refused) {
    INFO(one.kernel << " " << one.problem);
    const Case c{Problem::parse(one.problem), parse_values(one.values), one.seed, 1};
    const LawResult result = find_law(one.law).check(*kernels.at(one.kernel), c);
    CHECK(result.message.find("outside the proved bound") == std::string::npos);
    CHECK(result.verdict == one.verdict);
  }
}

// A feature of calls, and whether a problem has it. A claim of bits is kept in every problem, and
// says nothing that the reference could judge.
struct Feature {
  std::uint32_t claim;
  std::string name;
  std::function<bool(const Problem&)> present;
  bool of_bits = false;
};

std::vector<Feature> features() {
  std::vector<Feature> all;
  for (const ScoreFeature& one : score_features()) {
    all.push_back({one.claim, one.name, one.present});
  }
  all.push_back({ATTEST_OFFSET_WINDOW, "windows with both ends anywhere",
                 [](const Problem& p) { return p.mask.offset; }});
  const auto any = [](const Problem&) { return true; };
  all.push_back({ATTEST_BATCH_INVARIANT, "bits that do not depend on the batch", any, true});
  all.push_back({ATTEST_SPLIT_INVARIANT, "bits that do not depend on splits", any, true});
  all.push_back({ATTEST_NONFINITE, "NaN and infinities", any, true});
  return all;
}

// The small case number `index` that has the feature.
Case case_with(const Feature& feature, const attest_kernel& kernel, std::uint64_t index) {
  constexpr std::uint64_t kFirst = 64, kSmall = 56;  // of indices behind the tier's, both small
  for (std::uint64_t draw = 0;; ++draw) {
    const std::uint64_t seed = mix(mix(feature.claim, index), draw / kSmall);
    const Case c = generate(kernel.description, Tier::smoke, seed, kFirst + draw % kSmall);
    if (feature.present(c.problem)) return c;
  }
}

// The reference, and what a law says of the feature alone. Some cases have nothing to judge: others
// take their place. ATTEST_FEATURE chooses one by its name, for a long run.
TEST_CASE("no law refuses the loosest kernels in small cases of a feature", "[validation]") {
  const int enough = attest::testing::is_nightly() ? 100000 : 40, most = 2 * enough;
  const char* const chosen = std::getenv("ATTEST_FEATURE");
  for (const Feature& feature : features()) {
    if (chosen != nullptr && feature.name != chosen) continue;
    std::vector<const attest_kernel*> kernels;
    for (const attest_kernel& kernel : fixtures::loosest_kernels()) {
      if ((kernel.description.features & feature.claim) != 0) kernels.push_back(&kernel);
    }
    INFO(feature.name);
    REQUIRE_FALSE(kernels.empty());
    std::vector<const Law*> asked;
    if (!feature.of_bits) {
      asked = {&find_law("reference_forward"), &find_law("reference_backward")};
    }
    for (const Law& law : laws()) {
      if ((law.features & feature.claim) != 0) asked.push_back(&law);
    }
    std::atomic<int> drawn{0}, judged{0}, refused{0};
    std::string first;
#pragma omp parallel for schedule(dynamic)
    for (int index = 0; index < most; ++index) {
      if (judged >= enough) continue;
      ++drawn;
      const auto number = static_cast<std::size_t>(index);
      const attest_kernel& kernel = *kernels[number % kernels.size()];
      const Case c = case_with(feature, kernel, number);
      bool says = false;
      for (const Law* law : asked) {
        const LawResult result = law->check(kernel, c);
        says = says || result.verdict == Verdict::passed;
        if (result.verdict == Verdict::passed || result.verdict == Verdict::vacuous ||
            result.verdict == Verdict::unsupported) {
          continue;
        }
        ++refused;
#pragma omp critical
        first = std::string(kernel.description.name) + " " + std::string(law->name) + " " +
                c.problem.to_string() + " values=" + std::string(name(c.values)) +
                " seed=" + std::to_string(c.seed) + ": " + result.message;
      }
      judged += says ? 1 : 0;
    }
    std::printf("%-36s %d of %d cases judged, %d refused\n", feature.name.c_str(), judged.load(),
                drawn.load(), refused.load());
    std::fflush(stdout);
    INFO(first);
    CHECK(refused == 0);
    CHECK(judged >= enough);
  }
}

// A kernel that lacks the property does not claim it; where it did, a law would say so.
TEST_CASE("the loosest kernels that lose NaN or infinities are refused where they claim them",
          "[validation]") {
  const auto refused = [](Emulation e, const char* law) {
    e.nonfinite = 1;
    const attest_kernel kernel = fixtures::emulated_kernel(e, DType::f32);
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      const Case c{Problem::parse("hq=2,sq=5,sk=9,d=8"), Values::normal, seed, 1};
      if (find_law(law).check(kernel, c).verdict == Verdict::violated) return true;
    }
    return false;
  };
  std::set<std::string> without_claim;
  for (const Emulation& e : fixtures::loosest_emulations(DType::f32)) {
    if (e.nonfinite != 0) continue;
    without_claim.insert(e.name);
    INFO(e.name);
    CHECK(refused(
        e, e.summation == fixtures::Summation::mma ? "infinity_propagation" : "nan_propagation"));
  }
  CHECK(without_claim ==
        std::set<std::string>{"loosest/fused_blocks_f32", "loosest/lse_split_keys_f32"});
}

using Shapes = const Shape& (*)(std::uint64_t);

// One line of the table: a contract over all value families, shapes in turn.
Cell measured(const Emulation& emulation, DType dtype, Shapes shapes, std::uint64_t rounds) {
  Cell cell{dtype, Values::normal, {emulation}, {}, 0, 0, ""};
  std::uint64_t index = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (const Values values : all_values()) {
      cell.values = values;
      cell.add(emulation, index, shapes(index + 5 * round));
      ++index;
    }
  }
  for (auto& [output, found] : cell.statistics) found.find_median();
  return cell;
}

// Every fourth contract outside nightly, counted on from `turn`: another for each table and type.
void check_none_outside(Shapes shapes, const char* title, std::size_t turn) {
  const std::uint64_t rounds = attest::testing::is_nightly() ? 70 : 1;
  std::int64_t cases = 0;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    std::vector<Emulation> emulations;
    for (const Emulation& emulation : fixtures::loosest_emulations(dtype)) {
      if (attest::testing::is_turn(turn++, 4)) emulations.push_back(emulation);
    }
    std::vector<Cell> cells(emulations.size());
#pragma omp parallel for schedule(dynamic)
    for (std::size_t k = 0; k < cells.size(); ++k) {
      cells[k] = measured(emulations[k], dtype, shapes, rounds);
    }
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const Cell& cell = cells[k];
      CHECK(cell.incomplete.empty());
      CHECK(cell.cases > 0);
      cases += cell.cases;
      std::printf("%s%-44s %4lld", title, emulations[k].name.c_str(),
                  static_cast<long long>(cell.cases));
      for (const auto& [output, found] : cell.statistics) {
        INFO(emulations[k].name << " " << output << " " << found.worst_case);
        CHECK(found.outside == 0);
        INFO("worst aggregate: " << found.aggregate_case);
        CHECK(found.worst_aggregate <= reference::kAggregateLimit);
        std::printf("  %s %.2f %.1f", output.c_str(), found.worst_probable, found.median);
      }
      std::printf("\n");
    }
  }
  std::printf("%s%lld cases of the loosest kernels\n", title, static_cast<long long>(cases));
}

TEST_CASE("no element of the loosest kernels lies outside a bound", "[validation]") {
  check_none_outside(shape, "", 0);
}

TEST_CASE("no element of the loosest kernels lies outside a bound where there are sinks",
          "[validation]") {
  check_none_outside(shape_of_sinks, "with sinks: ", 1);
}

TEST_CASE("no element of the loosest kernels lies outside a bound where there is a bias",
          "[validation]") {
  check_none_outside(shape_of_bias, "with bias: ", 2);
}

TEST_CASE(
    "no element of the loosest kernels lies outside a bound where heads and rows see other keys",
    "[validation]") {
  check_none_outside(shape_of_masks, "with masks: ", 3);
}

// A contract is there because the plain one refuses what it allows; all but those whose errors
// average out below what nearest roundings may do.
TEST_CASE("the loosest kernels are refused where they declare nothing", "[validation]") {
  const std::set<std::string> within_the_plain{"plain",           "flushing", "nondeterministic",
                                               "truncating",      "exp_ulps", "fused_blocks",
                                               "summation_depth", "late_sink"};
  for (const Emulation& e : fixtures::loosest_emulations(DType::f32)) {
    const std::string contract = e.name.substr(8, e.name.rfind('_') - 8);
    attest_kernel kernel = fixtures::emulated_kernel(e, DType::f32);
    kernel.description.numerics = {};
    kernel.description.numerics.struct_size = sizeof(attest_numerics);
    bool refused = false;
    for (const char* text :
         {"hq=8,hkv=1,sq=40,sk=60,d=32", "sq=1,sk=300,d=64", "sq=200,sk=3,d=8"}) {
      for (const Values values :
           {Values::normal, Values::all_positive, Values::logits_1e4, Values::denormals}) {
        if (refused) continue;
        const Case c{Problem::parse(text), values, 3, 1};
        const InputValues in = make_values(c.problem, values, c.seed);
        const Truth truth(kernel.description, c.problem, in, Direction::backward, c.seed);
        const KernelRun got = run(kernel, c.problem, in, Direction::backward, c);
        const Verdict verdict = gravest(truth.judge(got)).verdict;
        refused = refused || verdict == Verdict::violated || verdict == Verdict::improbable;
      }
    }
    INFO(e.name);
    CHECK(refused != within_the_plain.contains(contract));
  }
}

// The loosest contracts still refuse what is wrong: a running maximum that rises at the last key,
// and sums that are not rescaled with it.
TEST_CASE("a kernel that forgets to rescale is refused under the loosest contracts",
          "[validation]") {
  for (Emulation& e : fixtures::loosest_emulations(DType::f32)) {
    if (e.normalized != 0 || e.splits > 1 || e.block_k > 1) continue;  // it has no second key
    if (e.order == fixtures::TileOrder::descending) continue;  // its maximum is the first key's
    e.forgets_rescale = 1;
    const attest_kernel kernel = fixtures::emulated_kernel(e, DType::f32);
    const Case c{Problem::parse("sq=4,sk=2,d=16"), Values::rising_maximum, 5, 1};
    INFO(e.name);
    CHECK(find_law("reference_forward").check(kernel, c).verdict == Verdict::violated);
  }
}

}  // namespace
}  // namespace attest::proptest
