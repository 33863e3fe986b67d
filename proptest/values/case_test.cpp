// Values, buffers and vacuity.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/judge/buffer.hpp"
#include "proptest/judge/truth/truth.hpp"
#include "proptest/laws/trials/trial.hpp"
#include "proptest/values/generator.hpp"

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

TEST_CASE("what is unwritten is told from every other NaN", "[buffer]") {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const Strides strides : {Strides::padded, Strides::huge}) {
      INFO(name(dtype) << ' ' << name(strides));
      const Buffer buffer("O", dtype,
                          lay_out(Problem::parse("b=2,hq=2,sq=3,d=4").o_axes(), Layout::bshd,
                                  strides, Repeat::none));
      const TensorView& view = buffer.view();
      CHECK(view.bits(1, 2, 1, 3) == unwritten_bits(dtype));
      CHECK(buffer.packed_copy().view().bits(1, 2, 1, 3) == unwritten_bits(dtype));
      CHECK(std::isnan(view(1, 2, 1, 3)));
      // Arithmetic on it gives another NaN, and so does that on a guard.
      for (const std::int64_t element : {0, -1}) {
        const std::int64_t width = static_cast<std::int64_t>(size_bytes(dtype));
        const TensorView read("O", static_cast<char*>(view.data()) + element * width, dtype,
                              {{"one", 1, 1}});
        Tensor sum("O", dtype, {{"one", 1, 1}});
        sum.set(read(0) + 1, 0);
        CHECK(std::isnan(sum(0)));
        CHECK(sum.view().bits(0) != unwritten_bits(dtype));
      }
    }
  }
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

attest_status fails_without_end(const void*, const attest_forward_args* args) {
  std::fill_n(args->message, args->message_bytes, '!');
  return ATTEST_FAILED;
}

attest_status refuses_with_words(const void*, const attest_forward_args* args) {
  std::snprintf(args->message, args->message_bytes, "not today");
  return ATTEST_UNSUPPORTED;
}

TEST_CASE("a call that does not succeed may say why", "[run]") {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  const Case c{Problem::parse("sq=2,d=1"), Values::normal, 1, 1};
  const auto said = [&](attest_status (*forward)(const void*, const attest_forward_args*)) {
    kernel.forward = forward;
    return find_law("reference_forward").check(kernel, c);
  };
  const LawResult failed = said(fails_without_end);
  CHECK(failed.verdict == Verdict::violated);
  CHECK_THAT(failed.message, Catch::StartsWith("failed: the call returned ATTEST_FAILED"));
  CHECK_THAT(failed.message, Catch::EndsWith(kItSays + std::string(1024, '!')));
  const LawResult refused = said(refuses_with_words);
  CHECK(refused.verdict == Verdict::unsupported);
  CHECK(refused.message == kRefused + c.problem.to_string() + kItSays + "not today");
}

}  // namespace
}  // namespace attest::proptest
