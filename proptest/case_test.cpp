// Values, buffers, generator, shrinking and vacuity.
#include <cmath>
#include <limits>
#include <set>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/buffer.hpp"
#include "proptest/generator.hpp"
#include "proptest/truth.hpp"

namespace attest::proptest {
namespace {

const attest_description& everything() {
  return fixtures::defective_kernel(fixtures::Defect::none).description;
}

TEST_CASE("NaN and infinity are refused", "[values]") {
  const auto refused = [](const std::string& text, Values values, const std::string& message) {
    INFO(text << " " << name(values));
    const Problem p = Problem::parse(text);
    const InputValues in = make_values(p, values, 3);
    CHECK_THROWS_WITH(require_answer(p, in), Catch::Contains(message));
    CHECK_THROWS_AS(require_answer(p, in), InvalidProblem);
    CHECK_THROWS_AS(Truth(everything(), p, in, Direction::forward, 3), InvalidProblem);
  };
  const std::string last = "V[batch=0, seqlen_k=3, num_heads_kv=0, head_dim_v=0] is ";
  for (const char* dtype : {"f64", "f32", "bf16", "f16"}) {
    const std::string text = std::string("sq=4,d=2,dtype=") + dtype;
    refused(text, Values::nan, last + "nan, and no contract says");
    refused(text, Values::infinite, last + "inf, and no contract says");
    refused(text + ",mask=causal_br", Values::nan, last + "nan, and no contract says");
    refused(text + ",mask=lengths_3", Values::nan, last + "nan in a key that no query sees");
    refused(text + ",sk=5,mask=causal_tl", Values::infinite, "is inf in a key that no query sees");
  }
  refused("d=2,mask=cu_2x3_2x1", Values::nan, last + "nan, and no contract says");
  const Problem p = Problem::parse("b=2,hq=2,sq=4,d=2");
  for (const auto member : {&InputValues::Q, &InputValues::K, &InputValues::V, &InputValues::dO}) {
    InputValues in = make_values(p, Values::normal, 3);
    CHECK_NOTHROW(require_answer(p, in));
    (in.*member).set(-std::numeric_limits<double>::infinity(), 1, 2, 1, 0);
    CHECK_THROWS_WITH(require_answer(p, in), Catch::Contains("batch=1, seqlen_") &&
                                                 Catch::Contains("=1, head_dim_") &&
                                                 Catch::Contains("=0] is -inf, and no contract"));
  }
  InputValues in = make_values(p, Values::normal, 3);
  in.dLSE.set(std::nan(""), 1, 0, 2);
  CHECK_THROWS_WITH(require_answer(p, in),
                    Catch::Contains("dLSE[batch=1, num_heads_q=0, seqlen_q=2] is nan"));
}

TEST_CASE("values are finite, rounded to the dtype and a function of the seed", "[values]") {
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    for (const Values values : all_values()) {
      const Problem p = Problem::parse("b=2,hq=2,hkv=1,sq=9,sk=11,d=4,dtype=" + std::string(dtype));
      const InputValues in = make_values(p, values, 3), again = make_values(p, values, 3);
      INFO(name(values) << " " << dtype);
      for (const auto member :
           {&InputValues::Q, &InputValues::K, &InputValues::V, &InputValues::dO}) {
        const Tensor& tensor = in.*member;
        const double *data = tensor.doubles(), *other = (again.*member).doubles();
        for (std::int64_t e = 0; e < tensor.view().size(); ++e) {
          REQUIRE(std::isfinite(data[e]));
          REQUIRE(round_to(p.dtype, data[e]) == data[e]);
          REQUIRE(data[e] == other[e]);
        }
      }
    }
  }
  const Problem p = Problem::parse("sq=4,d=4");
  CHECK(make_values(p, Values::normal, 1).Q(0, 0, 0, 0) !=
        make_values(p, Values::normal, 2).Q(0, 0, 0, 0));
  CHECK_THROWS_WITH(parse_values("nomal"), Catch::Contains("did you mean 'normal'"));
}

TEST_CASE("buffers notice every write outside their elements", "[buffer]") {
  for (const Strides strides : {Strides::packed, Strides::padded, Strides::transposed,
                                Strides::interleaved, Strides::huge}) {
    const auto axes =
        lay_out(Problem::parse("b=2,hq=2,sq=3,d=4").q_axes(), Layout::bhsd, strides, Repeat::none);
    Buffer buffer("O", DType::f32, axes);
    INFO(name(strides));
    CHECK(buffer.disturbed().empty());
    CHECK(std::isnan(buffer.view()(1, 2, 1, 3)));
    auto* data = static_cast<float*>(buffer.view().data());
    buffer.view().set(1, 1, 2, 1, 3);
    CHECK(buffer.disturbed().empty());
    data[-1] = 0;
    CHECK_THAT(buffer.disturbed(), Catch::Contains("before its first"));
  }
  const auto padded =
      lay_out(Problem::parse("sq=3,d=4").q_axes(), Layout::bshd, Strides::padded, Repeat::none);
  Buffer gaps("O", DType::f32, padded);
  static_cast<float*>(gaps.view().data())[4] = 0;
  CHECK_THAT(gaps.disturbed(), Catch::Contains("gap"));
  Buffer past("O", DType::f32, padded);
  static_cast<float*>(past.view().data())[past.view().span_elements()] = 0;
  CHECK_THAT(past.disturbed(), Catch::Contains("past its last"));
  Workspace workspace(8);
  static_cast<unsigned char*>(workspace.data())[8] = 0;
  CHECK_THAT(workspace.disturbed(), Catch::Contains("past its end"));
}

TEST_CASE("inputs notice a changed bit", "[buffer]") {
  const Problem p = Problem::parse("hq=2,sq=3,d=4");
  const Input Q(make_values(p, Values::normal, 1).Q, DType::bf16,
                lay_out(p.q_axes(), Layout::bshd, Strides::padded, Repeat::none));
  CHECK(Q.changed().empty());
  const TensorView& view = Q.buffer.view();
  view.set(-view(0, 2, 1, 3), 0, 2, 1, 3);
  CHECK_THAT(Q.changed(), Catch::Contains("input Q was modified"));
  view.set(-view(0, 2, 1, 3), 0, 2, 1, 3);
  CHECK(Q.changed().empty());
  const KernelTensor tensor(Q.buffer, 0);
  CHECK(tensor.changed().empty());
  for (std::int64_t* entry : {&tensor.get()->shape[1], &tensor.get()->strides[2]}) {
    ++*entry;
    CHECK(tensor.changed() == "Q: its description was modified");
    --*entry;
  }
  CHECK(tensor.changed().empty());
  const_cast<attest_tensor*>(tensor.get())->data = nullptr;
  CHECK(tensor.changed() == "Q: its description was modified");
}

TEST_CASE("mixed strides give every tensor its own", "[buffer]") {
  const Problem mixed = Problem::parse("sq=4,d=4,strides=mixed");
  attest_description contiguous = everything();
  contiguous.features &= ~std::uint32_t{ATTEST_ANY_STRIDES};
  std::set<std::pair<Strides, Strides>> pairs, plain_pairs;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    pairs.insert({tensor_strides(everything(), mixed, seed, 1),
                  tensor_strides(everything(), mixed, seed, 2)});
    plain_pairs.insert(
        {tensor_strides(contiguous, mixed, seed, 1), tensor_strides(contiguous, mixed, seed, 2)});
  }
  CHECK(pairs.size() == 16);
  CHECK(plain_pairs.size() == 4);
  for (const auto& [first, second] : plain_pairs) {
    CHECK((first == Strides::packed || first == Strides::padded));
    CHECK((second == Strides::packed || second == Strides::padded));
  }
  CHECK(unclaimed(contiguous, mixed, Direction::forward).empty());
}

TEST_CASE("huge strides need the addresses of 2^32 elements, however many rows", "[buffer]") {
  for (const char* text : {"sq=2,d=4", "sq=130,d=4", "b=3,hq=2,sq=1000,d=64"}) {
    const auto axes =
        lay_out(Problem::parse(text).q_axes(), Layout::bshd, Strides::huge, Repeat::none);
    std::int64_t last = 0;
    for (const Axis& axis : axes) last += (axis.extent - 1) * axis.stride;
    CHECK(last > (std::int64_t{1} << 32));
    CHECK(last < (std::int64_t{1} << 33));
  }
}

TEST_CASE("LSE lies in memory in every way", "[run]") {
  const Problem packed = Problem::parse("sq=4,d=4"),
                padded = Problem::parse("sq=4,d=4,strides=padded");
  attest_description contiguous = everything();
  contiguous.features &= ~static_cast<std::uint32_t>(ATTEST_ANY_STRIDES);
  std::set<Strides> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    seen.insert(scalar_strides(everything(), padded, seed));
    CHECK(scalar_strides(everything(), packed, seed) == Strides::packed);
    CHECK(scalar_strides(contiguous, padded, seed) == Strides::packed);
  }
  CHECK(seen == std::set<Strides>{Strides::packed, Strides::padded, Strides::transposed,
                                  Strides::interleaved});
}

TEST_CASE("a byte offset leads to the same elements", "[buffer]") {
  const Buffer buffer(
      "O", DType::bf16,
      lay_out(Problem::parse("sq=3,d=4").o_axes(), Layout::bshd, Strides::padded, Repeat::none));
  CHECK(byte_offset_of(Strides::packed) == 0);
  CHECK(byte_offset_of(Strides::padded) > 0);
  const KernelTensor tensor(buffer, byte_offset_of(Strides::padded));
  CHECK(tensor.get()->data != buffer.view().data());
  CHECK(view_of(*tensor.get(), "O", {"b", "s", "h", "c"}).data() == buffer.view().data());
  CHECK_THROWS_AS(KernelTensor(buffer, std::uint64_t{1} << 20), InternalError);
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
  // A failure that small problems show only with lucky values.
  const Case lucky = shrink(big, [](const Case& c) {
    return c.problem.seqlen_k >= 2 && (c.problem.seqlen_k == 70 || c.seed == 3);
  });
  CHECK(lucky.problem.seqlen_k == 2);
  CHECK(lucky.seed == 3);
}

TEST_CASE("flat problems are vacuous, others are not", "[truth]") {
  attest_description no_lse = everything();
  no_lse.features &= ~static_cast<std::uint32_t>(ATTEST_LSE);
  // Nearly equal weights in bf16: O is the mean of V within the bound, and only LSE could tell.
  const Problem p = Problem::parse("sq=8,sk=16,d=4,dtype=bf16,scale=1e-6");
  const auto decoys = [&](const attest_description& description, Values values) {
    const InputValues in = make_values(p, values, 1);
    return Truth(description, p, in, Direction::forward, 1).passing_decoys({});
  };
  CHECK_FALSE(decoys(no_lse, Values::positive_v).empty());

  const Problem steep = Problem::parse("sq=8,sk=16,d=4,dtype=bf16");
  const InputValues in = make_values(steep, Values::normal, 1);
  CHECK(Truth(no_lse, steep, in, Direction::forward, 1).passing_decoys({}).empty());
}

}  // namespace
}  // namespace attest::proptest
