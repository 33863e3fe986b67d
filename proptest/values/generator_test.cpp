#include "proptest/values/generator.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <variant>

#include "core/mask/sparsity/sparsity_pattern.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/values/score_draws.hpp"
#include "proptest/values/values.hpp"

namespace attest::proptest {
namespace {

const attest_description& everything() {
  return fixtures::defective_kernel(fixtures::Defect::none).description;
}

// Two draws within one expression would come in an order of the compiler's own.
TEST_CASE("a seed means the same cases and values with every compiler", "[generator]") {
  std::uint64_t digest = 0;
  const auto add = [&digest](const void* bytes, std::size_t size) {
    for (std::size_t index = 0; index < size; ++index) {
      digest = mix(digest, static_cast<const unsigned char*>(bytes)[index]);
    }
  };
  for (const Tier tier : {Tier::smoke, Tier::fast, Tier::full}) {
    for (std::uint64_t index = 0; index < 400; ++index) {
      const Case c = generate(everything(), tier, 1, index);
      const std::string problem = c.problem.to_string();
      add(problem.data(), problem.size());
      add(&c.values, sizeof c.values);
      add(&c.seed, sizeof c.seed);
      add(&c.threads, sizeof c.threads);
    }
  }
  const Problem p = Problem::parse("b=2,sq=5,sk=7,d=3,dtype=bf16");
  for (const Values family : all_values()) {
    const InputValues in = make_values(p, family, 1);
    for (const Tensor* tensor : {&in.Q, &in.K, &in.V, &in.dO}) {
      add(tensor->doubles(), static_cast<std::size_t>(tensor->view().size()) * sizeof(double));
    }
  }
  CHECK(digest == 0x24c80a7dba9b8da3u);
}

TEST_CASE("huge strides are not for tensors on a device, whose gaps travel with them",
          "[generator]") {
  attest_description description = everything();
  const Problem huge = Problem::parse("sq=3,d=2,strides=huge");
  CHECK(unclaimed(description, huge, Direction::forward).empty());
  description.device = ATTEST_CUDA;
  CHECK(unclaimed(description, huge, Direction::forward) == kHugeOnDevice);
  for (const char* text : {"sq=3,d=2", "sq=3,d=2,strides=padded", "sq=3,d=2,strides=mixed"}) {
    CHECK(unclaimed(description, Problem::parse(text), Direction::forward).empty());
  }
}

TEST_CASE("generated cases are valid, repeatable, claimed and varied", "[generator]") {
  std::set<std::string> problems, dtypes;
  for (std::uint64_t index = 0; index < 300; ++index) {
    const Case c = generate(everything(), Tier::smoke, 1, index);
    CHECK(generate(everything(), Tier::smoke, 1, index).problem.to_string() ==
          c.problem.to_string());
    CHECK(Problem::parse(c.problem.to_string()).to_string() == c.problem.to_string());
    problems.insert(c.problem.to_string());
    dtypes.insert(std::string(name(c.problem.dtype)));
  }
  CHECK(problems.size() > 290);
  CHECK(dtypes == std::set<std::string>{"f32", "bf16", "f16"});
  attest_description little = everything();
  little.features = 0;
  little.dtypes = 1u << ATTEST_BF16;
  for (std::uint64_t index = 0; index < 50; ++index) {
    const Case c = generate(little, Tier::smoke, 1, index);
    CHECK(unclaimed(little, c.problem, Direction::forward) == "");
  }
}

TEST_CASE("some cases are long, some have many heads or batch entries, at every tier",
          "[generator]") {
  constexpr std::uint64_t kSmokeCases = 60, kCases = 200;
  for (const Tier tier : {Tier::smoke, Tier::fast, Tier::full}) {
    std::int64_t keys = 0, rows = 0, square = 0, heads = 0, batch = 0, window = 0;
    for (std::uint64_t index = 0; index < (tier == Tier::smoke ? kSmokeCases : kCases); ++index) {
      const Problem p = generate(everything(), tier, 1, index).problem;
      keys = std::max(keys, p.seqlen_k);
      rows = std::max(rows, p.seqlen_q);
      square = std::max(square, std::min(p.seqlen_q, p.seqlen_k));
      heads = std::max(heads, p.num_heads_q);
      batch = std::max(batch, p.batch);
      window = std::max(window, std::min(p.mask.window_left, p.seqlen_k - 1));
    }
    INFO(name(tier));
    CHECK(keys > 512);
    CHECK(rows > 256);
    CHECK(heads == 64);
    CHECK(batch >= 5);
    CHECK(window > 256);
    if (tier != Tier::smoke) CHECK((keys > 1000 && square > 256));
  }
}

TEST_CASE("every family of values has its turn within 60 cases, whatever the seed", "[generator]") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    std::set<Values> met;
    for (std::uint64_t index = 0; index < 60; ++index) {
      met.insert(generate(everything(), Tier::smoke, seed, index).values);
    }
    CHECK(met.size() == all_values().size());
  }
}

TEST_CASE("every head dimension has its turn within 60 cases, with values that refuse much",
          "[generator]") {
  const auto claims = [](std::int64_t multiple, std::int64_t most) {
    attest_description description = everything();
    description.head_dim_multiple = multiple;
    description.max_head_dim = most;
    return description;
  };
  const std::set<Values> strong{Values::indicator, Values::normal, Values::halves, Values::x4};
  const std::vector<std::pair<attest_description, std::size_t>> kernels{
      {claims(0, 0), 19}, {claims(2, 0), 15}, {claims(8, 128), 11}, {claims(64, 256), 4}};
  for (const auto& [description, count] : kernels) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      std::set<std::int64_t> met;
      for (std::uint64_t index = 0; index < 60; ++index) {
        const Case c = generate(description, Tier::smoke, seed, index);
        if (c.problem.head_dim_qk != 8 && strong.count(c.values) > 0) {
          met.insert(c.problem.head_dim_qk);
        }
      }
      INFO(description.head_dim_multiple << " seed " << seed);
      CHECK(met.size() == count - (count == 4 ? 0 : 1));  // 8 is that of cases with other aims
    }
  }
  CHECK(generate(claims(300, 0), Tier::smoke, 1, 0).problem.head_dim_qk == 300);
}

TEST_CASE("past the tier's own cases most are small, and every outlier still has its turn",
          "[generator]") {
  constexpr std::uint64_t kCases = 2000;
  for (const Tier tier : {Tier::smoke, Tier::fast}) {
    std::int64_t large = 0, keys = 0, heads = 0;
    for (std::uint64_t index = tier_cases(tier); index < tier_cases(tier) + kCases; ++index) {
      const Problem p = generate(everything(), tier, 1, index).problem;
      constexpr std::int64_t kSmall = 17;
      large += std::max(p.seqlen_q, p.seqlen_k) > kSmall ? 1 : 0;
      keys = std::max(keys, p.seqlen_k);
      heads = std::max(heads, p.num_heads_q);
    }
    INFO(name(tier));
    CHECK(large > static_cast<std::int64_t>(kCases / 100));
    CHECK(large < static_cast<std::int64_t>(kCases / 30));
    if (tier == Tier::fast) CHECK((keys > 512 && heads == 64));
  }
}

TEST_CASE("equal extents and numbers of many digits are drawn for every seed", "[generator]") {
  const auto cut = [](double value) {
    return round_to(DType::bf16, value) != value && round_to(DType::f16, value) != value;
  };
  constexpr std::uint64_t kSeeds = 20;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO(seed);
    std::map<std::string, int> met;
    for (std::uint64_t index = 0; index < tier_cases(Tier::smoke); ++index) {
      const Problem p = generate(everything(), Tier::smoke, seed, index).problem;
      if (p.mask.packed()) continue;
      met["batch = heads"] += p.batch > 1 && p.batch == p.num_heads_kv ? 1 : 0;
      met["heads = keys"] += p.num_heads_kv > 1 && p.num_heads_kv == p.seqlen_k ? 1 : 0;
      met["head_dim_qk = keys"] += p.seqlen_k > 1 && p.head_dim_qk == p.seqlen_k ? 1 : 0;
      met["head_dim_v = keys"] += p.seqlen_k > 1 && p.head_dim_v == p.seqlen_k ? 1 : 0;
      met["scale"] += p.softmax_scale && cut(*p.softmax_scale) ? 1 : 0;
      met["softcap"] += cut(p.softcap) ? 1 : 0;
      met["slopes"] += p.alibi == Alibi::drawn ? 1 : 0;
    }
    for (const char* what : {"batch = heads", "heads = keys", "head_dim_qk = keys",
                             "head_dim_v = keys", "scale", "softcap", "slopes"}) {
      INFO(what);
      CHECK(met[what] > 0);
    }
  }
}

TEST_CASE("numbers of a mask shrink with the sizes", "[generator]") {
  const auto shrunk = [](const char* problem, const std::function<bool(const Pattern&)>& fails) {
    const Case big{Problem::parse(problem), Values::normal, 7, 1};
    REQUIRE(fails(big.problem.mask));
    return shrink(big, [&](const Case& c) { return fails(c.problem.mask); }).problem.to_string();
  };
  const auto has = [](const std::string& problem, const char* mask) {
    INFO(problem);
    CHECK_THAT(problem, Catch::Contains(std::string("mask=") + mask + ","));
  };
  // The side of a window that matters, as wide as it must be.
  has(shrunk("sq=40,sk=60,d=2,mask=window_37_12",
             [](const Pattern& m) { return m.window_left >= 5; }),
      "window_5_inf");
  has(shrunk("sq=40,sk=60,d=2,mask=window_37_12",
             [](const Pattern& m) { return m.window_right > 0; }),
      "window_inf_1");
  // The batch entry that matters, with as many keys as it must have.
  has(shrunk("b=4,sq=9,sk=60,d=2,mask=lengths_3_41_60_0",
             [](const Pattern& m) {
               return std::any_of(m.key_lengths.begin(), m.key_lengths.end(),
                                  [](auto length) { return length > 6; });
             }),
      "lengths_7");
  has(shrunk("d=2,mask=cu_17x33_5x9_0x4_20x20",
             [](const Pattern& m) {
               for (std::size_t b = 0; b + 1 < m.cu_seqlens_q.size(); ++b) {
                 const auto queries = m.cu_seqlens_q[b + 1] - m.cu_seqlens_q[b];
                 const auto keys = m.cu_seqlens_k[b + 1] - m.cu_seqlens_k[b];
                 if (queries >= 3 && keys > queries) return true;
               }
               return false;
             }),
      "cu_3x4");
  // Percent, sizes of blocks and seeds.
  has(shrunk("sq=30,sk=30,d=2,mask=random_60_812",
             [](const Pattern& m) { return m.boolean && m.boolean->visible[0] == 0; }),
      "random_0_0");
  has(shrunk("sq=64,sk=64,d=2,mask=block_16x24_40_99",
             [](const Pattern& m) {
               const auto* blocks =
                   m.sparsity() ? std::get_if<BlockForm>(&m.sparsity()->form()) : nullptr;
               return blocks != nullptr && blocks->block_k > 2;
             }),
      "blockband_1x3_0");
}

// Says which draw of a row does nothing; "" where each does what it is for.
std::string idle_draw(const ScoreFeature& feature, const ScoreDraw& draw) {
  if (draw.claim != feature.claim) return "another feature's";
  constexpr int kDraws = 200;
  const Problem plain = Problem::parse("hq=2,sq=3,d=4");
  Rng rng(1);
  int drawn = 0, changed = 0;
  for (int k = 0; k < kDraws; ++k) {
    Problem p = plain;
    draw.draw(p, rng);
    drawn += feature.present(p) ? 1 : 0;
    if (feature.in_storage) feature.parse(p, feature.example);  // its change needs it
    const Problem before = p;
    changed += draw.change(p, rng) && p.to_string() != before.to_string() ? 1 : 0;
  }
  if (drawn == 0 || drawn == kDraws) return "draw";
  if (changed == 0) return "change";
  Problem p = plain;
  draw.add_digits(p, 1.1, 7);
  if (feature.present(p)) return "add_digits adds it";
  feature.parse(p, feature.example);
  draw.add_digits(p, 1.1, 8);
  if (feature.value(p) == feature.example) return "add_digits";
  draw.simplify(p);
  return feature.present(p) ? "" : "simplify removes it";
}

TEST_CASE("every feature of the scores is drawn, changed and made simpler", "[generator]") {
  const auto features = score_features();
  const auto draws = score_draws();
  REQUIRE(draws.size() == features.size());
  for (std::size_t k = 0; k < features.size(); ++k) {
    INFO(features[k].word);
    CHECK(idle_draw(features[k], draws[k]) == "");
  }
  ScoreDraw idle = draws[0];
  CHECK(idle_draw(features[1], idle) == "another feature's");
  idle.draw = [](Problem&, Rng&) {};
  CHECK(idle_draw(features[0], idle) == "draw");
  idle = draws[0];
  idle.change = [](Problem&, Rng&) { return true; };
  CHECK(idle_draw(features[0], idle) == "change");
  idle = draws[0];
  idle.add_digits = [](Problem&, double, std::uint64_t) {};
  CHECK(idle_draw(features[0], idle) == "add_digits");
}

TEST_CASE("shrinking reaches the smallest case that still fails", "[generator]") {
  Case big;
  big.problem = Problem::parse(
      "b=3,hq=6,hkv=3,sq=65,sk=70,d=33,dv=17,mask=window_9_3,dtype=bf16,layout=bhsd,"
      "softcap=30,alibi=standard,scale=0.3,strides=padded");
  const Case small = shrink(big, [](const Case& c) { return c.problem.seqlen_k >= 5; });
  CHECK(small.problem.to_string() ==
        "b=1,hq=1,hkv=1,sq=1,sk=5,d=1,dv=1,mask=none,dtype=f32,layout=bshd,scale=1/sqrt(d)");
  CHECK(small.values == Values::integers);
  const Case masked = shrink(big, [](const Case& c) { return c.problem.mask.banded(); });
  CHECK(masked.problem.mask.banded());
  CHECK(masked.problem.seqlen_k == 1);
  // Failures that need two equal extents.
  const Case heads = shrink(big, [](const Case& c) {
    return c.problem.batch > 1 && c.problem.batch == c.problem.num_heads_kv;
  });
  CHECK(heads.problem.batch == 2);
  CHECK(heads.problem.num_heads_q == 2);
  Case square = big;
  square.problem.seqlen_k = square.problem.head_dim_qk;
  const Case keys = shrink(square, [](const Case& c) {
    return c.problem.seqlen_k > 1 && c.problem.seqlen_k == c.problem.head_dim_qk;
  });
  CHECK(keys.problem.seqlen_k == 2);
  // Far from small: in fewer steps than one by one.
  Case far = big;
  far.problem = Problem::parse("sq=2211,sk=65793,d=8");
  const Case past = shrink(far, [](const Case& c) { return c.problem.seqlen_k > 2100; });
  CHECK(past.problem.to_string() ==
        "b=1,hq=1,hkv=1,sq=1,sk=2101,d=1,dv=1,mask=none,dtype=f32,layout=bshd,scale=1/sqrt(d)");
  // A failure that small problems show only with lucky values.
  const Case lucky = shrink(big, [](const Case& c) {
    return c.problem.seqlen_k >= 2 && (c.problem.seqlen_k == 70 || c.seed == 3);
  });
  CHECK(lucky.problem.seqlen_k == 2);
  CHECK(lucky.seed == 3);
}

}  // namespace
}  // namespace attest::proptest
