#include "python/api/attest_api.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/testing/catch.hpp"
#include "python/api/testing/example.hpp"

namespace attest::python {
namespace {

const char* const kForward = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8,dv=6,mask=causal_br";
const char* const kBackward = "hq=2,sq=5,sk=9,d=8,mask=causal_br";

std::string text() { return attest_text(); }

void refused_as_bad(const std::function<void(attest_attention&)>& spoil, const std::string& words,
                    const char* problem = kForward, Direction direction = Direction::forward) {
  Example example(problem, direction);
  attest_attention& call = example.call();
  spoil(call);
  CHECK(attest_judge(&call) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains(words));
}

TEST_CASE("right results pass in every dtype and direction", "[python]") {
  for (const char* dtype : {"f64", "f32", "bf16", "f16"}) {
    INFO(dtype);
    Example forward(std::string(kForward) + ",dtype=" + dtype);
    CHECK(attest_judge(&forward.call()) == ATTEST_PASSED);
    CHECK(text().empty());
    attest_attention& without_lse = forward.call();
    without_lse.got.LSE = nullptr;
    CHECK(attest_judge(&without_lse) == ATTEST_PASSED);
    Example backward(std::string(kBackward) + ",dtype=" + dtype, Direction::backward);
    CHECK(attest_judge(&backward.call()) == ATTEST_PASSED);
    attest_attention& lse_unseen = backward.call();
    lse_unseen.got.LSE = nullptr;
    CHECK(attest_judge(&lse_unseen) == ATTEST_PASSED);
  }
}

TEST_CASE("wrong gradients are refused and named without LSE", "[python]") {
  Example example(kBackward, Direction::backward);
  example.dK.set(example.dK(0, 1, 1, 2) + 1, 0, 1, 1, 2);
  attest_attention& call = example.call();
  call.got.LSE = nullptr;
  CHECK(attest_judge(&call) == ATTEST_REFUSED);
  CHECK_THAT(text(), Catch::Contains("dK[batch=0, seqlen_k=1, num_heads_kv=1, head_dim_qk=2]") &&
                         Catch::Contains("largest term of the bound of dK"));
  Example zeros(kBackward, Direction::backward);
  for (Tensor* one : {&zeros.dQ, &zeros.dK, &zeros.dV}) {
    *one = Tensor(one->view().name(), DType::f32,
                  one == &zeros.dQ ? zeros.problem.q_axes() : zeros.problem.k_axes());
  }
  attest_attention& nothing = zeros.call();
  nothing.got.LSE = nullptr;
  CHECK(attest_judge(&nothing) == ATTEST_REFUSED);
  CHECK_THAT(text(), Catch::Contains("equals the gradients that are all zero"));
}

TEST_CASE("one wrong element of any output is refused and named", "[python]") {
  struct Spoilt {
    const char* words;
    Tensor Example::*output;
  };
  for (const auto& [words, output] :
       {Spoilt{"O[batch=0, seqlen_q=1, num_heads_q=1, head_dim_v=2]", &Example::O},
        Spoilt{"dQ[batch=0, seqlen_q=1, num_heads_q=1, head_dim_qk=2]", &Example::dQ},
        Spoilt{"dK[batch=0, seqlen_k=1, num_heads_kv=1, head_dim_qk=2]", &Example::dK},
        Spoilt{"dV[batch=0, seqlen_k=1, num_heads_kv=1, head_dim_v=2]", &Example::dV}}) {
    for (const double by : {1.0, std::numeric_limits<double>::quiet_NaN()}) {
      Example example(kBackward, Direction::backward);
      Tensor& tensor = example.*output;
      tensor.set(tensor(0, 1, 1, 2) + by, 0, 1, 1, 2);
      CHECK(attest_judge(&example.call()) == ATTEST_REFUSED);
      CHECK_THAT(text(), Catch::Contains(words) && Catch::Contains("problem b=1,hq=2") &&
                             Catch::Contains("numerics f32"));
    }
  }
  Example example(kForward);
  example.LSE.set(example.LSE(1, 3, 4) + 1, 1, 3, 4);
  CHECK(attest_judge(&example.call()) == ATTEST_REFUSED);
  CHECK_THAT(text(), Catch::Contains("LSE[batch=1, num_heads_q=3, seqlen_q=4]"));
}

TEST_CASE("bad calls say what does not fit", "[python]") {
  CHECK(attest_judge(nullptr) == ATTEST_BAD_INPUT);
  CHECK(text() == "call is NULL");
  refused_as_bad([](auto& c) { c.struct_size = 8; }, "struct_size is 8");
  refused_as_bad([](auto& c) { c.problem = nullptr; }, "problem is not given");
  refused_as_bad([](auto& c) { c.problem = "sq=5"; }, "d is needed");
  refused_as_bad([](auto& c) { c.contract = "exact"; }, "unknown preset 'exact'");
  refused_as_bad([](auto& c) { c.K = nullptr; }, "K is not given");
  refused_as_bad([](auto& c) { c.got.O = nullptr; }, "O is not given");
  refused_as_bad([](auto& c) { c.got.O = c.Q; }, "O: head_dim_v is 8, the problem says 6");
  refused_as_bad([](auto& c) { c.dLSE = c.got.LSE; }, "dLSE is given without dO");
  refused_as_bad([](auto& c) { c.got.dK = nullptr; }, "dK is not given", kBackward,
                 Direction::backward);
  refused_as_bad(
      [](auto& c) { c.problem = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8,dv=6,mask=causal_br,dtype=bf16"; },
      "Q: its dtype is f32, the problem's bf16");
  refused_as_bad([](auto& c) { c.contract = "accumulator=bf16,accumulation=truncating"; },
                 "numerics: ");
  refused_as_bad(
      [](auto& c) {
        static const std::vector<std::uint8_t> mask(45, 1);
        c.boolean_mask = mask.data();
        c.problem = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8,dv=6,mask=random_50_1";
      },
      "'random_50_1' and a boolean mask together");
}

TEST_CASE("tensors of a device, of integers and with NaN are refused", "[python]") {
  Example example(kForward);
  attest_attention& call = example.call();
  attest_tensor q = *call.Q;
  call.Q = &q;
  q.device.device_type = ATTEST_CUDA;
  CHECK(attest_judge(&call) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains("Q: lies on a device"));
  q.device.device_type = ATTEST_CPU;
  q.dtype.code = 0;
  CHECK(attest_judge(&call) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains("Q: dtype code 0"));
  example.K.set(std::nan(""), 1, 2, 1, 3);
  CHECK(attest_judge(&example.call()) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains("K[batch=1, seqlen_k=2, num_heads_kv=1, head_dim_qk=3]"));
}

TEST_CASE("a problem beyond the machine's memory is refused", "[python]") {
  Example example(kForward);
  attest_attention& call = example.call();
  std::vector<std::int64_t> extents{1, 1 << 20, 1 << 10, 1 << 10}, strides{0, 0, 0, 0};
  attest_tensor huge = *call.Q;
  huge.shape = extents.data();
  huge.strides = strides.data();
  call.Q = call.K = call.V = call.got.O = &huge;
  call.got.LSE = nullptr;
  call.problem = "hq=1024,sq=1048576,d=1024";
  CHECK(attest_judge(&call) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains("this machine has"));
}

TEST_CASE("a boolean mask is a part of the problem", "[python]") {
  const std::string plain = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8,dv=6";
  Example causal(kForward);
  attest_attention& call = causal.call();
  call.problem = plain.c_str();
  std::vector<std::uint8_t> visible;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 9; ++j) visible.push_back(j <= i + 4 ? 1 : 0);
  }
  call.boolean_mask = visible.data();
  CHECK(attest_judge(&call) == ATTEST_PASSED);
  visible[44] = 0;
  CHECK(attest_judge(&call) == ATTEST_REFUSED);
  CHECK_THAT(text(), Catch::Contains("mask=given"));
}

TEST_CASE("masks of heads are given by values", "[python]") {
  const std::string plain = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8,mask=causal_br";
  Example example(plain + ",head_mask=bhqk_60_1", Direction::backward);
  attest_attention& call = example.call();
  CHECK(attest_judge(&call) == ATTEST_PASSED);
  std::vector<std::uint8_t> visible;
  for (int b = 0; b < 2; ++b) {
    for (int h = 0; h < 4; ++h) {
      for (int i = 0; i < 5; ++i) {
        for (int j = 0; j < 9; ++j) {
          visible.push_back(example.problem.head_mask(b, h, i, j) ? 1 : 0);
        }
      }
    }
  }
  call.problem = plain.c_str();
  call.head_mask = visible.data();
  constexpr std::array<std::int64_t, 4> kExtents{2, 4, 5, 9};
  std::copy(kExtents.begin(), kExtents.end(), call.head_mask_extents);
  CHECK(attest_judge(&call) == ATTEST_PASSED);
  // One pair more or less: the judge remembers the truth of the call before, of the same spelling.
  visible[44] ^= 1;
  CHECK(attest_judge(&call) == ATTEST_REFUSED);
  CHECK_THAT(text(), Catch::Contains("head_mask=bhqk_given"));
  visible[44] ^= 1;
  CHECK(attest_judge(&call) == ATTEST_PASSED);
  call.head_mask_extents[1] = 3;
  CHECK(attest_judge(&call) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains("head_mask: num_heads_q is 3; it must be 4 or 1"));
  refused_as_bad([&](auto& c) { c.head_mask = visible.data(); },
                 "in the problem and a given one together", "hq=2,sq=5,d=8,head_mask=hk_60_1");
}

TEST_CASE("sinks are given by values", "[python]") {
  const std::string plain = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8,mask=causal_br";
  Example example(plain + ",sinks=drawn_1", Direction::backward);
  attest_attention& call = example.call();
  CHECK(attest_judge(&call) == ATTEST_PASSED);
  std::vector<float> sinks = example.problem.sink_scores();
  call.problem = plain.c_str();
  call.sinks = sinks.data();
  CHECK(attest_judge(&call) == ATTEST_PASSED);
  const attest_tensor* const right = call.got.dSinks;
  call.got.dSinks = nullptr;
  CHECK(attest_judge(&call) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains("dSinks is not given"));
  call.got.dSinks = right;
  sinks[2] = std::nextafter(sinks[2], 9.0F) + 0.5F;
  CHECK(attest_judge(&call) == ATTEST_REFUSED);
  CHECK_THAT(text(), Catch::Contains("sinks=given"));
  sinks[3] = std::numeric_limits<float>::infinity();
  CHECK(attest_judge(&call) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains("sinks: that of head 3 is inf"));
  sinks[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(attest_judge(&call) == ATTEST_BAD_INPUT);
  refused_as_bad([&](auto& c) { c.sinks = sinks.data(); }, "'drawn' in the problem and given ones",
                 "hq=2,sq=5,d=8,sinks=drawn_1");
}

TEST_CASE("a wrong gradient of a sink is refused", "[python]") {
  Example example("b=2,hq=4,sq=5,sk=9,d=8,sinks=drawn_1", Direction::backward);
  const Tensor right = example.dSinks, bounds("dSinks", DType::f64, example.problem.sinks_axes());
  const AbiTensor exact(example.dSinks.view()), bound(bounds.view());
  attest_attention& call = example.call();
  const attest_results of_exact{nullptr, nullptr, nullptr, nullptr, nullptr, exact.get(), nullptr},
      of_bounds{nullptr, nullptr, nullptr, nullptr, nullptr, bound.get(), nullptr};
  example.dSinks.set(-right(2), 2);
  CHECK(attest_judge(&example.call()) == ATTEST_REFUSED);
  CHECK_THAT(text(), Catch::Contains("dSinks[num_heads_q=2]"));
  REQUIRE(attest_reference(&call, &of_exact) == ATTEST_PASSED);
  CHECK(example.dSinks(2) == right(2));
  REQUIRE(attest_bounds(&call, &of_bounds, nullptr) == ATTEST_PASSED);
  CHECK(bounds(2) > 0);
  example.dSinks.set(right(2) + 4 * bounds(2), 2);
  CHECK(attest_judge(&example.call()) == ATTEST_REFUSED);
}

TEST_CASE("sinks that no result shows prove nothing", "[python]") {
  Example example("b=1,hq=2,sq=5,d=8");
  const std::vector<float> small(2, -80), none(2, -std::numeric_limits<float>::infinity());
  attest_attention& call = example.call();
  call.sinks = small.data();
  CHECK(attest_judge(&call) == ATTEST_NOTHING_PROVED);
  CHECK_THAT(text(), Catch::Contains("too small to tell from none"));
  call.sinks = none.data();
  CHECK(attest_judge(&call) == ATTEST_PASSED);
}

TEST_CASE("a gradient of LSE is part of the gradients", "[python]") {
  Example example(kBackward, Direction::backward);
  attest_attention& call = example.call();
  const AbiTensor dlse(example.dLSE.view());
  call.dLSE = dlse.get();
  CHECK(attest_judge(&call) == ATTEST_REFUSED);
  const AbiTensor dQ(example.dQ.view()), dK(example.dK.view()), dV(example.dV.view());
  const attest_results exact{nullptr, nullptr, dQ.get(), dK.get(), dV.get(), nullptr, nullptr};
  REQUIRE(attest_reference(&call, &exact) == ATTEST_PASSED);
  CHECK(attest_judge(&call) == ATTEST_PASSED);
}

TEST_CASE("the reference writes what is asked for", "[python]") {
  Example example(kBackward, Direction::backward);
  const Tensor right = example.dV;
  attest_attention& call = example.call();
  example.dV = Tensor("dV", DType::f32, example.problem.v_axes());
  const AbiTensor dV(example.dV.view());
  const attest_results exact{nullptr, nullptr, nullptr, nullptr, dV.get(), nullptr, nullptr};
  REQUIRE(attest_reference(&call, &exact) == ATTEST_PASSED);
  CHECK(example.dV(0, 3, 1, 2) == right(0, 3, 1, 2));
  call.dO = nullptr;
  CHECK(attest_reference(&call, &exact) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains("without dO"));
  const AbiTensor Q(example.Q.view());
  const attest_results wrong{nullptr, Q.get(), nullptr, nullptr, nullptr, nullptr, nullptr};
  CHECK(attest_reference(&call, &wrong) == ATTEST_BAD_INPUT);
  CHECK(attest_reference(&call, nullptr) == ATTEST_BAD_INPUT);
}

TEST_CASE("bounds are those that judge", "[python]") {
  Example example(kBackward, Direction::backward);
  attest_attention& call = example.call();
  const auto o_axes = example.problem.o_axes(), q_axes = example.problem.q_axes();
  Tensor proved_O("O", DType::f64, o_axes), probable_O = proved_O;
  Tensor proved_dQ("dQ", DType::f64, q_axes), probable_dQ = proved_dQ;
  const AbiTensor a(proved_O.view()), b(probable_O.view()), c(proved_dQ.view()),
      d(probable_dQ.view());
  const attest_results proved{a.get(), nullptr, c.get(), nullptr, nullptr, nullptr, nullptr},
      probable{b.get(), nullptr, d.get(), nullptr, nullptr, nullptr, nullptr};
  REQUIRE(attest_bounds(&call, &proved, &probable) == ATTEST_PASSED);
  for (std::int64_t e = 0; e < proved_O.view().size(); ++e) {
    CHECK(probable_O.doubles()[e] > 0);
    CHECK(proved_O.doubles()[e] >= probable_O.doubles()[e]);
    CHECK(proved_dQ.doubles()[e] >= probable_dQ.doubles()[e]);
  }
  constexpr double kBeyond = 2;
  example.O.set(example.O(0, 1, 1, 1) + kBeyond * proved_O(0, 1, 1, 1), 0, 1, 1, 1);
  CHECK(attest_judge(&example.call()) == ATTEST_REFUSED);
  attest_attention& without_lse = example.call();
  without_lse.got.LSE = nullptr;
  const Tensor seen = probable_dQ;
  REQUIRE(attest_bounds(&without_lse, nullptr, &probable) == ATTEST_PASSED);
  for (std::int64_t e = 0; e < seen.view().size(); ++e) {
    CHECK(probable_dQ.doubles()[e] > seen.doubles()[e]);
  }
  without_lse.got.O = nullptr;
  CHECK(attest_bounds(&without_lse, nullptr, &probable) == ATTEST_BAD_INPUT);
  CHECK_THAT(text(), Catch::Contains("O is not given"));
}

TEST_CASE("each thread has the text of its own call", "[python]") {
  CHECK(attest_judge(nullptr) == ATTEST_BAD_INPUT);
  std::string other = "not called";
  std::thread([&] { other = attest_text(); }).join();
  CHECK(other.empty());
  CHECK(text() == "call is NULL");
}

TEST_CASE("the library says its version", "[python]") { CHECK(attest_version()[0] != '\0'); }

}  // namespace
}  // namespace attest::python
